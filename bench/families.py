"""Single operators out of real models, ours beside the vendor's library.

    python3 families.py models DIR PRECISION… [--family FAMILY…]   writes DIR/PRECISION/NAME.onnx for every row, and
                                                                   prints the names
    python3 families.py time OUT PRECISION… [--family FAMILY…]

The second form times the libraries OUT/lib/NAME.PRECISION, which scripts/gpu_families.sh has built, and what PyTorch
calls for the same operator: cuBLAS, cuDNN or what scaled_dot_product_attention chooses among. It writes OUT/FAMILY.json
and prints it as a table. A time is that of one call among CHAIN calls that are captured into one CUDA graph, so that it
holds no launch of a graph. Of several ways to call the vendor's library the fastest counts, which is timed in turns with
ours. All calls have the same operands, which are in L2 if they find room there. Ratios are the vendor's time over ours.

A family is a module families_NAME.py beside this file. Its rows() gives objects with a name that can be that of a
library, `of` and `batch` for the table, flops, model(precision, dtype) for the bytes of an ONNX file whose elements are
of that NumPy type, and vendor(torch, dtype) for functions that each carry out the operator in one way; see
families_gemm.py.
"""
import argparse
import ctypes
import glob
import importlib
import itertools
import json
import math
import os
import re
import statistics
import sys
import traceback
import warnings

from collect import made_with

HERE = os.path.dirname(os.path.abspath(__file__))
CHAIN = 20     # calls in a graph
REPLAYS = 30   # graphs that are timed, at most
FEWEST = 5     # and at least, where they take longer together than
LONG = 20e3    # so many microseconds
ROUNDS = 3     # turns of ours and the vendor's
AGAIN = 3      # the exit status if rows are left for another process
DTYPES = {"strict": "float32", "fp32": "float32", "tf32": "float32", "fp16": "float16", "bf16": "bfloat16"}


def families(names, only):
    """The rows of the named families, all by default, whose names contain the pattern: (family, row)."""
    files = [os.path.basename(f) for f in glob.glob(f"{HERE}/families_*.py")]
    found = sorted(re.fullmatch(r"families_(\w+)\.py", f)[1] for f in files)
    sys.path.insert(0, HERE)
    for name in names or found:
        for row in importlib.import_module("families_" + name).rows():
            if re.search(only, row.name):
                yield name, row


def write_models(folder, precisions, names, only):
    for _, row in families(names, only):
        for precision in precisions:
            os.makedirs(f"{folder}/{precision}", exist_ok=True)
            dtype = "float16" if precision in ("fp16", "bf16") else "float32"
            with open(f"{folder}/{precision}/{row.name}.onnx", "wb") as f:
                f.write(row.model(precision, dtype))
        print(row.name)


class Ours:
    """A library, called on the current stream of PyTorch."""

    def __init__(self, folder, name):
        import torch

        sys.path.insert(0, f"{folder}/python")
        self.model = importlib.import_module(name).Model(f"{folder}/lib{name}.so", f"{folder}/{name}.weights", device=0)
        sys.path.pop(0)
        kind = lambda t: getattr(torch, str(t.dtype))
        self.inputs = [torch.randn(t.shape, device="cuda").to(kind(t)) for t in self.model.inputs]
        self.outputs = [torch.empty(t.shape, dtype=kind(t), device="cuda") for t in self.model.outputs]
        self.run = getattr(self.model._lib, name + "_run_async")
        self.pointers = [(ctypes.c_void_p * len(ts))(*[t.data_ptr() for t in ts]) for ts in (self.inputs, self.outputs)]

    def __call__(self):
        import torch

        if self.run(self.model._ctx, torch.cuda.current_stream().cuda_stream, *self.pointers):
            raise RuntimeError("the launch fails")


def microseconds(call):
    """The time of a call among CHAIN calls in a CUDA graph."""
    import torch

    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream):
        for _ in range(3):
            call()
        stream.synchronize()
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph, stream=stream):
            for _ in range(CHAIN):
                call()
        times = []
        while len(times) < FEWEST or len(times) < REPLAYS and CHAIN * sum(times) < LONG:
            begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
            begin.record(stream)
            graph.replay()
            end.record(stream)
            stream.synchronize()
            times.append(1000 * begin.elapsed_time(end) / CHAIN)
    return statistics.median(times)


def fastest(calls):
    """The least time of several ways to call, and the name of the way. Ways that the library refuses do not count."""
    import torch

    best, name = math.inf, None
    for way, call in calls.items():
        try:
            us = microseconds(call)
        except RuntimeError:
            torch.cuda.synchronize()  # raises again if the process can use the GPU no more
            continue
        if us < best:
            best, name = us, way
    return best, name


def in_turns(*calls):
    """The median times of calls that are timed one after the other, several times."""
    rounds = [[microseconds(call) for call in calls] for _ in range(ROUNDS)]
    return [statistics.median(times) for times in zip(*rounds)]


def time_row(out, row, precision):
    """The times of a row in a precision; only the vendor's where there is no library of ours. The least of several times
    is by chance less than each is in the mean, and a GPU that is hot has a lower clock: so the vendor's fastest way is
    timed again, in turns with ours."""
    import torch

    dtype = getattr(torch, DTYPES[precision])
    tf32 = precision == "tf32"
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = tf32
    ways = row.vendor(torch, dtype)
    vendor, way = fastest(ways)
    r = {"name": row.name, "model": row.of, "batch": row.batch, "precision": precision, "flops": row.flops,
         "vendor_us": vendor, "vendor": way}
    folder = f"{out}/lib/{row.name}.{precision}"
    if way and os.path.exists(f"{folder}/lib{row.name}.so"):
        r["vendor_us"], r["ours_us"] = in_turns(ways[way], Ours(folder, row.name))
        r["ratio"] = r["vendor_us"] / r["ours_us"]
    print(f"{r['name']:28} {precision:5} vendor {r['vendor_us']:8.2f} ({way})  ours {r.get('ours_us', math.nan):8.2f}  "
          f"{r.get('ratio', math.nan):5.2f}", flush=True)
    return r


def mean(values):
    return math.exp(statistics.fmean(map(math.log, values)))


def summary(rows):
    """Geometric means and least ratios by precision and batch."""
    groups = {}
    for r in rows:
        if "ratio" in r:
            groups.setdefault((r["precision"], r["batch"]), []).append(r["ratio"])
    return [{"precision": p, "batch": b, "rows": len(v), "geometric_mean": mean(v), "least": min(v)}
            for (p, b), v in sorted(groups.items())]


def known_rows(path):
    """The rows of a file that an earlier process has begun; none if there is no such file."""
    try:
        with open(path) as f:
            return json.load(f)["rows"]
    except OSError:
        return []


def time_all(out, precisions, names, only):
    """Times family after family. A family's file is written after every row and holds what is done if the script is
    stopped; rows that it has are not timed again. After an error on the GPU a process can time nothing else: the row
    says so, the process ends with status AGAIN, and the next one goes on with the row after it."""
    import torch

    made = {"schema": "rammerc/families/v1", **made_with(), "torch": torch.__version__, "cudnn": torch.backends.cudnn.version(),
            "calls": CHAIN}
    for family, rows in itertools.groupby(families(names, only), key=lambda pair: pair[0]):
        path = f"{out}/{family}.json"
        results = known_rows(path)
        done = {(r["name"], r["precision"]) for r in results}
        for row, precision in [(row, p) for _, row in rows for p in precisions if (row.name, p) not in done]:
            error = None
            try:
                results.append(time_row(out, row, precision))
            except RuntimeError as e:
                error = f"{type(e).__name__}: {e}".split("\n")[0]
                print(f"{row.name:28} {precision:5} {error}", flush=True)
                results.append({"name": row.name, "model": row.of, "batch": row.batch, "precision": precision,
                                "error": error})
            with open(path, "w") as f:
                json.dump({**made, "family": family, "summary": summary(results), "rows": results}, f, indent=1)
            if error:
                traceback.print_exc()
                sys.exit(AGAIN)
        for s in summary(results):
            print(f"{family:10} {s['precision']:5} batch {s['batch']:3}: {s['rows']} rows, mean {s['geometric_mean']:.2f}, "
                  f"least {s['least']:.2f}", flush=True)


def main():
    parser = argparse.ArgumentParser()
    sub = parser.add_subparsers(dest="what", required=True)
    models = sub.add_parser("models")
    models.add_argument("folder")
    time = sub.add_parser("time")
    time.add_argument("out")
    for p in (models, time):
        p.add_argument("precision", nargs="+", choices=list(DTYPES))
        p.add_argument("--family", nargs="*", default=[])
        p.add_argument("--only", default="", help="a pattern: only rows whose names contain it")
    a = parser.parse_args()
    if a.what == "models":
        write_models(a.folder, a.precision, a.family, a.only)
    else:
        warnings.simplefilter("ignore")  # of ways that a library refuses
        time_all(a.out, a.precision, a.family, a.only)


if __name__ == "__main__":
    main()
