"""Matrix products of few rows by weights: the last layers of networks for images, and decoders at one
token a sample. Their time is that of reading the weights."""
import families_gemm

# model: [(k, n), …]
PRODUCTS = {
    "vgg11": [(4096, 4096)],
    "alexnet": [(9216, 4096)],
    "resnet50": [(2048, 1000)],
    "gpt2": [(768, 2304), (768, 3072), (3072, 768)],
    "llama": [(2048, 8192), (8192, 2048)],
}
BATCHES = (1, 8, 32)


def rows():
    for of, shapes in PRODUCTS.items():
        for batch in BATCHES:
            for k, n in shapes:
                yield families_gemm.Row(of, batch, batch, k, n, "gemv")
