"""Matrix products by weights, with a bias, out of BERT, ViT, ConvNeXt and GPT-2. Those of few rows are in
families_gemv.py."""
import dataclasses

import numpy as np

import onnx_file

# model: (rows for one input, [(k, n), …])
PRODUCTS = {
    "bert128": (128, [(768, 768), (768, 3072), (3072, 768)]),
    "bert512": (512, [(768, 3072)]),
    "vit_tiny": (197, [(192, 768), (768, 192)]),
    "convnext": (49, [(768, 3072)]),
    "convnext_wide": (3136, [(96, 384)]),
    "convnext_mid": (196, [(1536, 384)]),
    "gpt2": (64, [(768, 2304)]),
}
BATCHES = (1, 8, 32)
MOST_ROWS = 32768  # larger products say nothing new
MOST_RANDOM = 65521  # as many random numbers are made, and repeated in larger weights


@dataclasses.dataclass
class Row:
    of: str
    batch: int
    m: int
    k: int
    n: int
    family: str = "gemm"

    @property
    def name(self):
        return f"{self.family}_{self.of}_b{self.batch}_{self.k}x{self.n}"

    @property
    def flops(self):
        return 2 * self.m * self.k * self.n

    def model(self, _, dtype):
        """y = x·w, with random weights."""
        rng = np.random.default_rng(self.k + self.n)
        some = rng.standard_normal(MOST_RANDOM) / self.k**0.5
        weights = onnx_file.constant("w", np.resize(some, (self.k, self.n)), dtype)
        return onnx_file.model(self.name, [onnx_file.node("MatMul", ["x", "w"], ["y"])], [weights],
                               [onnx_file.value("x", self.m, self.k, dtype=dtype)],
                               [onnx_file.value("y", self.m, self.n, dtype=dtype)])

    def vendor(self, torch, dtype):
        """Ways to have cuBLAS compute the product: through either of its interfaces, with either layout of the weights."""
        x = torch.randn(self.m, self.k, device="cuda").to(dtype)
        w = torch.randn(self.k, self.n, device="cuda").to(dtype) / self.k**0.5
        turned = w.t().contiguous().t()
        y = torch.empty(self.m, self.n, device="cuda", dtype=dtype)

        def way(library, weights):
            def call():
                torch.backends.cuda.preferred_blas_library(library)
                torch.mm(x, weights, out=y)

            return call

        return {f"{library}, {layout}": way(library, weights) for library in ("cublas", "cublaslt")
                for layout, weights in (("rows", w), ("columns", turned))}


def rows():
    for of, (m, shapes) in PRODUCTS.items():
        for batch in BATCHES:
            if m * batch > MOST_ROWS:
                continue
            for k, n in shapes:
                yield Row(of, batch, m * batch, k, n)
