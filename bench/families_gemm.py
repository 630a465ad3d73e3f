"""Matrix products by weights, with a bias, out of BERT, ViT, ConvNeXt, GPT-2, VGG and AlexNet."""
import dataclasses

import numpy as np

import onnx_file

# model: (rows for one input, [(k, n), …])
PRODUCTS = {
    "bert128": (128, [(768, 768), (768, 2304), (768, 3072), (3072, 768)]),
    "bert512": (512, [(768, 768), (768, 3072), (3072, 768)]),
    "vit_tiny": (197, [(192, 576), (192, 192), (192, 768), (768, 192)]),
    "convnext": (49, [(768, 3072), (3072, 768)]),
    "convnext_wide": (3136, [(96, 384), (384, 96)]),
    "convnext_mid": (196, [(384, 1536), (1536, 384)]),
    "gpt2": (64, [(768, 2304), (768, 3072)]),
    "vgg11": (1, [(25088, 4096), (4096, 4096)]),
    "alexnet": (1, [(9216, 4096), (4096, 1000)]),
}
BATCHES = (1, 8, 32)
MOST_ROWS = 32768  # larger products say nothing new


@dataclasses.dataclass
class Row:
    of: str
    batch: int
    m: int
    k: int
    n: int

    @property
    def name(self):
        return f"gemm_{self.of}_b{self.batch}_{self.k}x{self.n}"

    @property
    def flops(self):
        return 2 * self.m * self.k * self.n

    def model(self, _, dtype):
        """y = x·w + c, with random weights."""
        rng = np.random.default_rng(self.k + self.n)
        weight = lambda name, *dims: onnx_file.constant(name, rng.standard_normal(dims) / self.k**0.5, dtype)
        nodes = [onnx_file.node("MatMul", ["x", "w"], ["p"]), onnx_file.node("Add", ["p", "c"], ["y"])]
        return onnx_file.model(self.name, nodes, [weight("w", self.k, self.n), weight("c", self.n)],
                               [onnx_file.value("x", self.m, self.k, dtype=dtype)],
                               [onnx_file.value("y", self.m, self.n, dtype=dtype)])

    def vendor(self, torch, dtype):
        """Ways to have cuBLAS compute the product: with and without the bias, with either layout of the weights."""
        x = torch.randn(self.m, self.k, device="cuda").to(dtype)
        w = torch.randn(self.k, self.n, device="cuda").to(dtype)
        t, c = w.t().contiguous(), torch.randn(self.n, device="cuda").to(dtype)
        y = torch.empty(self.m, self.n, device="cuda", dtype=dtype)
        return {
            "mm": lambda: torch.mm(x, w, out=y),
            "mm, transposed": lambda: torch.mm(x, t.t(), out=y),
            "linear": lambda: torch.nn.functional.linear(x, t, c),
            "addmm": lambda: torch.addmm(c, x, w, out=y),
        }


def rows():
    for of, (m, shapes) in PRODUCTS.items():
        for batch in BATCHES:
            if m * batch > MOST_ROWS:
                continue
            for k, n in shapes:
                yield Row(of, batch, m * batch, k, n)
