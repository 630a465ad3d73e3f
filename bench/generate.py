"""A decoder of GPT-2's size with random weights: writes it as ONNX, and times whole answers of it.

    python3 generate.py model FILE.onnx            writes the decoder
    python3 generate.py time OUT LIBRARY…          times libraries that --generate made of it, and PyTorch

The second form prints a line for each, and writes OUT/generate.json. PyTorch computes the same decoder with the same
weights: the prompt at once, and then a CUDA graph for each token, with caches of a fixed length and the choice of the
token in the graph. Times are those of the host's clock, from the prompt to the tokens.
"""
import functools
import importlib
import json
import math
import os
import statistics
import sys
import tempfile
import time

import numpy as np

LAYERS, HEADS, DEPTH, WORDS, POSITIONS = 12, 12, 64, 50257, 1024
WIDTH = HEADS * DEPTH
PROMPT, ANSWER, RUNS, BEAMS = 16, 128, 12, 4


def drawn():
    """The weights by name, in the order in which the decoder uses them."""
    random = np.random.default_rng(1)

    def draw(name, *shape, scale):
        return name, (random.standard_normal(shape, np.float32) * np.float32(scale))

    yield draw("words", WORDS, WIDTH, scale=0.5)
    yield draw("places", POSITIONS, WIDTH, scale=0.5)
    for i in range(LAYERS):
        for name, rows, columns in (("qkv", WIDTH, 3 * WIDTH), ("out", WIDTH, WIDTH), ("up", WIDTH, 4 * WIDTH),
                                    ("down", 4 * WIDTH, WIDTH)):
            yield draw(f"{name}{i}", rows, columns, scale=1.2 / math.sqrt(rows))
            yield draw(f"{name}_bias{i}", columns, scale=0.1)


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
    heads, joined = const("heads", [0, 1, HEADS, DEPTH], "int64"), const("joined", [0, 1, WIDTH], "int64")
    third, scale = const("third", [WIDTH] * 3, "int64"), const("scale", 1 / math.sqrt(DEPTH))
    numbers = [const(f"number{k}", v) for k, v in enumerate((3, 0.044715, math.sqrt(2 / math.pi), 1, 0.5))]

    def norm(x):
        return op("LayerNormalization", x, ones, zeros, axis=-1, epsilon=1e-5)

    def linear(name, x):
        return op("Add", op("MatMul", x, name), name.rstrip("0123456789") + "_bias" + name.lstrip("abcdefghijklmnopqrstuvwxyz"))

    def by_head(x):
        return op("Transpose", op("Reshape", x, heads), perm=[0, 2, 1, 3])

    x = op("Add", op("Gather", "words", "input_ids"), op("Gather", "places", "position_ids"))
    inputs = [value("input_ids", "batch", 1, dtype="int64"), value("position_ids", "batch", 1, dtype="int64")]
    outputs = [value("logits", "batch", 1, WORDS)]
    for i in range(LAYERS):
        q, k, v = (by_head(p) for p in op("Split", linear(f"qkv{i}", norm(x)), third, outputs=3, axis=2))
        for what, new in (("key", k), ("value", v)):
            past, present = f"past_key_values.{i}.{what}", f"present.{i}.{what}"
            inputs.append(value(past, "batch", HEADS, "past", DEPTH))
            outputs.append(value(present, "batch", HEADS, "past + 1", DEPTH))
            nodes.append(node("Concat", [past, new], [present], axis=2))
        scores = op("Mul", op("MatMul", q, op("Transpose", f"present.{i}.key", perm=[0, 1, 3, 2])), scale)
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
    return np.random.default_rng(2).integers(0, WORDS, PROMPT).tolist()


def timed(answer):
    """The tokens of an answer, and what it takes in milliseconds: the median."""
    tokens, times = answer(), []
    for _ in range(RUNS):
        start = time.perf_counter()
        again = answer()
        times.append(1e3 * (time.perf_counter() - start))
        assert again == tokens, "an answer differs from run to run"
    return {"tokens": tokens[PROMPT:], "p50_ms": round(statistics.median(times), 3), "min_ms": round(min(times), 3)}


def opened(folder):
    sys.path.insert(0, os.path.join(folder, "python"))
    name = next(f[:-3] for f in os.listdir(os.path.join(folder, "python")) if f.endswith(".py"))
    return importlib.import_module(name).Model()


def library(folder):
    model = opened(folder)
    row = timed(lambda: model.generate([prompt()], PROMPT + ANSWER)[0])
    row["mode"] = json.loads(model.run_info)["mode"]
    model.close()
    return row


def traced(folder):
    """What CUPTI sees of an answer: how often the host launches something, and the bytes of each copy."""
    from torch.profiler import ProfilerActivity, profile

    model = opened(folder)
    model.generate([prompt()], PROMPT + ANSWER)
    with profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA]) as trace:
        model.generate([prompt()], PROMPT + ANSWER)
    model.close()
    with tempfile.TemporaryDirectory() as tmp:
        trace.export_chrome_trace(f"{tmp}/trace.json")
        with open(f"{tmp}/trace.json") as f:
            events = json.load(f)["traceEvents"]
    calls = [e["name"] for e in events if e.get("cat") in ("cuda_runtime", "cuda_driver") and "Launch" in e["name"]]
    copies = [e["args"]["bytes"] for e in events if e.get("cat") == "gpu_memcpy"]
    return {"launches": {name: calls.count(name) for name in sorted(set(calls))}, "copied_bytes": sorted(copies)}


class Peer:
    """The decoder in PyTorch, with caches of a fixed length, a row for each beam, and a CUDA graph for each token."""

    def __init__(self, dtype, beams):
        import torch

        self.torch, self.length, self.rows = torch, PROMPT + ANSWER, max(beams, 1)
        self.w = {name: torch.from_numpy(w).to("cuda", dtype) for name, w in weights()}
        self.caches = torch.zeros(LAYERS, 2, self.rows, HEADS, self.length, DEPTH, device="cuda", dtype=dtype)
        self.ids = torch.zeros(self.rows, 1, dtype=torch.long, device="cuda")
        self.at = torch.zeros(1, dtype=torch.long, device="cuda")
        self.tokens = torch.zeros(self.rows, self.length + 1, dtype=torch.long, device="cuda")
        self.every = torch.arange(self.length, device="cuda")

    def forward(self, ids, at):
        """The logits of the tokens behind ids, which stand at the places `at`."""
        f, w, n = self.torch.nn.functional, self.w, ids.shape[1]
        seen = (self.every[None, :] <= at[:, None])[None, None]
        x = w["words"][ids] + w["places"][at]
        for i in range(LAYERS):
            y = f.layer_norm(x, (WIDTH,)) @ w[f"qkv{i}"] + w[f"qkv_bias{i}"]
            q, k, v = (p.view(self.rows, n, HEADS, DEPTH).transpose(1, 2) for p in y.split(WIDTH, 2))
            self.caches[i, 0].index_copy_(2, at, k)
            self.caches[i, 1].index_copy_(2, at, v)
            y = f.scaled_dot_product_attention(q, self.caches[i, 0], self.caches[i, 1], attn_mask=seen)
            x = x + y.transpose(1, 2).reshape(self.rows, n, WIDTH) @ w[f"out{i}"] + w[f"out_bias{i}"]
            y = f.gelu(f.layer_norm(x, (WIDTH,)) @ w[f"up{i}"] + w[f"up_bias{i}"], approximate="tanh")
            x = x + y @ w[f"down{i}"] + w[f"down_bias{i}"]
        return f.layer_norm(x[:, -1:], (WIDTH,)) @ w["words"].T

    def choose(self, logits):
        self.ids.copy_(logits.argmax(-1))

    def step(self):
        self.choose(self.forward(self.ids, self.at))
        self.at += 1
        self.tokens.index_copy_(1, self.at, self.ids)

    def recorded(self):
        torch = self.torch
        side = torch.cuda.Stream()
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            for _ in range(3):
                self.at.zero_()
                self.step()
        torch.cuda.current_stream().wait_stream(side)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            self.step()
        return graph

    def record(self):
        self.graphs = [self.recorded()]

    def answer(self, tokens):
        ids = self.torch.tensor([tokens] * self.rows, device="cuda")
        self.begin()
        self.choose(self.forward(ids, self.every[: len(tokens)]))
        self.at.fill_(len(tokens))
        self.tokens.index_copy_(1, self.at, self.ids)
        for i in range(ANSWER - 1):
            self.graphs[i % len(self.graphs)].replay()
        return tokens + self.tokens[0, len(tokens) : self.length].tolist()

    def begin(self):
        pass


class BeamPeer(Peer):
    """Of all answers with a token behind them the best go on. The caches' rows are copied to where they do, from one of
    two sets of caches to the other, so that there are two graphs."""

    def __init__(self, dtype, beams):
        super().__init__(dtype, beams)
        torch = self.torch
        self.sets = [self.caches, torch.zeros_like(self.caches)]
        self.scores = torch.zeros(beams, 1, device="cuda")
        self.initial = torch.tensor([[0.0]] + [[-1e30]] * (beams - 1), device="cuda")

    def choose(self, logits):
        torch = self.torch
        scores = self.scores + torch.log_softmax(logits[:, 0].float(), -1)
        best, at = scores.view(-1).topk(self.rows)
        rows = at // WORDS
        self.scores.copy_(best[:, None])
        self.ids.copy_((at % WORDS)[:, None])
        self.tokens.copy_(self.tokens[rows])
        other = self.sets[1 if self.caches is self.sets[0] else 0]
        torch.index_select(self.caches, 2, rows, out=other)

    def record(self):
        self.graphs = []
        for self.caches in (self.sets[1], self.sets[0]):
            self.graphs.append(self.recorded())

    def begin(self):
        self.caches = self.sets[0]
        self.scores.copy_(self.initial)


def pytorch(what):
    import torch

    name, beams = what
    with torch.no_grad():
        peer = (BeamPeer if beams else Peer)(getattr(torch, name), beams)
        peer.record()
        row = timed(lambda: peer.answer(prompt()))
    del peer
    torch.cuda.empty_cache()
    return row


def write(out, rows):
    from collect import made_with

    result = {"schema": "rammerc/generate/v1", **made_with(), "prompt": PROMPT, "answer": ANSWER, "rows": rows}
    with open(f"{out}/generate.json", "w") as f:
        json.dump(result, f, indent=1)
        f.write("\n")


def main():
    if sys.argv[1] == "model":
        write_model(sys.argv[2])
        return
    out, rows = sys.argv[2], {}
    sides = [(os.path.basename(f), library, f) for f in sys.argv[3:]]
    for beams in (0, BEAMS):
        for kind in ("float32", "float16"):
            sides.append((f"pytorch.{kind}" + (f".beam{beams}" if beams else ""), pytorch, (kind, beams)))
    for name, measure, what in sides:
        try:
            rows[name] = measure(what)
        except Exception as e:  # one that fails leaves the others
            rows[name] = {"problem": repr(e)}
        r, first = rows[name], rows[sides[0][0]].get("tokens", [])
        same = sum(a == b for a, b in zip(r.get("tokens", []), first))
        print(name, r.get("problem") or f"{r['p50_ms']} ms, {same} of {ANSWER} tokens as {sides[0][0]}", flush=True)
        write(out, rows)
    for name, _, folder in sides[: len(sys.argv) - 3]:  # behind the times, since what makes traces slows down the rest
        try:
            rows[name]["trace"] = traced(folder)
        except Exception as e:
            rows[name]["trace"] = {"problem": repr(e)}
        print(name, rows[name]["trace"], flush=True)
        write(out, rows)


main()
