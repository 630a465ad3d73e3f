"""Joins the results that scripts/gpu_check.sh wrote to a folder into summary.json, and prints them as a table.

    python3 collect.py OUT [MODEL…]
"""
import glob
import json
import os
import statistics
import subprocess
import sys


def load(path):
    try:
        with open(path) as f:
            return json.load(f)
    except (OSError, ValueError):
        return None


def shell(*command):
    try:
        return subprocess.run(command, capture_output=True, text=True, timeout=60).stdout.strip()
    except (OSError, subprocess.TimeoutExpired):
        return ""


def made_with():
    """What results were made with: the GPUs (one name where all are alike), driver and nvcc of this machine, and the commit."""
    root = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..")
    return {
        "gpu": ", ".join(dict.fromkeys(shell("nvidia-smi", "--query-gpu=name", "--format=csv,noheader").split("\n"))),
        "driver": shell("nvidia-smi", "--query-gpu=driver_version", "--format=csv,noheader").split("\n")[0],
        "nvcc": shell(os.environ.get("NVCC") or "nvcc", "--version").split("\n")[-1],
        "commit": os.environ.get("COMMIT") or shell("git", "-C", root, "rev-parse", "HEAD"),
    }


def rows(out, name, kind):
    """What steps of a script printed to rows/NAME.KIND.json, in the order of their names; nothing of missing or broken files."""
    for path in sorted(glob.glob(f"{out}/rows/{name}.{kind}.json")):
        if r := load(path):
            yield r


def p50_ms(out, name):
    """The median time of a library in each round in which it was timed."""
    return [r["libraries"][0]["p50_ms"] for r in rows(out, name, "bench.*") if "libraries" in r]


def verified(out, name):
    """How far a library's results are from the evaluator's, if they were compared."""
    for r in rows(out, name, "verify"):
        if "outputs" in r:
            return {"rel_l2": max(o["rel_l2"] for o in r["outputs"]), "right": all(o["ok"] for o in r["outputs"])}
    return {}


def timed_programs(out, name):
    """For each program of a model that was compiled and timed: its name, what compile and bench printed, and the measured
    and the predicted microseconds."""
    for path in sorted(glob.glob(f"{out}/rows/{name}.*.compile.json")):
        program = path[len(f"{out}/rows/{name}."):-len(".compile.json")]
        compiled = load(path)
        rounds = [1000 * ms for ms in p50_ms(out, f"{name}.{program}")]
        if rounds and compiled and "summary" in compiled:
            yield program, compiled, {"measured_us": statistics.median(rounds), "rounds_us": rounds,
                                      "predicted_us": compiled["summary"]["predicted_us"]}


def row(out, name, peers):
    r = {}
    c = load(f"{out}/{name}.lib.json")
    if c and "summary" in c:
        r["summary"] = c["summary"]
        r["compile_seconds"] = {t["stage"]: round(t["seconds"], 3) for t in c["timings"]}
    for tag in ("verify", "persistent", "waves", "repeat"):
        v = load(f"{out}/{name}.{tag}.json")
        if v and "outputs" in v:
            r[tag] = {"ok": v["ok"], "rel_l2": max((o["rel_l2"] for o in v["outputs"]), default=0), "samples": v["samples"]}
            if v.get("repeats"):
                r[tag].update(repeats=v["repeats"], differing=v["repeats_differing"])
    for tag in ("bench", "bench-waves", "bench-persistent"):
        b = load(f"{out}/{name}.{tag}.json")
        if b and b.get("libraries"):
            lib = b["libraries"][0]
            r[tag] = {k: lib[k] for k in ("mode", "min_ms", "p50_ms", "p90_ms", "p99_ms", "max_ms", "n", "warm_up")}
    peer = (peers or {}).get("models", {}).get(name)
    if peer:
        r["pytorch"] = peer
        for precision in ("fp32", "tf32"):
            if "bench" in r and precision + "_graph_ms" in peer:
                r[f"speedup_over_pytorch_{precision}_graph"] = peer[precision + "_graph_ms"] / r["bench"]["p50_ms"]
    return r


def main():
    out, names = sys.argv[1], sys.argv[2:]
    peers = load(f"{out}/peers.json")
    sanitize = []
    if os.path.exists(f"{out}/sanitize.jsonl"):
        with open(f"{out}/sanitize.jsonl") as f:
            sanitize = [json.loads(line) for line in f if line.startswith("{")]
    summary = {
        "schema": "rammerc/gpu-check/v1",
        **made_with(),
        "torch": (peers or {}).get("torch"),
        "cudnn": (peers or {}).get("cudnn"),
        "models": {n: row(out, n, peers) for n in names},
        "sanitize": sanitize,
    }
    with open(f"{out}/summary.json", "w") as f:
        json.dump(summary, f, indent=1)
    print(f"{'model':24} {'rel L2':>9} {'one prog':>9} {'waves':>9} {'ours ms':>9} {'one ms':>9} {'waves ms':>9} {'torch fp32':>10} {'ratio':>6}")
    for n, r in summary["models"].items():
        cell = lambda a, b, f: format(r[a][b], f) if r.get(a) and b in r[a] else "-"
        print(
            f"{n:24} {cell('verify', 'rel_l2', '.1e'):>9} {cell('persistent', 'rel_l2', '.1e'):>9} {cell('waves', 'rel_l2', '.1e'):>9}"
            f" {cell('bench', 'p50_ms', '.4f'):>9} {cell('bench-persistent', 'p50_ms', '.4f'):>9}"
            f" {cell('bench-waves', 'p50_ms', '.4f'):>9} {cell('pytorch', 'fp32_graph_ms', '.4f'):>10}"
            f" {r.get('speedup_over_pytorch_fp32_graph', 0):6.2f}"
        )


if __name__ == "__main__":
    main()
