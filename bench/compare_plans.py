"""Times the libraries that scripts/compareplans writes, and plots what random modules of NASBench gain.

    python3 bench/compare_plans.py build DIR                       nvcc, as many at a time as there are processors
    python3 bench/compare_plans.py time DIR ROWS OUT.json          ROWS is what compareplans printed; needs PyTorch
    python3 bench/compare_plans.py table OUT.json                  times and simulated times of all plans
    python3 bench/compare_plans.py auto OUT.json fp32=A.json,B.json tf32=C.json   auto by timing, over each other kind of plan
    python3 bench/compare_plans.py simulated ROWS COMMIT OUT.json  sums up what compareplans simulated, for bench/results
    python3 bench/compare_plans.py plot ROWS OUT.json PICTURE.png  speedups beside those of Rammer's §5.2.5

A library has a variant for each of its plans, with a C interface of its own. All plans of a model run in one process, in
turns: three rounds of runs on the device, each run between two events, medians of the fastest round.
"""

import concurrent.futures
import ctypes
import json
import math
import os
import statistics
import subprocess
import sys

from collect import made_with

RUNS, WARM_UP, ROUNDS = 30, 5, 3


class Options(ctypes.Structure):
    """NAME_options of an emitted header."""

    _fields_ = [
        ("size", ctypes.c_size_t), ("weights_path", ctypes.c_char_p), ("device", ctypes.c_int),
        ("mode", ctypes.c_int), ("watchdog_ns", ctypes.c_uint64), ("emu_seed", ctypes.c_uint64),
        ("emu_max_blocks", ctypes.c_int), ("delay_seed", ctypes.c_uint64),
    ]


class Tensor(ctypes.Structure):
    _fields_ = [
        ("name", ctypes.c_char_p), ("dtype", ctypes.c_int), ("rank", ctypes.c_int),
        ("dims", ctypes.POINTER(ctypes.c_int64)), ("bytes", ctypes.c_size_t),
    ]


class IO(ctypes.Structure):
    _fields_ = [
        ("input_count", ctypes.c_int), ("inputs", ctypes.POINTER(Tensor)),
        ("output_count", ctypes.c_int), ("outputs", ctypes.POINTER(Tensor)),
    ]


def build(folder):
    """Builds every library of the folder. Those that fail are reported and left out."""
    arch = os.environ.get("ARCH", "sm_90a").replace("sm_", "")

    def one(name):
        path = os.path.join(folder, name)
        source = os.path.join(path, name + ".cu")
        command = [os.environ.get("NVCC", "nvcc"), "-std=c++20", "-O3", f"-gencode=arch=compute_{arch},code=sm_{arch}",
                   "-shared", "-Xcompiler", "-fPIC,-fvisibility=hidden",
                   "-Xlinker", "--version-script=" + os.path.join(path, name + ".map"),
                   source, "-o", os.path.join(path, f"lib{name}.so")]
        run = subprocess.run(command, capture_output=True, text=True)
        if run.returncode:
            print(f"{name}: {run.stderr[-400:]}", file=sys.stderr)

    names = sorted(n for n in os.listdir(folder) if os.path.exists(os.path.join(folder, n, n + ".cu")))
    names.sort(key=lambda n: -os.path.getsize(os.path.join(folder, n, n + ".cu")))
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        list(pool.map(one, names))


class Variant:
    """A context of one plan, with inputs and outputs on the device."""

    def __init__(self, lib, folder, name, index):
        import torch

        self.prefix, self.lib = f"{name}_{index}", lib
        self.ctx = ctypes.c_void_p()
        weights = os.path.join(folder, name, name + ".weights")
        options = Options(size=ctypes.sizeof(Options), weights_path=os.fsencode(weights))
        create = self.function("create")
        if create(ctypes.byref(options), ctypes.byref(self.ctx)):
            last = self.function("last_error", ctypes.c_char_p)
            raise RuntimeError(f"{self.prefix}: {last(None)}")
        io = self.function("io_info", ctypes.POINTER(IO))().contents
        self.tensors = [torch.zeros(max(1, t.bytes // 4), dtype=torch.float32, device="cuda")
                        for t in io.inputs[: io.input_count] + io.outputs[: io.output_count]]
        pointers = [t.data_ptr() for t in self.tensors]
        self.inputs = (ctypes.c_void_p * io.input_count)(*pointers[: io.input_count])
        self.outputs = (ctypes.c_void_p * io.output_count)(*pointers[io.input_count:])
        self.run = self.function("run_async")
        self.run.argtypes = [ctypes.c_void_p] * 4

    def function(self, name, restype=ctypes.c_int):
        f = getattr(self.lib, f"{self.prefix}_{name}")
        f.restype = restype
        return f

    def measure(self, runs, stream):
        """Microseconds of each run."""
        import torch

        pairs = [(torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)) for _ in range(runs)]
        for before, after in pairs:
            before.record(stream)
            if self.run(self.ctx, stream.cuda_stream, self.inputs, self.outputs):
                raise RuntimeError(f"{self.prefix}: a run failed")
            after.record(stream)
        stream.synchronize()
        return [1000 * before.elapsed_time(after) for before, after in pairs]

    def close(self):
        destroy = self.function("destroy", None)
        destroy.argtypes = [ctypes.c_void_p]
        destroy(self.ctx)


def time(folder, rows_path, out_path):
    """Times all variants of all libraries that were built."""
    import torch

    stream = torch.cuda.Stream()
    result = {"schema": "rammerc/compare-plans/v1", "gpu": torch.cuda.get_device_name(), "models": []}
    with torch.cuda.stream(stream):
        for row in rows(rows_path):
            paths = {x["name"]: os.path.join(folder, x["name"], f"lib{x['name']}.so") for x in row["libraries"]}
            variants = {}
            for x in row["libraries"]:
                if not os.path.exists(paths[x["name"]]):
                    continue
                lib = ctypes.CDLL(paths[x["name"]])
                variants.update({plan: Variant(lib, folder, x["name"], i) for i, plan in enumerate(x["plans"])})
            if not variants:
                continue
            best = dict.fromkeys(variants, math.inf)
            for v in variants.values():
                v.measure(WARM_UP, stream)
            for _ in range(ROUNDS):
                for plan, v in variants.items():
                    best[plan] = min(best[plan], statistics.median(v.measure(RUNS, stream)))
            for v in variants.values():
                v.close()
            row["measured_us"] = best
            result["models"].append(row)
            with open(out_path, "w") as f:
                json.dump(result, f, indent=1)


def rows(path):
    with open(path) as f:
        return [json.loads(line) for line in f]


def geometric_mean(values):
    return math.exp(sum(map(math.log, values)) / len(values))


def table(path):
    """Prints the times of all plans, and how far the simulation is off."""
    with open(path) as f:
        models = json.load(f)["models"]
    plans = models[0]["plans"]
    print("| model | " + " | ".join(plans) + " |")
    print("|---" * (len(plans) + 1) + "|")
    for m in models:
        cells = [f"{m['measured_us'].get(p, math.nan):.1f} ({m['simulated_us'][p]:.1f})" for p in plans]
        print(f"| {m['name']} | " + " | ".join(cells) + " |")
    for p in plans:
        off = [m["simulated_us"][p] / m["measured_us"][p] for m in models if p in m["measured_us"]]
        print(f"{p}: simulated / measured {statistics.median(off):.2f} in the median, {min(off):.2f} to {max(off):.2f}")


# RammerBase is never tried, and a launch for each rOperator in sequence only where nothing else is left.
NOT_TRIED = {"base", "graph"}
PLAN_NAMES = {"auto": "model"}


def auto(out_path, *sources):
    """Joins what was timed in several precisions. auto is the fastest plan of those that it tries; the plan that is called
    auto in the files is what the cost model chooses alone, model here."""
    result = {"schema": "rammerc/shared-plans/v1", **made_with(), "precisions": {}}
    for source in sources:
        precision, _, paths = source.partition("=")
        models = {}
        for path in paths.split(","):
            with open(path) as f:
                for m in json.load(f)["models"]:
                    times = {PLAN_NAMES.get(k, k): round(us, 1) for k, us in m["measured_us"].items()}
                    predicted = {PLAN_NAMES.get(k, k): round(us, 1) for k, us in m["simulated_us"].items()}
                    best = min((k for k in times if k not in NOT_TRIED), key=times.get)
                    models[m["name"]] = {"roperators": m["roperators"], "measured_us": times, "predicted_us": predicted,
                                         "auto": {"kind": best, "us": times[best]}}
        faster = {}
        for kind in sorted({k for m in models.values() for k in m["measured_us"]}):
            ratios = [m["measured_us"][kind] / m["auto"]["us"] for m in models.values() if kind in m["measured_us"]]
            faster[kind] = {"geometric_mean": round(geometric_mean(ratios), 3), "least": round(min(ratios), 3),
                            "most": round(max(ratios), 3), "models": len(ratios)}
        result["precisions"][precision] = {"auto_faster_than": faster, "models": models}
        print(precision, json.dumps(faster))
    with open(out_path, "w") as f:
        json.dump(result, f, indent=1)
        f.write("\n")


def speedups(models, key, slow, fast):
    return [m[key][slow] / m[key][fast] for m in models if {slow, fast} <= m[key].keys()]


SIMULATED = {  # which plan over which, and of which modules
    "base_over_mixed": ("base", "mixed", lambda m: True),
    "base_over_critical_path": ("base", "critical-path", lambda m: True),
    "barriers_over_rprogram_irregular": ("barriers", "rprogram", lambda m: m.get("irregular")),
}


def simulated(rows_path, commit, out):
    """Writes the speedups of all modules, and their average and extremes."""
    models = rows(rows_path)
    result = {"schema": "rammerc/cells-simulated/v1", "device": "h200", "commit": commit, "seed": 1}
    values = {}
    for name, (slow, fast, wanted) in SIMULATED.items():
        values[name] = found = [round(x, 3) for x in speedups([m for m in models if wanted(m)], "simulated_us", slow, fast)]
        result[name] = {"modules": len(found), "average": round(statistics.fmean(found), 3), "most": max(found), "least": min(found)}
    result["speedups"] = values
    text = json.dumps(result, indent=1)
    for name, found in values.items():  # a list a line
        text = text.replace(json.dumps(found, indent=1).replace("\n", "\n  "), json.dumps(found))
    with open(out, "w") as f:
        f.write(text + "\n")
    print({name: result[name] for name in SIMULATED})


def plot(rows_path, measured_path, picture):
    """Draws the distribution of speedups: of Algorithm 1 over RammerBase, and of waits over barriers."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    simulated = rows(rows_path)
    with open(measured_path) as f:
        measured = json.load(f)["models"]
    panels = [("program over RammerBase", "base", "mixed", 1.28, 3.40, lambda m: True),
              ("waits over a barrier, irregular modules", "barriers", "rprogram", 1.11, 1.89, lambda m: m.get("irregular"))]
    figure, axes = plt.subplots(1, 2, figsize=(11, 4))
    for axis, (title, slow, fast, mean, most, wanted) in zip(axes, panels):
        for models, key in ((simulated, "simulated_us"), (measured, "measured_us")):
            values = sorted(speedups([m for m in models if wanted(m)], key, slow, fast))
            if not values:
                continue
            share = [(i + 1) / len(values) for i in range(len(values))]
            average = sum(values) / len(values)
            label = f"{key[:-3]}, {len(values)} modules: {average:.2f} on average, {values[-1]:.2f} at most"
            axis.step(values, share, where="post", label=label)
            print(f"{title}: {label}")
        axis.axvline(mean, color="grey", linestyle="--", label=f"the paper's average, {mean}")
        axis.axvline(most, color="grey", linestyle=":", label=f"the paper's maximum, {most}")
        axis.set(title=title, xlabel="speedup", ylabel="part of the modules")
        axis.legend(fontsize=7)
    figure.tight_layout()
    figure.savefig(picture, dpi=130)


if __name__ == "__main__":
    commands = {"build": build, "time": time, "table": table, "auto": auto, "simulated": simulated, "plot": plot}
    if len(sys.argv) < 3 or sys.argv[1] not in commands:
        sys.exit(__doc__)
    commands[sys.argv[1]](*sys.argv[2:])
