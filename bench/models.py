"""Writes the models that bench/micro measures, deterministically.

    python3 models.py OUT [NAME…]     NAME as below; all of them by default
    python3 models.py --list          one JSON object: what there is

The graphs need the package onnx, unless OUT has them already; the weights need numpy alone, so that
small graphs can be made on one machine and large weights on another.

chain_N: dependent products of a vector with N×N float32 matrices, each with weights of its own.

The others are steps of a fixed pattern between rows, which are values of their own: a node makes a row
from rows of the step before, so that a step is as many rTasks as there are rows. Each comes in two
lengths, NAME_short and NAME_long; the difference is what steps take without what a launch takes. edge has
a row a step, which the next one normalises again, so that no two of them become one: bench/place.py puts them on
one vEU or on two in turn, and what the latter take more is what the edges take.
Means keep values between the largest and the least; dense rows go on changing because the rows that
they read fall into classes that take turns, the rows of a group because each step brings a new operand.

decoder: two layers of a Llama-type transformer at a prompt of 32 tokens, as exporters write it in primitive operators:
RMSNorm, rotary position embedding, causal attention whose key and value heads are shared by two query heads, SwiGLU.
It is small, and its plans mix what the other models have one at a time: streamed weights, operands that the executor
copies to shared memory, several sizes of rTask on one vEU.

token_1b, token_tiny: the same decoder at one token after others, whose keys and values are inputs (past_key_N,
past_value_N) and whose own keys and values are outputs (key_N, value_N), for the caller to append. token_1b has the
1.1 billion parameters of small Llama models, token_tiny its structure.
"""
import json
import math
import os
import sys

CHAINS = {512: 64, 1024: 64, 2048: 24, 4096: 12}  # N → steps

ROWS = 132  # as many as an H100 or H200 has multiprocessors


def neighbour(row):
    return [row, (row + 1) % ROWS]


def spread(row):
    return [(row + 1 + 8 * k) % ROWS for k in range(16)]


# name → rows, values of a row, sources of a row, an operand of its own in each step, lengths
EDGES = {"edge": (1, 64, (40, 160))}  # name → rows, values of a row, lengths
STEPS = {
    "sparse_1": (ROWS, 1, neighbour, False, (8, 32)),
    "sparse_8": (ROWS, 8, neighbour, False, (8, 32)),
    "sparse_64": (ROWS, 64, neighbour, False, (8, 32)),
    "sparse_256": (ROWS, 256, neighbour, False, (8, 32)),
    "dense": (ROWS, 256, spread, False, (8, 32)),
    "group_8": (8, 256, lambda row: list(range(8)), True, (40, 160)),
}

DECODERS = {
    "decoder": {"layers": 2, "tokens": 32, "past": 0, "hidden": 256, "mlp": 688, "heads": 8, "kv_heads": 4, "vocabulary": 512},
    "token_tiny": {"layers": 2, "tokens": 1, "past": 255, "hidden": 256, "mlp": 640, "heads": 8, "kv_heads": 2, "vocabulary": 512},
    "token_1b": {"layers": 16, "tokens": 1, "past": 255, "hidden": 2048, "mlp": 8192, "heads": 32, "kv_heads": 8, "vocabulary": 32000},
}


def decoder_weights(layers, tokens, past, hidden, mlp, heads, kv_heads, vocabulary):
    """The decoder's weights in the order of their file: (name, dims)."""
    kv = hidden // heads * kv_heads
    shapes = [("embedding", [vocabulary, hidden])]
    for n in range(layers):
        shapes += [(f"layer_{n}.{name}", dims) for name, dims in (
            ("attention_norm", [hidden]), ("q", [hidden, hidden]), ("k", [hidden, kv]), ("v", [hidden, kv]),
            ("o", [hidden, hidden]), ("mlp_norm", [hidden]), ("gate", [hidden, mlp]), ("up", [hidden, mlp]),
            ("down", [mlp, hidden]))]
    return shapes + [("norm", [hidden]), ("head", [hidden, vocabulary])]


def listing():
    models = {}
    for n, steps in CHAINS.items():
        models[f"chain_{n}"] = {"kind": "chain", "n": n, "steps": steps, "bytes": 4 * n * n * steps}
    for name, (rows, values, sources, fed, lengths) in STEPS.items():
        for length, steps in zip(("short", "long"), lengths):
            models[f"{name}_{length}"] = {
                "kind": "steps", "pattern": name, "length": length, "steps": steps, "rows": rows, "values": values,
            }
    for name, (rows, values, lengths) in EDGES.items():
        for length, steps in zip(("short", "long"), lengths):
            models[f"{name}_{length}"] = {
                "kind": "steps", "pattern": name, "length": length, "steps": steps, "rows": rows, "values": values,
            }
    for name, sizes in DECODERS.items():
        size = sum(4 * math.prod(dims) for _, dims in decoder_weights(**sizes))
        models[name] = {"kind": "decoder", "bytes": size, **sizes}
    return models


def save(out, name, nodes, inputs, outputs, initializers=(), indices={}):
    import onnx
    from onnx import TensorProto, helper

    def info(ports, dtype=TensorProto.FLOAT):
        return [helper.make_tensor_value_info(k, dtype, dims) for k, dims in ports.items()]

    graph = helper.make_graph(nodes, name, info(inputs) + info(indices, TensorProto.INT64), info(outputs), list(initializers))
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=8, producer_name="bench/models.py")
    path = os.path.join(out, name + ".onnx")
    with open(path, "wb") as f:
        f.write(model.SerializeToString())


def external(name, shapes):
    """Initializers that are in the file NAME.weights, one behind another; shapes are (name, dims)."""
    from onnx import TensorProto

    weights, at = [], 0
    for tensor, dims in shapes:
        w = TensorProto(name=tensor, data_type=TensorProto.FLOAT, dims=dims, data_location=TensorProto.EXTERNAL)
        size = 4 * math.prod(dims)
        for key, value in (("location", name + ".weights"), ("offset", at), ("length", size)):
            w.external_data.add(key=key, value=str(value))
        weights.append(w)
        at += size
    return weights


def chain_graph(out, name, n, steps):
    from onnx import helper

    nodes, weights = [], external(name, [(f"w{s}", [n, n]) for s in range(steps)])
    for s in range(steps):
        nodes.append(helper.make_node("MatMul", [f"v{s}", f"w{s}"], [f"v{s + 1}"], name=f"step_{s}"))
    nodes[0].input[0], nodes[-1].output[0] = "x", "y"
    save(out, name, nodes, {"x": [1, n]}, {"y": [1, n]}, weights)


def chain_weights(out, name, n, steps):
    """Uniform numbers of variance 1/N: a product keeps the length of a vector, on average."""
    import numpy as np

    path = os.path.join(out, name + ".weights")
    random = np.random.Generator(np.random.PCG64(n))
    with open(path + ".part", "wb") as f:
        for _ in range(steps):
            w = random.random((n, n), dtype=np.float32)
            w -= np.float32(0.5)
            w *= np.float32(math.sqrt(12 / n))
            w.tofile(f)
    os.replace(path + ".part", path)


def steps_graph(out, name, rows, values, sources, fed, steps):
    from onnx import helper

    def split(source, parts):
        return helper.make_node("Split", [source], parts, axis=0, num_outputs=len(parts), name="split_" + source)

    def at(s, row):
        return f"v{s}_{row}"

    nodes = [split("x", [at(0, r) for r in range(rows)])]
    inputs = {"x": [rows, values]}
    if fed:
        nodes.append(split("u", [f"u{s}_{r}" for s in range(steps) for r in range(rows)]))
        inputs["u"] = [steps * rows, values]
    for s in range(steps):
        for r in range(rows):
            operands = [at(s, q) for q in sources(r)] + ([f"u{s}_{r}"] if fed else [])
            nodes.append(helper.make_node("Mean", operands, [at(s + 1, r)], name=f"step_{s}_row_{r}"))
    nodes.append(helper.make_node("Concat", [at(steps, r) for r in range(rows)], ["y"], axis=0, name="join"))
    save(out, name, nodes, inputs, {"y": [rows, values]})


def edge_graph(out, name, values, steps):
    from onnx import helper

    nodes = [helper.make_node("LogSoftmax", [f"v{s}"], [f"v{s + 1}"], axis=1, name=f"step_{s}") for s in range(steps)]
    nodes[0].input[0], nodes[-1].output[0] = "x", "y"
    save(out, name, nodes, {"x": [1, values]}, {"y": [1, values]})


def decoder_graph(out, name, layers, tokens, past, hidden, mlp, heads, kv_heads, vocabulary):
    import numpy as np
    from onnx import helper, numpy_helper

    width, nodes, constants = hidden // heads, [], []

    def node(op, *inputs, **attributes):
        nodes.append(helper.make_node(op, list(inputs), [f"{op.lower()}_{len(nodes)}"], name=f"{op.lower()}_{len(nodes)}", **attributes))
        return nodes[-1].output[0]

    def constant(tensor, value, dtype=np.float32):
        constants.append(numpy_helper.from_array(np.asarray(value, dtype), tensor))
        return tensor

    keys = past + tokens
    angles = np.arange(past, keys)[:, None] / 10000 ** (np.arange(0, width, 2) / width)
    angles = np.concatenate([angles, angles], axis=1)
    cos, sin = constant("cos", np.cos(angles)), constant("sin", np.sin(angles))
    mask = constant("mask", np.triu(np.full((tokens, keys), -1e9), 1 + past)) if tokens > 1 else None
    scale, epsilon, two = constant("scale", width**-0.5), constant("epsilon", 1e-5), constant("two", 2.0)
    starts = [constant(f"at_{at}", [at], np.int64) for at in (0, width // 2, width)]
    last, pair = constant("last", [-1], np.int64), constant("pair", [2], np.int64)
    joined = constant("joined", [1, tokens, hidden], np.int64)
    apart = {n: constant(f"apart_{n}", [1, tokens, n, width], np.int64) for n in (heads, kv_heads)}
    shared = constant("shared", [1, kv_heads, heads // kv_heads, keys, width], np.int64)
    all_heads = constant("all_heads", [1, heads, keys, width], np.int64)
    caches, news = {}, {}

    def rms_norm(x, weight):
        mean = node("ReduceMean", node("Pow", x, two), last, keepdims=1)
        return node("Mul", weight, node("Div", x, node("Sqrt", node("Add", mean, epsilon))))

    def heads_of(x, weight, n):
        return node("Transpose", node("Reshape", node("MatMul", x, weight), apart[n]), perm=[0, 2, 1, 3])

    def rotary(x):
        low, high = (node("Slice", x, starts[k], starts[k + 1], last) for k in range(2))
        turned = node("Concat", node("Neg", high), low, axis=-1)
        return node("Add", node("Mul", x, cos), node("Mul", turned, sin))

    def repeated(x):
        return node("Reshape", node("Expand", node("Unsqueeze", x, pair), shared), all_heads)

    x = node("Gather", "embedding", "tokens", axis=0)
    for n in range(layers):
        w = {part: f"layer_{n}.{part}" for part in ("attention_norm", "q", "k", "v", "o", "mlp_norm", "gate", "up", "down")}
        normed = rms_norm(x, w["attention_norm"])
        q, k = rotary(heads_of(normed, w["q"], heads)), rotary(heads_of(normed, w["k"], kv_heads))
        v = heads_of(normed, w["v"], kv_heads)
        if past:
            for part, own in (("key", k), ("value", v)):
                caches[f"past_{part}_{n}"] = [1, kv_heads, past, width]
                nodes.append(helper.make_node("Identity", [own], [f"{part}_{n}"]))
                news[f"{part}_{n}"] = [1, kv_heads, tokens, width]
            k, v = node("Concat", f"past_key_{n}", k, axis=2), node("Concat", f"past_value_{n}", v, axis=2)
        v = repeated(v)
        scores = node("Mul", node("MatMul", q, node("Transpose", repeated(k), perm=[0, 1, 3, 2])), scale)
        attention = node("MatMul", node("Softmax", node("Add", scores, mask) if mask else scores, axis=-1), v)
        attention = node("Reshape", node("Transpose", attention, perm=[0, 2, 1, 3]), joined)
        x = node("Add", x, node("MatMul", attention, w["o"]))
        normed = rms_norm(x, w["mlp_norm"])
        gate = node("MatMul", normed, w["gate"])
        gated = node("Mul", node("Mul", gate, node("Sigmoid", gate)), node("MatMul", normed, w["up"]))
        x = node("Add", x, node("MatMul", gated, w["down"]))
    node("MatMul", rms_norm(x, "norm"), "head")
    nodes[-1].output[0] = "logits"
    shapes = decoder_weights(layers, tokens, past, hidden, mlp, heads, kv_heads, vocabulary)
    save(out, name, nodes, caches, {"logits": [1, tokens, vocabulary], **news}, external(name, shapes) + constants, {"tokens": [1, tokens]})


def decoder_file(out, name, shapes):
    """Matrices as in chain_weights; of norms, numbers between a half and one and a half."""
    import numpy as np

    path = os.path.join(out, name + ".weights")
    random = np.random.Generator(np.random.PCG64(len(shapes)))
    with open(path + ".part", "wb") as f:
        for tensor, dims in shapes:
            w = random.random(dims, dtype=np.float32)
            if len(dims) == 1:
                w += np.float32(0.5)
            else:
                rows = dims[1] if tensor == "embedding" else dims[0]
                w -= np.float32(0.5)
                w *= np.float32(math.sqrt(12 / rows))
            w.tofile(f)
    os.replace(path + ".part", path)


def write(out, name, model):
    have = os.path.exists(os.path.join(out, name + ".onnx"))
    try:
        if model["kind"] == "chain":
            chain_graph(out, name, model["n"], model["steps"])
        elif model["kind"] == "decoder":
            decoder_graph(out, name, **DECODERS[name])
        elif model["pattern"] in EDGES:
            edge_graph(out, name, model["values"], model["steps"])
        else:
            rows, values, sources, fed, _ = STEPS[model["pattern"]]
            steps_graph(out, name, rows, values, sources, fed, model["steps"])
    except ImportError:
        if not have:
            raise
    weights = os.path.join(out, name + ".weights")
    if "bytes" not in model or os.path.exists(weights) and os.path.getsize(weights) == model["bytes"]:
        return
    if model["kind"] == "chain":
        chain_weights(out, name, model["n"], model["steps"])
    else:
        decoder_file(out, name, decoder_weights(**DECODERS[name]))


def main():
    models = listing()
    if sys.argv[1] == "--list":
        json.dump(models, sys.stdout, indent=1)
        return
    out, names = sys.argv[1], sys.argv[2:] or list(models)
    os.makedirs(out, exist_ok=True)
    for name in names:
        if name not in models:
            sys.exit(f"no model {name}; there are {', '.join(models)}")
        write(out, name, models[name])


main()
