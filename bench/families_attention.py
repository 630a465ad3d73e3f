"""Attention out of BERT, ViT, Swin, GPT-2 and decoders of Llama's type, beside the fastest backend of PyTorch's
scaled_dot_product_attention."""
import dataclasses

import numpy as np

import onnx_file

# name: (samples for one input, heads of queries, heads of keys and values, queries, keys, size of a head, causal)
SHAPES = {
    "bert128": (1, 12, 12, 128, 128, 64, False),
    "bert512": (1, 12, 12, 512, 512, 64, False),
    "vit_tiny": (1, 3, 3, 197, 197, 64, False),
    "swin_56": (64, 3, 3, 49, 49, 32, False),
    "swin_14": (4, 12, 12, 49, 49, 32, False),
    "gpt2_64": (1, 12, 12, 64, 64, 64, True),
    "llama_prompt": (1, 32, 8, 256, 256, 128, True),
    "llama_token": (1, 32, 8, 1, 256, 128, False),
}
BATCHES = (1, 8, 32)


@dataclasses.dataclass
class Row:
    of: str
    batch: int
    samples: int
    heads: int
    kv_heads: int
    queries: int
    keys: int
    size: int
    causal: bool

    @property
    def name(self):
        return f"attention_{self.of}_b{self.batch}"

    @property
    def flops(self):
        """Of both products. Where attention is causal, about half of the scores count."""
        return 4 * self.samples * self.heads * self.queries * self.keys * self.size // (2 if self.causal else 1)

    def model(self, _, dtype):
        """y = softmax(q·kᵀ · scale + mask)·v, as exporters write it. PyTorch's writes a causal mask as -inf."""
        nodes, constants = [], [onnx_file.constant("scale", np.float64(self.size**-0.5), dtype)]
        add = lambda op, inputs, output, **attributes: nodes.append(onnx_file.node(op, inputs, [output], **attributes))
        keys, values = "k", "v"
        if self.heads != self.kv_heads:
            keys, values = (self._repeated(add, constants, name) for name in "kv")
        add("Transpose", [keys], "turned", perm=[0, 1, 3, 2])
        add("MatMul", ["q", "turned"], "products")
        add("Mul", ["products", "scale"], "scores")
        scores = "scores"
        if self.causal:
            mask = np.triu(np.full((self.queries, self.keys), -np.inf), 1)
            constants.append(onnx_file.constant("mask", mask, dtype))
            add("Add", ["scores", "mask"], "masked")
            scores = "masked"
        add("Softmax", [scores], "weights", axis=-1)
        add("MatMul", ["weights", values], "y")
        value = lambda name, heads, rows: onnx_file.value(name, self.samples, heads, rows, self.size, dtype=dtype)
        inputs = [value("q", self.heads, self.queries), value("k", self.kv_heads, self.keys),
                  value("v", self.kv_heads, self.keys)]
        return onnx_file.model(self.name, nodes, constants, inputs, [value("y", self.heads, self.queries)])

    def _repeated(self, add, constants, name):
        """Keys or values, each head of which serves several heads of queries."""
        shapes = {"apart": [2], "each": [self.samples, self.kv_heads, self.heads // self.kv_heads, self.keys, self.size],
                  "all": [self.samples, self.heads, self.keys, self.size]}
        for key, dims in shapes.items():
            constants.append(onnx_file.constant(f"{name}_{key}", dims, "int64"))
        add("Unsqueeze", [name, name + "_apart"], name + "_1")
        add("Expand", [name + "_1", name + "_each"], name + "_2")
        add("Reshape", [name + "_2", name + "_all"], name + "_3")
        return name + "_3"

    def vendor(self, torch, dtype):
        """The backends of scaled_dot_product_attention. Those that do not take the shape or the elements refuse."""
        from torch.nn.attention import SDPBackend, sdpa_kernel

        random = lambda heads, rows: torch.randn(self.samples, heads, rows, self.size, device="cuda").to(dtype)
        q, k, v = random(self.heads, self.queries), random(self.kv_heads, self.keys), random(self.kv_heads, self.keys)
        attend = torch.nn.functional.scaled_dot_product_attention

        def way(backend):
            def call():
                with torch.no_grad(), sdpa_kernel(backend):
                    return attend(q, k, v, is_causal=self.causal, enable_gqa=self.heads != self.kv_heads)

            return call

        backends = (SDPBackend.FLASH_ATTENTION, SDPBackend.EFFICIENT_ATTENTION, SDPBackend.CUDNN_ATTENTION,
                    SDPBackend.MATH)
        return {b.name.lower(): way(b) for b in backends}


def rows():
    for name, (samples, *shape) in SHAPES.items():
        for batch in BATCHES:
            yield Row(name, batch, samples * batch, *shape)
