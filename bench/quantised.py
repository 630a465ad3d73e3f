"""Writes models whose numbers are stored in 8 bits, and the same models in float32, without the package onnx.

    python3 quantised.py OUT [NAME…]     NAME as below; all of them by default

resnet50_float, bert_float: ResNet-50, and two layers of a BERT at 128 tokens without its embeddings.
resnet50_qdq, bert_qdq: the same with QuantizeLinear and DequantizeLinear where ONNX Runtime's quantize_static puts them:
around convolutions, additions, pools and the last product; around products with weights. Activations are uint8, weights
int8 with a scale for each output channel.
resnet50_qop: the same as QLinearConv and QLinearMatMul. bert_dynamic: DynamicQuantizeLinear and MatMulInteger.
resnet_tiny_qdq, bert_tiny_qdq: a few small layers of the same kinds. In those called _signed activations are int8, in
those called _plain weights are uint8 with one scale and one zero point for all channels.

Weights are random, of such a size that activations of every layer have about the same variance. So all of them are
quantised with a few scales, and few saturate.
"""
import os
import sys

import numpy as np

from onnx_file import constant, model, node, value

LEVELS = 40.0  # codes that stand for the standard deviation of activations


class Graph:
    """Nodes and constants; form is float, qdq, qop or dynamic. signed and plain are as above."""

    def __init__(self, form, seed, signed=False, plain=False):
        self.form, self.random, self.signed, self.plain = form, np.random.default_rng(seed), signed, plain
        self.nodes, self.constants, self.count = [], [], 0

    def fresh(self, base):
        self.count += 1
        return f"{base}_{self.count}"

    def constant(self, base, array, dtype="float32"):
        name = self.fresh(base)
        self.constants.append(constant(name, array, dtype))
        return name

    def add(self, op, inputs, **attributes):
        out = self.fresh(op)
        self.nodes.append(node(op, inputs, [out], **attributes))
        return out

    # A tensor of the float graph is a name. One of a quantised graph is (codes, scale, zero): the names of the codes, and the
    # numbers.

    def quantized(self, x, zero=128, scale=1 / LEVELS):
        """x through QuantizeLinear and DequantizeLinear."""
        if self.form != "qdq":
            return x
        z = self.constant("zero", zero - 128, "int8") if self.signed else self.constant("zero", zero, "uint8")
        s = self.constant("scale", np.float32(scale))
        return self.add("DequantizeLinear", [self.add("QuantizeLinear", [x, s, z]), s, z])

    def codes(self, *shape):
        """Weights of int8, as normal numbers of which few are cut off."""
        return np.clip(np.rint(self.random.standard_normal(shape, dtype=np.float32) * LEVELS), -127, 127).astype(np.int8)

    def scales(self, count, depth):
        """Scales of weights that keep the variance of what they multiply."""
        size = 1 if self.plain else count
        return np.resize(self.random.uniform(0.9, 1.1, size) / (LEVELS * np.sqrt(depth)), count).astype(np.float32)

    def weights(self, codes, scales, axis):
        """Constants by channel, dequantised."""
        shape = [1] * codes.ndim
        shape[axis] = -1
        if self.form in ("float", "dynamic"):
            return self.constant("weights", codes * scales.reshape(shape))
        if self.plain:
            return self.add("DequantizeLinear", [
                self.constant("codes", codes.astype(np.int16) + 128, "uint8"), self.constant("scale", scales[0]),
                self.constant("zero", 128, "uint8")])
        return self.add("DequantizeLinear", [
            self.constant("codes", codes, "int8"), self.constant("scales", scales),
            self.constant("zeros", np.zeros(len(scales)), "int8")], axis=axis)

    def bias(self, count, scales, factor=1 / LEVELS):
        """A bias, of int32 with the scale of the products where the graph is quantised."""
        codes = np.rint(0.1 * self.random.standard_normal(count) / (scales * factor)).astype(np.int32)
        if self.form == "float":
            return self.constant("bias", codes * scales * np.float32(factor))
        return self.add("DequantizeLinear", [
            self.constant("bias", codes, "int32"), self.constant("scales", scales * np.float32(factor)),
            self.constant("zeros", np.zeros(count), "int32")], axis=0)

    def file(self, name, inputs, outputs):
        return model(name, self.nodes, self.constants, inputs, outputs)


# ResNet-50.

STAGES = ((3, 64, 1), (4, 128, 2), (6, 256, 2), (3, 512, 2))  # blocks, channels, stride


class Convolutions(Graph):
    """Convolutions with ReLUs. In form qop values are codes between QLinear operators, else floats."""

    def conv(self, x, inputs, outputs, kernel, stride=1, relu=True, gain=1.4):
        codes, scales = self.codes(outputs, inputs, kernel, kernel), self.scales(outputs, inputs * kernel * kernel) * np.float32(gain)
        window = {"kernel_shape": [kernel, kernel], "pads": [kernel // 2] * 4, "strides": [stride, stride]}
        zero = 0 if relu else 128
        if self.form == "qop":
            name, from_zero = x
            bias = np.rint(0.1 * self.random.standard_normal(outputs) / scales * LEVELS).astype(np.int32)
            s = self.constant("scale", np.float32(1 / LEVELS))
            y = self.add("QLinearConv", [
                name, s, self.constant("zero", from_zero, "uint8"), self.constant("codes", codes, "int8"),
                self.constant("scales", scales), self.constant("zeros", np.zeros(outputs), "int8"), s,
                self.constant("zero", zero, "uint8"), self.constant("bias", bias, "int32")], **window)
            return y, zero
        y = self.add("Conv", [x, self.weights(codes, scales, 0), self.bias(outputs, scales)], **window)
        if relu and self.form == "float":
            y = self.add("Relu", [y])
        return self.quantized(y, zero)

    def sum(self, x, y):
        if self.form == "qop":
            parts = []
            for name, zero in (x, y):
                s, z = self.constant("scale", np.float32(1 / LEVELS)), self.constant("zero", zero, "uint8")
                parts.append(self.add("DequantizeLinear", [name, s, z]))
            z = self.constant("zero", 0, "uint8")
            return self.add("QuantizeLinear", [self.add("Relu", [self.add("Add", parts)]), s, z]), 0
        return self.quantized(self.add("Relu", [self.add("Add", [x, y])]), 0)

    def pool(self, x):
        window = {"kernel_shape": [3, 3], "pads": [1, 1, 1, 1], "strides": [2, 2]}
        if self.form == "qop":
            return self.add("MaxPool", [x[0]], **window), x[1]
        return self.quantized(self.add("MaxPool", [x], **window), 0)


def resnet50(form, batch=1, stages=STAGES, side=224, classes=1000, **kinds):
    g = Convolutions(form, 1, **kinds)
    x = "image"
    if form == "qop":
        s, z = g.constant("scale", np.float32(1 / LEVELS)), g.constant("zero", 128, "uint8")
        x = g.add("QuantizeLinear", [x, s, z]), 128
    else:
        x = g.quantized(x)
    channels = stages[0][1]
    x = g.pool(g.conv(x, 3, channels, 7, 2))
    for blocks, width, stride in stages:
        for b in range(blocks):
            step = stride if b == 0 else 1
            y = g.conv(g.conv(x, channels, width, 1), width, width, 3, step)
            y = g.conv(y, width, 4 * width, 1, relu=False, gain=0.7)
            if b == 0:
                x = g.conv(x, channels, 4 * width, 1, step, relu=False, gain=0.7)
            x, channels = g.sum(x, y), 4 * width
    if form == "qop":
        s, z = g.constant("scale", np.float32(1 / LEVELS)), g.constant("zero", x[1], "uint8")
        x = g.add("DequantizeLinear", [x[0], s, z])
    x = g.quantized(g.add("GlobalAveragePool", [x]), 0)
    x = g.quantized(g.add("Flatten", [x]), 0)
    codes, scales = g.codes(classes, channels), g.scales(classes, channels)
    if form == "qop":
        g.form = "qdq"
        x = g.quantized(x, 0)
    w = g.weights(codes, scales, 0)
    g.nodes.append(node("Gemm", [x, w, g.bias(classes, scales)], ["logits"], transB=1))
    return g.file("resnet50", [value("image", batch, 3, side, side)], [value("logits", batch, classes)])


# BERT.


class Transformer(Graph):
    def product(self, x, inputs, outputs, gain=1.0):
        """x times weights, plus a bias of float32, which quantize_static leaves so behind a product."""
        codes, scales = self.codes(inputs, outputs), self.scales(outputs, inputs) * np.float32(gain)
        bias = self.constant("bias", 0.1 * self.random.standard_normal(outputs))
        if self.form == "dynamic":
            q, s, z = (self.fresh(n) for n in ("codes", "scale", "zero"))
            self.nodes.append(node("DynamicQuantizeLinear", [x], [q, s, z]))
            sums = self.add("MatMulInteger", [q, self.constant("codes", codes, "int8"), z, self.constant("zero", 0, "int8")])
            both = self.add("Mul", [s, self.constant("scale", np.float32(scales[0]))])
            y = self.add("Mul", [self.add("Cast", [sums], to=1), both])
        else:
            y = self.quantized(self.add("MatMul", [self.quantized(x), self.weights(codes, scales, 1)]))
        return self.add("Add", [y, bias])

    def normalised(self, x, width):
        return self.add("LayerNormalization", [
            x, self.constant("scale", self.random.uniform(0.9, 1.1, width)),
            self.constant("bias", 0.1 * self.random.standard_normal(width))], axis=-1, epsilon=1e-12)

    def heads(self, x, batch, tokens, heads, depth, perm):
        shape = self.constant("shape", [batch, tokens, heads, depth], "int64")
        return self.add("Transpose", [self.add("Reshape", [x, shape])], perm=perm)


def bert(form, layers=2, batch=1, tokens=128, width=768, heads=12, inner=3072, **kinds):
    g = Transformer(form, 2, **kinds)
    depth = width // heads
    x = g.normalised("hidden", width)
    for _ in range(layers):
        q, k, v = (g.product(x, width, width) for _ in range(3))
        q = g.heads(q, batch, tokens, heads, depth, [0, 2, 1, 3])
        k = g.heads(k, batch, tokens, heads, depth, [0, 2, 3, 1])
        v = g.heads(v, batch, tokens, heads, depth, [0, 2, 1, 3])
        scores = g.add("Div", [g.add("MatMul", [q, k]), g.constant("root", np.float32(np.sqrt(depth)))])
        y = g.add("MatMul", [g.add("Softmax", [scores], axis=-1), v])
        y = g.add("Transpose", [y], perm=[0, 2, 1, 3])
        y = g.add("Reshape", [y, g.constant("shape", [batch, tokens, width], "int64")])
        x = g.normalised(g.add("Add", [g.product(y, width, width), x]), width)
        y = g.product(x, width, inner)
        e = g.add("Erf", [g.add("Div", [y, g.constant("root", np.float32(np.sqrt(2)))])])
        y = g.add("Mul", [g.add("Mul", [y, g.add("Add", [e, g.constant("one", np.float32(1))])]), g.constant("half", np.float32(0.5))])
        x = g.normalised(g.add("Add", [g.product(y, inner, width), x]), width)
    g.nodes.append(node("Identity", [x], ["out"]))
    return g.file("bert", [value("hidden", batch, tokens, width)], [value("out", batch, tokens, width)])


def resnet_tiny(form, **kinds):
    return resnet50(form, 2, ((1, 16, 1), (2, 24, 2)), 24, 10, **kinds)


def bert_tiny(form, **kinds):
    return bert(form, 1, 2, 9, 48, 3, 80, **kinds)


MODELS = {
    "resnet50_float": lambda: resnet50("float"), "resnet50_qdq": lambda: resnet50("qdq"), "resnet50_qop": lambda: resnet50("qop"),
    "resnet50_float_b8": lambda: resnet50("float", 8), "resnet50_qdq_b8": lambda: resnet50("qdq", 8),
    "resnet_tiny_qdq": lambda: resnet_tiny("qdq"), "resnet_tiny_qop": lambda: resnet_tiny("qop"),
    "resnet_tiny_signed_qdq": lambda: resnet_tiny("qdq", signed=True),
    "resnet_tiny_plain_qdq": lambda: resnet_tiny("qdq", plain=True),
    "bert_float": lambda: bert("float"), "bert_qdq": lambda: bert("qdq"), "bert_dynamic": lambda: bert("dynamic"),
    "bert_float_b8": lambda: bert("float", batch=8), "bert_qdq_b8": lambda: bert("qdq", batch=8),
    "bert_tiny_qdq": lambda: bert_tiny("qdq"), "bert_tiny_dynamic": lambda: bert_tiny("dynamic"),
    "bert_tiny_signed_qdq": lambda: bert_tiny("qdq", signed=True),
    "bert_tiny_plain_qdq": lambda: bert_tiny("qdq", plain=True),
}


def main():
    out, names = sys.argv[1], sys.argv[2:] or list(MODELS)
    os.makedirs(out, exist_ok=True)
    for name in names:
        with open(os.path.join(out, name + ".onnx"), "wb") as f:
            f.write(MODELS[name]())


if __name__ == "__main__":
    main()
