"""What 512 sequence lengths take of a GPU, in memory and in time: libraries for a range of lengths beside PyTorch.

    python3 lengths.py general LIBDIR LENGTHS   a library that rammerc compiled for a range of lengths, --typical none
    python3 lengths.py auto LIBDIR LENGTHS      one with the special programs that the compiler chooses
    python3 lengths.py named LIBDIR LENGTHS     one with special programs that are asked for
    python3 lengths.py graphs LENGTHS           a CUDA graph of PyTorch for each length, in one memory pool
    python3 lengths.py compiled LENGTHS         torch.compile(dynamic=True), one program for all lengths
    python3 lengths.py gather OUT ROW…          joins the rows into OUT

The model is a BERT of two layers, and LENGTHS the largest length. Each way but the last prints one row as JSON and has
a process of its own. Memory is what the device has less of than before, by cudaMemGetInfo, so it counts graphs, pools,
code and arenas alike: `loaded_bytes` when the model is there, `one_bytes` when one length has run, the largest, and
`all_bytes` when every length from 1 on has run. `memory_ratios` compare each way with the graphs, first by what it
takes beside the parameters of the model, then by what the other lengths take beside one. A library with special
programs stores some weights in several packings; what it has more of them than the general program alone counts with
the other lengths.

Times are in microseconds of the host's clock, for a call whose tensors lie on the device, averaged over a loop that
ends with one wait: `same_us` with one of two lengths each time, `turns_us` with both in turns. `switch_us` is the
difference.
"""
import ctypes
import json
import os
import statistics
import sys
import time

import torch

from collect import made_with

LAYERS, HIDDEN, CALLS, ROUNDS = 2, 768, int(os.environ.get("CALLS", 300)), 5
PAIRS = [(16, 17), (64, 65), (200, 201), (333, 334), (64, 333)]


def awake():
    """Has the device make what any use of it takes, before anything is counted: a kernel on a side stream, and a graph."""
    x, side, graph = torch.zeros(1, device="cuda"), torch.cuda.Stream(), torch.cuda.CUDAGraph()
    with torch.cuda.stream(side):
        x.add_(1)
    torch.cuda.synchronize()
    with torch.cuda.graph(graph, stream=side):
        x.add_(1)
    graph.replay()
    torch.cuda.synchronize()
    return x, side, graph


def used():
    torch.cuda.synchronize()
    free, total = torch.cuda.mem_get_info()
    return total - free


def per_call(calls):
    """The time of one of calls, which are made in turns, in microseconds: the median of a few loops."""
    times = []
    for _ in range(ROUNDS + 1):  # the first one warms up
        torch.cuda.synchronize()
        start = time.perf_counter()
        for _ in range(CALLS // len(calls)):
            for call in calls:
                call()
        torch.cuda.synchronize()
        times.append((time.perf_counter() - start) / (CALLS // len(calls) * len(calls)) * 1e6)
    return statistics.median(times[1:])


def switches(call_of, most):
    rows = []
    for a, b in PAIRS:
        if max(a, b) > most:
            continue
        calls = [call_of(a), call_of(b)]
        same = [per_call([c]) for c in calls]
        row = {"lengths": [a, b], "same_us": same, "turns_us": per_call(calls)}
        row["switch_us"] = row["turns_us"] - statistics.mean(same)
        rows.append(row)
    return rows


def measured(base, loaded, call_of, most):
    """The row of a way. call_of(n) is a call of length n; base and loaded are what was in use before the model, and
    with it."""
    row = {"lengths": most, "loaded_bytes": loaded - base}
    call_of(most)()
    row["one_bytes"] = used() - base
    start = time.perf_counter()
    for n in range(1, most + 1):
        call_of(n)()
    torch.cuda.synchronize()
    row["all_seconds"], row["all_bytes"] = time.perf_counter() - start, used() - base
    row["switches"] = switches(call_of, most)
    return row


def network():
    from networks import bert

    torch.manual_seed(0)
    return bert(LAYERS)[0].cuda().eval()


def graphs(most):
    base = used()
    model = network()
    ids, kept, pool = torch.randint(0, 1000, (1, most), device="cuda"), {}, torch.cuda.graph_pool_handle()
    loaded, side = used(), torch.cuda.Stream()

    def call_of(n):
        if n not in kept:
            x = ids[:, :n].clone()
            with torch.no_grad(), torch.cuda.stream(side):
                model(x)
            torch.cuda.synchronize()
            graph = torch.cuda.CUDAGraph()
            with torch.no_grad(), torch.cuda.graph(graph, pool=pool):
                y = model(x)[0]
            kept[n] = graph, x, y
        graph, x, _ = kept[n]
        given = ids[:, :n]

        def call():
            x.copy_(given)  # a caller's input comes to the place that the graph reads
            graph.replay()

        return call

    row = measured(base, loaded, call_of, most)
    row["capture_ms"] = row["all_seconds"] / most * 1e3
    return row


def compiled(most):
    base = used()
    model = network()
    loaded = used()
    program = torch.compile(model, dynamic=True)
    ids = torch.randint(0, 1000, (1, most), device="cuda")

    def call_of(n):
        x = ids[:, :n].clone()

        def call():
            with torch.no_grad():
                return program(x)[0]

        return call

    return measured(base, loaded, call_of, most)


class Library:
    """The C interface of a library that rammerc emitted, with tensors on the device."""

    def __init__(self, folder):
        name = next(f[3:-3] for f in os.listdir(folder) if f.startswith("lib") and f.endswith(".so"))
        lib = ctypes.CDLL(os.path.join(folder, f"lib{name}.so"))
        self.set_dims, self.run = lib[f"{name}_set_dims"], lib[f"{name}_run_async"]
        self.error = lib[f"{name}_last_error"]
        self.error.restype = ctypes.c_char_p
        self.context = ctypes.c_void_p()
        self.check(lib[f"{name}_create"](None, ctypes.byref(self.context)))
        self.weights = os.path.getsize(os.path.join(folder, f"{name}.weights"))

    def check(self, status):
        if status:
            raise RuntimeError(self.error(self.context).decode())

    def call_of(self, ids, out, n):
        dims = (ctypes.POINTER(ctypes.c_int64) * 1)((ctypes.c_int64 * 2)(1, n))
        inputs, outputs = (ctypes.c_void_p * 1)(ids.data_ptr()), (ctypes.c_void_p * 1)(out.data_ptr())
        stream, kept = ctypes.c_void_p(torch.cuda.current_stream().cuda_stream), (ids, out)

        def call(kept=kept):
            self.check(self.set_dims(self.context, dims))
            self.check(self.run(self.context, stream, inputs, outputs))

        return call


def ours(folder, most):
    ids, out = torch.randint(0, 1000, (1, most), device="cuda"), torch.empty(1, most, HIDDEN, device="cuda")
    base = used()
    library = Library(folder)
    loaded = used()
    with torch.cuda.stream(torch.cuda.Stream()):
        row = measured(base, loaded, lambda n: library.call_of(ids, out, n), most)
    row["weights_file_bytes"] = library.weights
    return row


def ratios(by):
    """What the graphs take over what a way of ours takes: beside the parameters, and of the other lengths alone."""
    parameters, peer = by["graphs"]["loaded_bytes"], by["graphs"]
    out = {}
    for way in ("general", "auto", "named"):
        if way in by:
            row = by[way]
            out[way] = {"beside_parameters": (peer["all_bytes"] - parameters) / (row["all_bytes"] - parameters)}
        if way in by and "general" in by:
            packings = row["weights_file_bytes"] - by["general"]["weights_file_bytes"]
            others = row["all_bytes"] - row["one_bytes"] + packings
            out[way]["other_lengths"] = (peer["all_bytes"] - peer["one_bytes"]) / max(others, 1)
    return out


def gather(out, files):
    by = {r["way"]: r for r in map(lambda f: json.load(open(f)), files)}
    result = {"schema": "rammerc/lengths/v1", **made_with(), "torch": torch.__version__,
              "model": f"BERT of {LAYERS} layers, fp32",
              "memory_ratios": ratios(by) if "graphs" in by else {}, "ways": by}
    with open(out, "w") as f:
        json.dump(result, f, indent=1)
        f.write("\n")
    for way, row in by.items():
        print(f"{way}: {row['all_bytes'] / 1e6:.0f} MB, of one length {row['one_bytes'] / 1e6:.0f}; a change of length "
              f"{statistics.median(s['switch_us'] for s in row['switches']):.1f} µs; "
              + ", ".join(f"{k} {v:.1f}" for k, v in result["memory_ratios"].get(way, {}).items()))


def main():
    way, args = sys.argv[1], sys.argv[2:]
    if way == "gather":
        return gather(args[0], args[1:])
    kept = awake()
    ways = {"general": ours, "auto": ours, "named": ours, "graphs": graphs, "compiled": compiled}
    print(json.dumps({"way": way, **ways[way](*args[:-1], int(args[-1]))}))
    del kept


if __name__ == "__main__":
    main()
