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
    return models


def save(out, name, nodes, inputs, outputs, initializers=()):
    import onnx
    from onnx import TensorProto, helper

    def info(ports):
        return [helper.make_tensor_value_info(k, TensorProto.FLOAT, dims) for k, dims in ports.items()]

    graph = helper.make_graph(nodes, name, info(inputs), info(outputs), list(initializers))
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=8, producer_name="bench/models.py")
    path = os.path.join(out, name + ".onnx")
    with open(path, "wb") as f:
        f.write(model.SerializeToString())


def chain_graph(out, name, n, steps):
    from onnx import TensorProto, helper

    nodes, weights = [], []
    for s in range(steps):
        w = TensorProto(name=f"w{s}", data_type=TensorProto.FLOAT, dims=[n, n], data_location=TensorProto.EXTERNAL)
        for key, value in (("location", name + ".weights"), ("offset", 4 * n * n * s), ("length", 4 * n * n)):
            w.external_data.add(key=key, value=str(value))
        weights.append(w)
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


def write(out, name, model):
    have = os.path.exists(os.path.join(out, name + ".onnx"))
    try:
        if model["kind"] == "chain":
            chain_graph(out, name, model["n"], model["steps"])
        elif model["pattern"] in EDGES:
            edge_graph(out, name, model["values"], model["steps"])
        else:
            rows, values, sources, fed, _ = STEPS[model["pattern"]]
            steps_graph(out, name, rows, values, sources, fed, model["steps"])
    except ImportError:
        if not have:
            raise
    if model["kind"] == "chain":
        weights = os.path.join(out, name + ".weights")
        if not os.path.exists(weights) or os.path.getsize(weights) != model["bytes"]:
            chain_weights(out, name, model["n"], model["steps"])


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
