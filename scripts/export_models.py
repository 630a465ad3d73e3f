#!/usr/bin/env python3
"""Writes the models of testdata/models/exporters: small networks, written by several exporters.

    export_models.py EXPORTER… [--out DIR] [--only NAME]

EXPORTER is one of torch, quantize, sklearn, jax, tensorflow, onnxscript, spox; each needs its own
packages (testdata/models/exporters/README.md has the versions), so that a run of one is enough to
renew what it wrote. quantize reads what torch wrote. Weights are seeded random numbers; the same versions
give the same models.
"""
# Long: there is one function for each exporter, and all of them share helpers.
import argparse
import os
import sys
import tempfile

import numpy as np

OUT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "testdata", "models", "exporters")


def save(model, name):
    """Writes a model without the documentation of its nodes, which holds stack traces and paths of this machine."""
    def clean(nodes):
        for n in nodes:
            n.ClearField("doc_string")
            del n.metadata_props[:]
            for a in n.attribute:
                a.ClearField("doc_string")
                for g in [a.g] * a.HasField("g") + list(a.graphs):
                    clean_graph(g)

    def clean_graph(g):
        del g.metadata_props[:]
        for v in [*g.input, *g.output, *g.value_info, *g.initializer]:
            v.ClearField("doc_string")
            del v.metadata_props[:]
        clean(g.node)

    clean_graph(model.graph)
    for f in model.functions:
        del f.metadata_props[:]
        clean(f.node)
    del model.metadata_props[:]
    data = model.SerializeToString(deterministic=True)
    path = os.path.join(OUT, name + ".onnx")
    with open(path, "wb") as f:
        f.write(data)
    opsets = ", ".join(f"{o.domain or 'ai.onnx'} {o.version}" for o in model.opset_import)
    print(f"{name}: {len(data)} bytes, {model.producer_name} {model.producer_version}, {opsets}")


def seed(make):
    return sum(map(ord, make.__name__))


def wanted(models, only):
    return [m for m in models if only is None or m.__name__ == only]


# PyTorch, both of its exporters.


def export_torch(only):
    import onnx
    import torch
    from torch import nn
    from torch.nn import functional as F

    def legacy(module, args, opset, **options):
        fd, path = tempfile.mkstemp(suffix=".onnx")
        os.close(fd)
        try:
            torch.onnx.export(module, args, path, opset_version=opset, dynamo=False, **options)
            return onnx.load(path)
        finally:
            os.remove(path)

    def dynamo(module, args, opset, **options):
        program = torch.onnx.export(module, args, opset_version=opset, dynamo=True, verbose=False, **options)
        return program.model_proto

    class Residual(nn.Module):
        def __init__(self, cin, cout, stride):
            super().__init__()
            self.a = nn.Conv2d(cin, cout, 3, stride, 1, bias=False)
            self.na = nn.BatchNorm2d(cout)
            self.b = nn.Conv2d(cout, cout, 3, 1, 1, bias=False)
            self.nb = nn.BatchNorm2d(cout)
            self.skip = nn.Sequential(nn.Conv2d(cin, cout, 1, stride, bias=False), nn.BatchNorm2d(cout))

        def forward(self, x):
            return F.relu(self.nb(self.b(F.relu(self.na(self.a(x))))) + self.skip(x))

    def randomise(module):
        """Keeps values of about size 1 from layer to layer, as training would: with PyTorch's own initial
        weights they shrink until biases alone decide, and outputs hardly depend on inputs."""
        for m in module.modules():
            if isinstance(m, (nn.Conv2d, nn.ConvTranspose2d, nn.Linear)):
                nn.init.normal_(m.weight, 0, (2 / m.weight[0].numel()) ** 0.5)
            if isinstance(m, nn.BatchNorm2d):
                nn.init.uniform_(m.weight, 0.5, 1.5)
                m.running_mean.uniform_(-0.2, 0.2)
                m.running_var.uniform_(0.5, 1.5)
            if isinstance(m, (nn.GroupNorm, nn.LayerNorm, nn.InstanceNorm2d)) and m.weight is not None:
                nn.init.uniform_(m.weight, 0.5, 1.5)
        for name, p in module.named_parameters():
            if name.endswith("bias"):
                nn.init.uniform_(p, -0.2, 0.2)
        return module.eval()

    def residual():
        """Opset 9; normalisations are not folded into convolutions."""
        net = nn.Sequential(
            nn.Conv2d(3, 8, 7, 2, 3, bias=False), nn.BatchNorm2d(8), nn.ReLU(), nn.MaxPool2d(3, 2, 1),
            Residual(8, 8, 1), Residual(8, 16, 2), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(16, 10))
        return legacy(randomise(net), (torch.randn(1, 3, 32, 32),), 9, training=torch.onnx.TrainingMode.PRESERVE,
                      do_constant_folding=False, input_names=["image"], output_names=["logits"],
                      dynamic_axes={"image": {0: "batch"}, "logits": {0: "batch"}})

    def style():
        """Opset 9: reflected borders, InstanceNormalization, Upsample."""
        class Net(nn.Module):
            def __init__(self):
                super().__init__()
                self.a = nn.Conv2d(3, 8, 9)
                self.na = nn.InstanceNorm2d(8, affine=True)
                self.b = nn.Conv2d(8, 12, 3, 2)
                self.nb = nn.InstanceNorm2d(12, affine=True)
                self.c = nn.Conv2d(12, 8, 3)
                self.d = nn.Conv2d(8, 3, 9)

            def forward(self, x):
                x = F.relu(self.na(self.a(F.pad(x, (4, 4, 4, 4), "reflect"))))
                x = F.relu(self.nb(self.b(F.pad(x, (1, 1, 1, 1), "reflect"))))
                x = F.interpolate(x, scale_factor=2, mode="nearest")
                x = F.leaky_relu(self.c(F.pad(x, (1, 1, 1, 1), "reflect")), 0.1)
                return torch.sigmoid(self.d(F.pad(x, (4, 4, 4, 4), "reflect")))

        return legacy(randomise(Net()), (torch.randn(1, 3, 24, 24),), 9, input_names=["image"], output_names=["styled"])

    def mobile():
        """Opset 11: depthwise-separable convolutions, squeeze-and-excite, hard swish."""
        class Excite(nn.Module):
            def __init__(self, c):
                super().__init__()
                self.down, self.up = nn.Conv2d(c, c // 4, 1), nn.Conv2d(c // 4, c, 1)

            def forward(self, x):
                return x * F.hardsigmoid(self.up(F.relu(self.down(F.adaptive_avg_pool2d(x, 1)))))

        def block(cin, mid, cout, k, stride):
            return nn.Sequential(
                nn.Conv2d(cin, mid, 1, bias=False), nn.BatchNorm2d(mid), nn.Hardswish(),
                nn.Conv2d(mid, mid, k, stride, k // 2, groups=mid, bias=False), nn.BatchNorm2d(mid), Excite(mid),
                nn.Hardswish(), nn.Conv2d(mid, cout, 1, bias=False), nn.BatchNorm2d(cout))

        net = nn.Sequential(
            nn.Conv2d(3, 8, 3, 2, 1, bias=False), nn.BatchNorm2d(8), nn.ReLU6(), block(8, 16, 8, 3, 1),
            block(8, 24, 12, 5, 2), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Dropout(0.2), nn.Linear(12, 10),
            nn.LogSoftmax(1))
        return legacy(randomise(net), (torch.randn(1, 3, 32, 32),), 11, input_names=["image"], output_names=["scores"])

    def unet():
        """Opset 13: ConvTranspose, Resize, skip connections."""
        def two(cin, cout):
            return nn.Sequential(nn.Conv2d(cin, cout, 3, 1, 1), nn.BatchNorm2d(cout), nn.ReLU(),
                                 nn.Conv2d(cout, cout, 3, 1, 1), nn.PReLU(cout))

        class Net(nn.Module):
            def __init__(self):
                super().__init__()
                self.d1, self.d2, self.d3 = two(1, 6), two(6, 8), two(8, 12)
                self.up = nn.ConvTranspose2d(12, 8, 2, 2)
                self.u2, self.u1 = two(16, 8), two(14, 6)
                self.out = nn.Conv2d(6, 2, 1)

            def forward(self, x):
                a = self.d1(x)
                b = self.d2(F.max_pool2d(a, 2))
                c = self.d3(F.avg_pool2d(b, 2))
                b = self.u2(torch.cat([self.up(c), b], 1))
                b = F.interpolate(b, size=a.shape[2:], mode="bilinear", align_corners=False)
                return self.out(self.u1(torch.cat([b, a], 1))).softmax(1)

        return legacy(randomise(Net()), (torch.randn(1, 1, 24, 20),), 13, input_names=["image"], output_names=["mask"],
                      dynamic_axes={"image": {0: "batch", 2: "height", 3: "width"}})

    def gru_tagger():
        """Opset 13: Embedding, a bidirectional GRU of two layers; batch and time are symbolic."""
        class Net(nn.Module):
            def __init__(self):
                super().__init__()
                self.embed = nn.Embedding(50, 12)
                self.gru = nn.GRU(12, 10, 2, batch_first=True, bidirectional=True)
                self.out = nn.Linear(20, 7)

            def forward(self, words):
                h, last = self.gru(self.embed(words))
                return self.out(h), last

        return legacy(randomise(Net()), (torch.randint(0, 50, (2, 9)),), 13, input_names=["words"], output_names=["tags", "last"],
                      dynamic_axes={"words": {0: "batch", 1: "time"}, "tags": {0: "batch", 1: "time"}, "last": {1: "batch"}})

    def lstm_lengths():
        """Opset 11: a bidirectional LSTM over packed sequences of several lengths."""
        class Net(nn.Module):
            def __init__(self):
                super().__init__()
                self.lstm = nn.LSTM(6, 8, bidirectional=True)
                self.out = nn.Linear(16, 5)
                self.register_buffer("lengths", torch.tensor([7, 4, 2]))

            def forward(self, x):
                packed = nn.utils.rnn.pack_padded_sequence(x, self.lengths)
                h, (last, cell) = self.lstm(packed)
                h, _ = nn.utils.rnn.pad_packed_sequence(h)
                return self.out(h), last + cell

        return legacy(randomise(Net()), (torch.randn(7, 3, 6),), 11, input_names=["x"], output_names=["y", "state"])

    def rnn():
        """Opset 17: an Elman network with ReLU, of which the last step counts."""
        class Net(nn.Module):
            def __init__(self):
                super().__init__()
                self.rnn = nn.RNN(5, 9, nonlinearity="relu")
                self.out = nn.Linear(9, 3)

            def forward(self, x, state):
                h, state = self.rnn(x, state)
                return self.out(h[-1]), state

        return legacy(randomise(Net()), (torch.randn(6, 2, 5), torch.randn(1, 2, 9)), 17, input_names=["x", "state"],
                      output_names=["y", "next"])

    def translator():
        """Opset 17: an encoder and a decoder layer of a transformer, causal mask."""
        class Net(nn.Module):
            def __init__(self):
                super().__init__()
                self.source, self.target = nn.Embedding(40, 16), nn.Embedding(30, 16)
                self.body = nn.Transformer(16, 4, 1, 1, 32, dropout=0, batch_first=True, activation="gelu")
                self.out = nn.Linear(16, 30)

            def forward(self, source, target):
                n = target.shape[1]
                mask = torch.triu(torch.full((n, n), float("-inf")), 1)
                return self.out(self.body(self.source(source), self.target(target), tgt_mask=mask))

        args = torch.randint(0, 40, (2, 7)), torch.randint(0, 30, (2, 5))
        return legacy(randomise(Net()), args, 17, input_names=["source", "target"], output_names=["logits"])

    def branches():
        """Opset 16: a scripted module: Loop and If, which depend on the batch and fold once it is bound."""
        class Net(nn.Module):
            def __init__(self):
                super().__init__()
                self.step, self.wide, self.narrow = nn.Linear(8, 8), nn.Linear(8, 4), nn.Linear(8, 2)

            def forward(self, x):
                for i in range(x.size(0) - 1):
                    x = torch.tanh(self.step(x)) + x / float(i + 1)
                if x.size(0) > 3:
                    y = self.wide(x).sum(1)
                else:
                    y = self.narrow(x).prod(1)
                return y

        return legacy(torch.jit.script(randomise(Net())), (torch.randn(4, 8),), 16, input_names=["x"], output_names=["y"],
                      dynamic_axes={"x": {0: "batch"}, "y": {0: "batch"}})

    def mixer():
        """Opset 18, the newer exporter; symbolic batch."""
        class Mix(nn.Module):
            def __init__(self, tokens, width):
                super().__init__()
                self.n1, self.n2 = nn.LayerNorm(width), nn.LayerNorm(width)
                self.t = nn.Sequential(nn.Linear(tokens, 12), nn.GELU(), nn.Linear(12, tokens))
                self.c = nn.Sequential(nn.Linear(width, 32), nn.GELU(approximate="tanh"), nn.Linear(32, width))

            def forward(self, x):
                x = x + self.t(self.n1(x).transpose(1, 2)).transpose(1, 2)
                return x + self.c(self.n2(x))

        class Net(nn.Module):
            def __init__(self):
                super().__init__()
                self.patch = nn.Conv2d(3, 16, 4, 4)
                self.mix = nn.Sequential(Mix(16, 16), Mix(16, 16), nn.LayerNorm(16))
                self.out = nn.Linear(16, 10)

            def forward(self, image):
                return self.out(self.mix(self.patch(image).flatten(2).transpose(1, 2)).mean(1))

        return dynamo(randomise(Net()), (torch.randn(2, 3, 16, 16),), 18, input_names=["image"], output_names=["logits"],
                      dynamic_shapes={"image": {0: torch.export.Dim("batch")}})

    def group_norm():
        """Opset 20, the newer exporter: GroupNorm, SiLU, the shuffles of super-resolution."""
        net = nn.Sequential(
            nn.Conv2d(3, 8, 3, padding=1), nn.GroupNorm(4, 8), nn.SiLU(), nn.Conv2d(8, 8, 3, padding=2, dilation=2, groups=2),
            nn.GroupNorm(2, 8), nn.Mish(), nn.Conv2d(8, 12, 3, padding=1), nn.PixelShuffle(2))
        return dynamo(randomise(net), (torch.randn(1, 3, 12, 12),), 20, input_names=["image"], output_names=["larger"])

    def decoder():
        """Opset 19, the newer exporter: a causal decoder with rotary positions, RMS norm and gated units."""
        class Block(nn.Module):
            def __init__(self, d, heads):
                super().__init__()
                self.heads = heads
                self.n1, self.n2 = nn.RMSNorm(d), nn.RMSNorm(d)
                self.qkv, self.o = nn.Linear(d, 3 * d, bias=False), nn.Linear(d, d, bias=False)
                self.gate, self.up, self.down = nn.Linear(d, 24), nn.Linear(d, 24), nn.Linear(24, d)

            def forward(self, x):
                b, n, d = x.shape
                split = lambda t: t.reshape(b, n, self.heads, d // self.heads).transpose(1, 2)
                q, k, v = map(split, self.qkv(self.n1(x)).chunk(3, -1))
                at = torch.arange(n)[:, None] * 100.0 ** (-torch.arange(0, d // self.heads, 2) / d)
                cos, sin = torch.cat([at.cos()] * 2, -1), torch.cat([at.sin()] * 2, -1)

                def rotate(t):
                    a, c = t.chunk(2, -1)
                    return t * cos + torch.cat([-c, a], -1) * sin

                a = F.scaled_dot_product_attention(rotate(q), rotate(k), v, is_causal=True)
                x = x + self.o(a.transpose(1, 2).reshape(b, n, d))
                return x + self.down(F.silu(self.gate(self.n2(x))) * self.up(self.n2(x)))

        class Net(nn.Module):
            def __init__(self):
                super().__init__()
                self.embed = nn.Embedding(60, 16)
                self.blocks = nn.Sequential(Block(16, 2), Block(16, 2), nn.RMSNorm(16))

            def forward(self, tokens):
                return self.blocks(self.embed(tokens)) @ self.embed.weight.T

        return dynamo(randomise(Net()), (torch.randint(0, 60, (1, 10)),), 19, input_names=["tokens"], output_names=["logits"])

    def warp():
        """Opset 20, the newer exporter: a spatial transformer, whose sampling grid is computed."""
        class Net(nn.Module):
            def __init__(self):
                super().__init__()
                self.where = nn.Sequential(nn.Conv2d(1, 4, 5, 2), nn.ELU(), nn.Flatten(), nn.Linear(4 * 6 * 6, 6))
                self.conv = nn.Conv2d(1, 4, 3)

            def forward(self, x):
                theta = self.where(x).reshape(-1, 2, 3) * 0.3 + torch.tensor([[1.0, 0, 0], [0, 1, 0]])
                x = F.grid_sample(x, F.affine_grid(theta, x.shape, align_corners=False), align_corners=False)
                return F.log_softmax(F.softplus(self.conv(x)).amax((2, 3)), 1)

        return dynamo(randomise(Net()), (torch.randn(2, 1, 16, 16),), 20, input_names=["image"], output_names=["scores"])

    for make in wanted([residual, style, mobile, unet, gru_tagger, lstm_lengths, rnn, translator, branches,
                      mixer, group_norm, decoder, warp], only):
        torch.manual_seed(seed(make))
        save(make(), "torch_" + make.__name__)


# ONNX Runtime's quantisation of what PyTorch wrote.


def export_quantize(only):
    import onnx
    import onnx.version_converter
    from onnxruntime import quantization as q

    class Samples(q.CalibrationDataReader):
        def __init__(self, name, shape):
            r = np.random.default_rng(3)
            self.data = iter([{name: r.standard_normal(shape).astype(np.float32)} for _ in range(4)])

        def get_next(self):
            return next(self.data, None)

    def static(source, shape, out, opset=None, **options):
        with tempfile.TemporaryDirectory() as tmp:
            path, read = os.path.join(tmp, "out.onnx"), os.path.join(OUT, source + ".onnx")
            if opset:
                model = onnx.version_converter.convert_version(onnx.load(read), opset)
                read = os.path.join(tmp, "in.onnx")
                onnx.save(onnx.shape_inference.infer_shapes(model), read)
            q.quantize_static(read, path, Samples("image", shape), **options)
            save(onnx.load(path), out)

    def qdq():
        """QuantizeLinear and DequantizeLinear around every operator, weights by channel."""
        static("torch_unet", (1, 1, 24, 20), "quantize_qdq", quant_format=q.QuantFormat.QDQ, per_channel=True,
               activation_type=q.QuantType.QUInt8, weight_type=q.QuantType.QInt8)

    def residual():
        """Sums of two quantised images, a MaxPool of 8 bits; numbers with a sign whose zero points are not 0."""
        static("torch_residual", (2, 3, 32, 32), "quantize_residual", quant_format=q.QuantFormat.QDQ, per_channel=True,
               opset=13, activation_type=q.QuantType.QInt8, weight_type=q.QuantType.QInt8)

    def mixer():
        """Products of two factors that are computed, and of weights without a sign."""
        static("torch_mixer", (3, 3, 16, 16), "quantize_mixer", quant_format=q.QuantFormat.QDQ,
               activation_type=q.QuantType.QUInt8, weight_type=q.QuantType.QUInt8,
               extra_options={"WeightSymmetric": False})

    def operators():
        """QLinearConv and its like, as far as ai.onnx has them."""
        static("torch_group_norm", (1, 3, 12, 12), "quantize_operators", quant_format=q.QuantFormat.QOperator,
               op_types_to_quantize=["Conv", "MatMul"], activation_type=q.QuantType.QInt8, weight_type=q.QuantType.QInt8)

    def dynamic():
        """DynamicQuantizeLinear, MatMulInteger."""
        with tempfile.TemporaryDirectory() as tmp:
            path = os.path.join(tmp, "out.onnx")
            q.quantize_dynamic(os.path.join(OUT, "torch_decoder.onnx"), path, op_types_to_quantize=["MatMul"])
            save(onnx.load(path), "quantize_dynamic")

    for make in wanted([qdq, residual, mixer, operators, dynamic], only):
        make()


# scikit-learn.


def export_sklearn(only):
    from skl2onnx import to_onnx
    from sklearn.gaussian_process import GaussianProcessRegressor
    from sklearn.gaussian_process.kernels import RBF
    from sklearn.neural_network import MLPClassifier, MLPRegressor

    r = np.random.default_rng(5)
    x = r.standard_normal((80, 6)).astype(np.float32)
    y = np.sin(x[:, 0]) + x[:, 1] * x[:, 2]

    def regressor():
        """A multilayer perceptron; ai.onnx only."""
        net = MLPRegressor(hidden_layer_sizes=(20, 12), activation="tanh", max_iter=60, random_state=1).fit(x, np.stack([y, -y], 1))
        return to_onnx(net, x[:1], target_opset=15)

    def gaussian():
        """A Gaussian process, whose distances are computed by Scan."""
        net = GaussianProcessRegressor(RBF(1.5), alpha=0.1, optimizer=None).fit(x[:24], y[:24])
        return to_onnx(net, x[:1], target_opset=13)

    def classifier():
        """Ends in operators of ai.onnx.ml, which rammerc refuses."""
        net = MLPClassifier(hidden_layer_sizes=(8,), max_iter=20, random_state=1).fit(x, (y > 0).astype(int))
        return to_onnx(net, x[:1], target_opset=15, options={"zipmap": False})

    for make in wanted([regressor, gaussian, classifier], only):
        save(make(), "sklearn_" + make.__name__)


# JAX by jax2onnx.


def export_jax(only):
    import jax
    import jax.numpy as jnp
    from jax2onnx import to_onnx

    def weights(seed, *shapes):
        r = np.random.default_rng(seed)
        return [jnp.asarray(r.standard_normal(s).astype(np.float32) / np.sqrt(s[0])) for s in shapes]

    def convnet():
        """Convolutions of the layout NHWC, pooling by reduce_window, a mean."""
        r = np.random.default_rng(7)
        k1, k2 = (jnp.asarray(r.standard_normal(s).astype(np.float32) / 5) for s in [(3, 3, 3, 8), (3, 3, 8, 12)])
        w, = weights(8, (12, 10))

        def net(x):
            conv = lambda a, k: jax.lax.conv_general_dilated(a, k, (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC"))
            x = jax.nn.relu(conv(x, k1))
            x = jax.lax.reduce_window(x, -jnp.inf, jax.lax.max, (1, 2, 2, 1), (1, 2, 2, 1), "VALID")
            return jax.nn.softmax(jax.nn.gelu(conv(x, k2)).mean((1, 2)) @ w)

        return to_onnx(net, inputs=[(2, 12, 12, 3)], model_name="convnet")

    def attention():
        """einsum, layer norm, softmax and a residual."""
        q, k, v, o = weights(9, (16, 2, 8), (16, 2, 8), (16, 2, 8), (16, 16))

        def net(x):
            h = (x - x.mean(-1, keepdims=True)) / jnp.sqrt(x.var(-1, keepdims=True) + 1e-5)
            s = jnp.einsum("bqhd,bkhd->bhqk", jnp.einsum("bnc,chd->bnhd", h, q), jnp.einsum("bnc,chd->bnhd", h, k))
            a = jnp.einsum("bhqk,bkhd->bqhd", jax.nn.softmax(s / 8**0.5), jnp.einsum("bnc,chd->bnhd", h, v))
            return x + a.reshape(*x.shape) @ o

        return to_onnx(net, inputs=[(2, 6, 16)], model_name="attention")

    def recurrence():
        """lax.scan over the rows of an image."""
        a, b = weights(10, (8, 8), (8, 8))

        def net(x):
            def step(h, row):
                h = jnp.tanh(h @ a + row @ b)
                return h, h.sum()

            return jax.lax.scan(step, jnp.zeros(8), x)

        return to_onnx(net, inputs=[(5, 8)], model_name="recurrence")

    for make in wanted([convnet, attention, recurrence], only):
        save(make(), "jax_" + make.__name__)


# Keras and TensorFlow by tf2onnx.


def export_tensorflow(only):
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    import tensorflow as tf
    import tf2onnx
    from tensorflow import keras

    layers = keras.layers

    def convert(net, shapes, opset):
        signature = [tf.TensorSpec(s, tf.float32, name=f"x{i}") for i, s in enumerate(shapes)]
        fn = tf.function(lambda *x: net(x[0] if len(x) == 1 else list(x), training=False), input_signature=signature)
        return tf2onnx.convert.from_function(fn, signature, opset=opset)[0]

    def separable():
        """Opset 13: separable convolutions with SAME borders in the layout NHWC, a batch left open."""
        net = keras.Sequential([
            layers.Input((17, 17, 3)), layers.SeparableConv2D(8, 3, 2, padding="same"), layers.BatchNormalization(),
            layers.ReLU(6), layers.DepthwiseConv2D(3, padding="same"), layers.UpSampling2D(2, interpolation="bilinear"),
            layers.Conv2DTranspose(4, 3, 2, padding="same"), layers.GlobalMaxPooling2D(), layers.Dense(5, "softmax")])
        model = convert(net, [(None, 17, 17, 3)], 13)
        for v in [*model.graph.input, *model.graph.output, *model.graph.value_info]:
            for d in v.type.tensor_type.shape.dim:
                if d.dim_param.startswith("unk__"):  # numbered anew by every run
                    d.dim_param = "batch" if v in model.graph.input or v in model.graph.output else ""
        return model

    def lstm():
        """Opset 15: a LSTM and a GRU, as the converter recognises them in TensorFlow's loops."""
        net = keras.Sequential([layers.Input((8, 6)), layers.LSTM(10, return_sequences=True), layers.GRU(7), layers.Dense(3)])
        return convert(net, [(2, 8, 6)], 15)

    def attention():
        """Opset 17: MultiHeadAttention, LayerNormalization."""
        x = layers.Input((9, 16))
        h = layers.LayerNormalization()(x)
        h = x + layers.MultiHeadAttention(4, 4)(h, h)
        h = layers.Add()([h, layers.Dense(16)(layers.Dense(32, "swish")(layers.LayerNormalization()(h)))])
        return convert(keras.Model(x, layers.GlobalAveragePooling1D()(h)), [(2, 9, 16)], 17)

    for make in wanted([separable, lstm, attention], only):
        keras.utils.set_random_seed(seed(make))
        save(make(), "tensorflow_" + make.__name__)


# onnxscript: models written as Python functions.


def export_onnxscript(only):
    global FLOAT  # script looks annotations up among globals
    import onnx
    from onnxscript import FLOAT, script, values
    from onnxscript import opset21 as op

    local = values.Opset("rammerc.test", 1)

    @script(local, default_opset=op)
    def Gate(x, w):
        """A function of the model."""
        h = op.MatMul(x, w)
        return op.Sigmoid(h) * h

    def functions():
        """Opset 21: a function of the model, a loop of known length and a condition that folds."""
        r = np.random.default_rng(11)
        w1 = onnx.numpy_helper.from_array(r.standard_normal((6, 6)).astype(np.float32) / 2, "w1")
        w2 = onnx.numpy_helper.from_array(r.standard_normal((6, 3)).astype(np.float32), "w2")

        @script(default_opset=op)
        def net(x: FLOAT[4, 6]) -> FLOAT[4, 3]:
            a = op.Constant(value=w1)
            b = op.Constant(value=w2)
            h = op.Identity(x)
            for i in range(3):
                h = Gate(h, a) + h * op.Constant(value_float=0.5)
            wide = op.Constant(value_int=1) > op.Constant(value_int=0)
            if wide:
                y = op.MatMul(h, b)
            else:
                y = op.Slice(h, [0], [3], [1])
            return op.Selu(y)

        return net.to_model_proto()

    for make in wanted([functions], only):
        save(make(), "onnxscript_" + make.__name__)


# spox: models built value by value.


def export_spox(only):
    import spox
    import spox.opset.ai.onnx.v17 as op

    def signal():
        """Opset 17: a spectrogram by STFT with a window, pooled."""
        x = spox.argument(spox.Tensor(np.float32, (1, 256, 1)))
        window = op.hann_window(op.const(np.int64(32)))
        s = op.stft(x, op.const(np.int64(16)), window, op.const(np.int64(32)))
        power = op.reduce_sum_square(s, axes=[-1], keepdims=0)
        y = op.log(op.add(op.reduce_mean(power, axes=[1], keepdims=0), op.const(np.float32(1e-3))))
        return spox.build({"signal": x}, {"spectrum": y})

    def detector():
        """Opset 17: boxes of a grid, and the three best of them by TopK and GatherND."""
        r = np.random.default_rng(12)
        f = spox.argument(spox.Tensor(np.float32, (1, 8, 6, 6)))
        k = op.const((r.standard_normal((5, 8, 1, 1)) / 3).astype(np.float32))
        flat = op.reshape(op.transpose(op.conv(f, k), perm=[0, 2, 3, 1]), op.const(np.array([36, 5])))
        box, score = op.split(flat, op.const(np.array([4, 1])), outputs_count=2, axis=1)
        best, where = op.top_k(op.squeeze(score, op.const(np.array([1]))), op.const(np.array([3])))
        chosen = op.gather_nd(op.sigmoid(box), op.unsqueeze(where, op.const(np.array([1]))))
        return spox.build({"features": f}, {"boxes": chosen, "scores": op.sigmoid(best)})

    for make in wanted([signal, detector], only):
        save(make(), "spox_" + make.__name__)


EXPORTERS = {
    "torch": export_torch, "quantize": export_quantize, "sklearn": export_sklearn, "jax": export_jax,
    "tensorflow": export_tensorflow, "onnxscript": export_onnxscript, "spox": export_spox,
}


def main():
    global OUT
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("exporter", nargs="+", choices=EXPORTERS)
    p.add_argument("--out", default=OUT)
    p.add_argument("--only", help="name of one model")
    a = p.parse_args()
    OUT = a.out
    for e in a.exporter:
        EXPORTERS[e](a.only)


if __name__ == "__main__":
    sys.exit(main())
