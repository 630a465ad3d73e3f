"""A decoder of GPT-2's size with random weights, and what is asked of it."""
import functools
import math

import numpy as np

LAYERS, HEADS, DEPTH, WORDS, POSITIONS = 12, 12, 64, 50257, 1024
WIDTH = HEADS * DEPTH
PROMPT, ANSWER, RUNS, SLOW_RUNS, BEAMS = 16, 128, 12, 5, 4


def drawn():
    """The weights by name, in the order in which the decoder uses them.

    Tokens of an answer shall differ, and depend on those before them. So the embeddings of words are small beside what
    the layers add to them (or the largest logit would be that of the token which was taken), queries and keys are large
    enough to tell places apart, and what an activation of the same size in all channels adds is nothing.
    """
    random = np.random.default_rng(1)

    def draw(name, *shape, scale):
        return name, (random.standard_normal(shape, np.float32) * np.float32(scale))

    yield draw("words", WORDS, WIDTH, scale=0.1)
    yield draw("places", POSITIONS, WIDTH, scale=0.3)
    for i in range(LAYERS):
        for name, rows, columns, gain in (("qkv", WIDTH, 3 * WIDTH, 2.4), ("out", WIDTH, WIDTH, 1.2),
                                          ("up", WIDTH, 4 * WIDTH, 1.8), ("down", 4 * WIDTH, WIDTH, 1.2)):
            name, w = draw(f"{name}{i}", rows, columns, scale=gain / math.sqrt(rows))
            yield name, w - w.mean(0) if name.startswith("down") else w
            yield draw(f"{name[:-len(str(i))]}_bias{i}", columns, scale=0.1)


@functools.cache
def weights():
    return list(drawn())


def write_model(path):
    from onnx_file import constant, model, node, value

    nodes, constants = [], [constant(name, w) for name, w in weights()]

    def op(kind, *inputs, outputs=1, **attributes):
        names = [f"v{len(nodes)}_{k}" for k in range(outputs)]
        nodes.append(node(kind, list(inputs), names, **attributes))
        return names[0] if outputs == 1 else names

    def const(name, array, dtype="float32"):
        constants.append(constant(name, array, dtype))
        return name

    ones, zeros = const("ones", np.ones(WIDTH)), const("zeros", np.zeros(WIDTH))
    heads, joined = const("heads", [0, 0, HEADS, DEPTH], "int64"), const("joined", [0, 0, WIDTH], "int64")
    third, scale = const("third", [WIDTH] * 3, "int64"), const("scale", 1 / math.sqrt(DEPTH))
    # A token sees itself and those before it: rows of this table, as exporters of GPT-2 have them.
    table, least = const("causal", np.tri(POSITIONS)[None, None], "bool"), const("least", np.finfo(np.float32).min)
    rows, columns, from_0 = (const(name, [k], "int64") for name, k in (("rows", 2), ("columns", 3), ("from_0", 0)))
    numbers = [const(f"number{k}", v) for k, v in enumerate((3, 0.044715, math.sqrt(2 / math.pi), 1, 0.5))]

    def norm(x):
        return op("LayerNormalization", x, ones, zeros, axis=-1, epsilon=1e-5)

    def linear(name, x):
        kind = name.rstrip("0123456789")
        return op("Add", op("MatMul", x, name), f"{kind}_bias{name[len(kind):]}")

    def by_head(x):
        return op("Transpose", op("Reshape", x, heads), perm=[0, 2, 1, 3])

    def extent(name, axis):
        return op("Gather", op("Shape", name), const(f"axis_{name}", [axis], "int64"))

    past, count = extent("past_key_values.0.key", 2), extent("input_ids", 1)
    total = op("Add", past, count)
    seen = op("Slice", op("Slice", table, past, total, rows), from_0, total, columns)
    x = op("Add", op("Gather", "words", "input_ids"), op("Gather", "places", "position_ids"))
    inputs = [value("input_ids", "batch", "sequence", dtype="int64"),
              value("position_ids", "batch", "sequence", dtype="int64")]
    outputs = [value("logits", "batch", "sequence", WORDS)]
    for i in range(LAYERS):
        q, k, v = (by_head(p) for p in op("Split", linear(f"qkv{i}", norm(x)), third, outputs=3, axis=2))
        for what, new in (("key", k), ("value", v)):
            past, present = f"past_key_values.{i}.{what}", f"present.{i}.{what}"
            inputs.append(value(past, "batch", HEADS, "past", DEPTH))
            outputs.append(value(present, "batch", HEADS, "past + sequence", DEPTH))
            nodes.append(node("Concat", [past, new], [present], axis=2))
        scores = op("Mul", op("MatMul", q, op("Transpose", f"present.{i}.key", perm=[0, 1, 3, 2])), scale)
        scores = op("Where", seen, scores, least)
        y = op("MatMul", op("Softmax", scores, axis=-1), f"present.{i}.value")
        x = op("Add", x, linear(f"out{i}", op("Reshape", op("Transpose", y, perm=[0, 2, 1, 3]), joined)))
        y = linear(f"up{i}", norm(x))
        cubic = op("Mul", op("Add", y, op("Mul", op("Pow", y, numbers[0]), numbers[1])), numbers[2])
        y = op("Mul", op("Mul", y, numbers[4]), op("Add", op("Tanh", cubic), numbers[3]))
        x = op("Add", x, linear(f"down{i}", y))
    nodes.append(node("MatMul", [norm(x), op("Transpose", "words", perm=[1, 0])], ["logits"]))
    with open(path, "wb") as f:
        f.write(model("gpt2_124m", nodes, constants, inputs, outputs))


def prompt():
    return np.random.default_rng(7).integers(0, WORDS, PROMPT).tolist()
