#!/usr/bin/env python3
"""Writes decoders with caches into a folder, in the form in which PyTorch's exporter based on TorchScript writes those
of the transformers library: GPT-2, the decoder of Whisper behind its first token, and GPT-2 with a branch for the first
tokens, as tools merge two exports. The keys and values of the tokens so far are inputs whose length is a symbol, and
outputs that are longer by the new tokens.

    python3 scripts/export_decoders.py testdata/models/decoders
"""
import math
import sys

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

LAYERS, HEADS, DEPTH, WORDS, POSITIONS = 2, 2, 16, 50, 64
HIDDEN = HEADS * DEPTH
LEAST = -3.4028234663852886e38


class Graph:
    """Nodes and constants of a model, with the names that the exporter gives."""

    def __init__(self, seed):
        self.nodes, self.constants, self.random, self.count = [], [], np.random.default_rng(seed), 0

    def op(self, kind, *inputs, outputs=1, **attributes):
        self.count += 1
        names = [f"/{kind}_{self.count}_output_{i}" for i in range(outputs)]
        self.nodes.append(helper.make_node(kind, list(inputs), names, name=f"/{kind}_{self.count}", **attributes))
        return names[0] if outputs == 1 else names

    def const(self, value, kind=np.int64):
        self.count += 1
        name = f"const_{self.count}"
        self.constants.append(numpy_helper.from_array(np.asarray(value, kind), name))
        return name

    def weight(self, *shape, scale=0.0):
        scale = scale or 1.2 / math.sqrt(shape[0])
        return self.const(self.random.standard_normal(shape) * scale, np.float32)

    def extent(self, x, axis):
        """One extent of x, as a number without dims."""
        return self.op("Gather", self.op("Shape", x), self.const(axis), axis=0)

    def shape(self, *parts):
        """A shape of numbers, and of extents."""
        vectors = [self.const([p]) if isinstance(p, int) else self.op("Unsqueeze", p, self.const([0])) for p in parts]
        return self.op("Concat", *vectors, axis=0)

    def linear(self, x, wide, narrow):
        return self.op("Add", self.op("MatMul", x, self.weight(wide, narrow)), self.weight(narrow, scale=0.1))

    def norm(self, x):
        scale = self.const(1 + 0.1 * self.random.standard_normal(HIDDEN), np.float32)
        return self.op("LayerNormalization", x, scale, self.weight(HIDDEN, scale=0.1), axis=-1, epsilon=1e-5)

    def heads(self, x, batch, rows):
        return self.op("Transpose", self.op("Reshape", x, self.shape(batch, rows, HEADS, DEPTH)), perm=[0, 2, 1, 3])

    def joined(self, x, batch, rows):
        return self.op("Reshape", self.op("Transpose", x, perm=[0, 2, 1, 3]), self.shape(batch, rows, HIDDEN))

    def expand(self, x, *parts):
        """Expand as the exporter writes it: an extent of -1 stands for that of x."""
        shape = self.shape(*parts)
        ones = self.op("ConstantOfShape", self.op("Shape", shape),
                       value=numpy_helper.from_array(np.array([1], np.int64)))
        asked = self.op("Equal", shape, self.op("Mul", ones, self.const(-1)))
        return self.op("Expand", x, self.op("Where", asked, ones, shape))

    def save(self, path, inputs, outputs, name):
        for (out, source) in outputs:
            self.nodes.append(helper.make_node("Identity", [source], [out.name], name=f"/{out.name}"))
        graph = helper.make_graph(self.nodes, name, inputs, [o for o, _ in outputs], self.constants)
        model = helper.make_model(graph, producer_name="rammerc scripts/export_decoders.py",
                                  opset_imports=[helper.make_opsetid("", 17)])
        model.ir_version = 8
        onnx.checker.check_model(model, full_check=True)
        onnx.save(model, path)


def info(name, kind, *shape):
    return helper.make_tensor_value_info(name, kind, list(shape))


def cache(name, length):
    return info(name, TensorProto.FLOAT, "batch_size", HEADS, length, DEPTH)


def gpt2_body(g, cached=True):
    """The logits, and the keys and values of all layers; without caches the tokens are the first ones."""
    batch, seq = g.extent("input_ids", 0), g.extent("input_ids", 1)
    past = g.extent("past_key_values.0.key", -2) if cached else g.const(0)
    total = g.op("Add", past, seq)
    places = g.op("Range", past, total, g.const(1))
    places = g.op("Reshape", g.op("Unsqueeze", places, g.const([0])), g.shape(-1, seq))
    mask = g.op("Reshape", "attention_mask", g.shape(batch, -1))
    mask = g.op("Unsqueeze", g.op("Unsqueeze", mask, g.const([1])), g.const([2]))
    mask = g.op("Sub", g.const(1, np.float32), g.op("Cast", mask, to=TensorProto.FLOAT))
    mask = g.op("Mul", mask, g.const(LEAST, np.float32))
    words = g.weight(WORDS, HIDDEN, scale=0.5)
    x = g.op("Add", g.op("Gather", words, "input_ids"), g.op("Gather", g.weight(POSITIONS, HIDDEN, scale=0.5), places))
    causal = g.const(np.tril(np.ones((1, 1, POSITIONS, POSITIONS))), bool)
    presents = []
    for i in range(LAYERS):
        y = g.linear(g.norm(x), HIDDEN, 3 * HIDDEN)
        parts = g.op("Split", y, g.const([HIDDEN] * 3), outputs=3, axis=2)
        q, k, v = (g.heads(p, batch, seq) for p in parts)
        if cached:
            k = g.op("Concat", f"past_key_values.{i}.key", k, axis=-2)
            v = g.op("Concat", f"past_key_values.{i}.value", v, axis=-2)
        presents += [k, v]
        scores = g.op("MatMul", q, g.op("Transpose", k, perm=[0, 1, 3, 2]))
        scores = g.op("Div", scores, g.const(math.sqrt(DEPTH), np.float32))
        keys, rows = g.extent(k, -2), g.extent(q, -2)
        first = g.op("Unsqueeze", g.op("Sub", keys, rows), g.const([0]))
        behind = g.op("Unsqueeze", keys, g.const([0]))
        seen = g.op("Slice", causal, first, behind, g.const([2]), g.const([1]))
        seen = g.op("Slice", seen, g.const([0]), behind, g.const([3]), g.const([1]))
        scores = g.op("Add", g.op("Where", seen, scores, g.const(LEAST, np.float32)), mask)
        y = g.op("MatMul", g.op("Softmax", scores, axis=-1), v)
        x = g.op("Add", g.linear(g.joined(y, batch, seq), HIDDEN, HIDDEN), x)
        y = g.linear(g.norm(x), HIDDEN, 4 * HIDDEN)
        cube = g.op("Mul", g.op("Pow", y, g.const(3, np.float32)), g.const(0.044715, np.float32))
        t = g.op("Tanh", g.op("Mul", g.op("Add", y, cube), g.const(math.sqrt(2 / math.pi), np.float32)))
        y = g.op("Mul", g.op("Mul", y, g.const(0.5, np.float32)), g.op("Add", t, g.const(1, np.float32)))
        x = g.op("Add", x, g.linear(y, 4 * HIDDEN, HIDDEN))
    return g.op("MatMul", g.norm(x), g.op("Transpose", words, perm=[1, 0])), presents


def gpt2_ports(logits, presents):
    """Inputs and outputs, and where the latter come from."""
    longer = "past_sequence_length + sequence_length"
    inputs = [info("input_ids", TensorProto.INT64, "batch_size", "sequence_length")]
    outputs = [(info("logits", TensorProto.FLOAT, "batch_size", "sequence_length", WORDS), logits)]
    for i in range(LAYERS):
        for k, what in enumerate(["key", "value"]):
            inputs.append(cache(f"past_key_values.{i}.{what}", "past_sequence_length"))
            outputs.append((cache(f"present.{i}.{what}", longer), presents[2 * i + k]))
    inputs.append(info("attention_mask", TensorProto.INT64, "batch_size", longer))
    return inputs, outputs


def gpt2(path):
    g = Graph(1)
    g.save(f"{path}/gpt2.onnx", *gpt2_ports(*gpt2_body(g)), "gpt2")


def merged(path):
    """GPT-2 as one file for the prompt and for the tokens behind it: which of two branches runs, an input says."""
    whole, branches, known = Graph(1), [], {}
    for cached in (True, False):
        g = Graph(1)
        logits, presents = gpt2_body(g, cached)
        names = {}
        for c in g.constants:
            old, what = c.name, (c.data_type, tuple(c.dims), c.raw_data)
            if what not in known:
                c.name = known[what] = f"{c.name}_{int(cached)}"
                whole.constants.append(c)
            names[old] = known[what]
        for n in g.nodes:
            n.input[:] = [names.get(x, x) for x in n.input]
        results = [helper.make_tensor_value_info(x, TensorProto.FLOAT, None) for x in (logits, *presents)]
        branches.append(helper.make_graph(g.nodes, "cached" if cached else "first", [], results))
    results = whole.op("If", "use_cache_branch", outputs=1 + 2 * LAYERS, then_branch=branches[0], else_branch=branches[1])
    inputs, outputs = gpt2_ports(results[0], results[1:])
    whole.save(f"{path}/merged.onnx", inputs + [info("use_cache_branch", TensorProto.BOOL, 1)], outputs, "merged")


def attention(g, x, k, v, batch, seq, mask=None):
    """Attention of Whisper's decoder: queries are scaled, and as much of the mask is taken as there are keys."""
    q = g.heads(g.op("Mul", g.linear(x, HIDDEN, HIDDEN), g.const(DEPTH ** -0.5, np.float32)), batch, seq)
    scores = g.op("MatMul", q, g.op("Transpose", k, perm=[0, 1, 3, 2]))
    if mask:
        keys = g.op("Unsqueeze", g.extent(k, -2), g.const([0]))
        scores = g.op("Add", scores, g.op("Slice", mask, g.const([0]), keys, g.const([3]), g.const([1])))
    y = g.op("MatMul", g.op("Softmax", scores, axis=-1), v)
    return g.linear(g.joined(y, batch, seq), HIDDEN, HIDDEN)


def whisper(path):
    g = Graph(2)
    batch, seq = g.extent("input_ids", 0), g.extent("input_ids", 1)
    past = g.extent("past_key_values.0.decoder.key", 2)
    total = g.op("Add", past, seq)
    words = g.weight(WORDS, HIDDEN, scale=0.5)
    ends = [g.op("Unsqueeze", n, g.const([0])) for n in (past, total)]
    places = g.op("Slice", g.weight(POSITIONS, HIDDEN, scale=0.5), *ends, g.const([0]), g.const([1]))
    x = g.op("Add", g.op("Gather", words, g.op("Reshape", "input_ids", g.shape(-1, seq))), places)
    rows = g.op("Reshape", g.op("Range", past, total, g.const(1)), g.shape(-1, 1))
    later = g.op("Greater", g.op("Range", g.const(0), total, g.const(1)), rows)
    mask = g.op("ConstantOfShape", g.shape(seq, total), value=numpy_helper.from_array(np.array([LEAST], np.float32)))
    mask = g.op("Mul", mask, g.op("Cast", later, to=TensorProto.FLOAT))
    mask = g.op("Unsqueeze", g.op("Unsqueeze", mask, g.const([0])), g.const([1]))
    mask = g.expand(mask, batch, 1, -1, -1)
    presents, sides = [], ["decoder.key", "decoder.value", "encoder.key", "encoder.value"]
    for i in range(LAYERS):
        past_key, past_value, encoder_key, encoder_value = (f"past_key_values.{i}.{s}" for s in sides)
        y = g.norm(x)
        k = g.op("Concat", past_key, g.heads(g.op("MatMul", y, g.weight(HIDDEN, HIDDEN)), batch, seq), axis=2)
        v = g.op("Concat", past_value, g.heads(g.linear(y, HIDDEN, HIDDEN), batch, seq), axis=2)
        presents += [k, v]
        x = g.op("Add", x, attention(g, y, k, v, batch, seq, mask))
        x = g.op("Add", x, attention(g, g.norm(x), encoder_key, encoder_value, batch, seq))
        y = g.linear(g.norm(x), HIDDEN, 4 * HIDDEN)
        y = g.op("Mul", g.op("Mul", y, g.op("Add", g.op("Erf", g.op("Div", y, g.const(math.sqrt(2), np.float32))),
                                            g.const(1, np.float32))), g.const(0.5, np.float32))
        x = g.op("Add", x, g.linear(y, 4 * HIDDEN, HIDDEN))
    x = g.norm(x)
    logits = g.op("MatMul", x, g.op("Transpose", words, perm=[1, 0]))
    last = g.op("Gather", logits, g.const(-1), axis=1)
    longer = "past_decoder_sequence_length + decoder_sequence_length"
    inputs = [info("input_ids", TensorProto.INT64, "batch_size", "decoder_sequence_length")]
    outputs = [(info("logits", TensorProto.FLOAT, "batch_size", "decoder_sequence_length", WORDS), logits),
               (info("last", TensorProto.FLOAT, "batch_size", WORDS), last)]
    for i in range(LAYERS):
        for k, side in enumerate(sides):
            length = "past_decoder_sequence_length" if k < 2 else "encoder_sequence_length"
            inputs.append(cache(f"past_key_values.{i}.{side}", length))
        for k, side in enumerate(sides[:2]):
            outputs.append((cache(f"present.{i}.{side}", longer), presents[2 * i + k]))
    g.save(f"{path}/whisper.onnx", inputs, outputs, "whisper")


if __name__ == "__main__":
    gpt2(sys.argv[1])
    merged(sys.argv[1])
    whisper(sys.argv[1])
