"""Joins what scripts/gpu_precision.sh left in a folder into precision.json, and prints it as a table.

    python3 precision.py OUT "SIDE…" MODEL…

A side is a precision, or old for another version of rammerc. The time of a side is the median of its rounds' medians.
Ratios are how many times faster ours is: PyTorch's time over ours in the same precision, and that of the old version
over strict, which both compute alike. PyTorch is the replay of a CUDA graph; the best peer in tf32 is the faster one of
that and of Inductor. Means are over all models, over those of batch 1, and over those of a larger batch (name_bN).
"""
import json
import math
import os
import re
import statistics
import sys

from collect import load, made_with

RATIOS = {  # name → whose time, over whose
    "old_over_strict": ("old_ms", "strict_ms"),
    "strict_over_fp32": ("strict_ms", "fp32_ms"),
    "strict_over_tf32": ("strict_ms", "tf32_ms"),
    "pytorch_fp32_over_fp32": ("pytorch_fp32_ms", "fp32_ms"),
    "pytorch_tf32_over_tf32": ("pytorch_tf32_ms", "tf32_ms"),
    "best_tf32_over_tf32": ("best_tf32_ms", "tf32_ms"),
    "pytorch_fp16_over_fp16": ("pytorch_fp16_ms", "fp16_ms"),
    "pytorch_fp16_over_bf16": ("pytorch_fp16_ms", "bf16_ms"),
}
GROUPS = {
    "all": lambda name: True,
    "batch_1": lambda name: batch(name) == 1,
    "batched": lambda name: batch(name) > 1,
}


def batch(name):
    match = re.search(r"_b(\d+)", name)
    return int(match[1]) if match else 1


def of_compile(side, report, measured):
    """What compiling took, and the predicted time over the measured one."""
    if not report or "timings" not in report:
        return {}
    r = {f"{side}_{t['stage']}_s": t["seconds"] for t in report["timings"] if t["stage"] in ("schedule", "nvcc")}
    r[side + "_launches"] = report["summary"]["launches"]
    if measured:
        r[side + "_predicted_over_measured"] = report["summary"]["predicted_us"] / 1e3 / measured
    return r


def row(out, name, sides, peer):
    r = {}
    for side in sides:
        rounds, i = [], 0
        while b := load(f"{out}/rows/{name}.{side}.bench.{i}.json"):
            rounds.append(b["libraries"][0]["p50_ms"])
            i += 1
        if rounds:
            r[side + "_ms"] = statistics.median(rounds)
            r[side + "_rounds_ms"] = rounds
        r |= of_compile(side, load(f"{out}/rows/{name}.{side}.compile.json"), r.get(side + "_ms"))
        v = load(f"{out}/rows/{name}.{side}.verify.json")
        if v and "outputs" in v:
            r[side + "_rel_l2"] = max((o["rel_l2"] for o in v["outputs"]), default=0)
            r[side + "_ok"] = v["ok"]
    for precision in ("fp32", "tf32", "fp16"):
        if precision + "_graph_ms" in peer:
            r[f"pytorch_{precision}_ms"] = peer[precision + "_graph_ms"]
    if "tf32_inductor_ms" in peer:
        r["inductor_tf32_ms"] = peer["tf32_inductor_ms"]
    tf32 = [r[k] for k in ("pytorch_tf32_ms", "inductor_tf32_ms") if k in r]
    if tf32:
        r["best_tf32_ms"] = min(tf32)
    for ratio, (over, under) in RATIOS.items():
        if over in r and under in r:
            r[ratio] = r[over] / r[under]
    return r


def means_of(rows):
    means = {}
    for ratio in RATIOS:
        values = [r[ratio] for r in rows.values() if ratio in r]
        if values:
            means[ratio] = {"geometric_mean": math.exp(statistics.fmean(map(math.log, values))), "least": min(values), "models": len(values)}
    return means


def main():
    out, sides, names = sys.argv[1], sys.argv[2].split(), sys.argv[3:]
    peers = load(f"{out}/peers.json") or {}
    rows = {n: row(out, n, sides, peers.get("models", {}).get(n, {})) for n in names}
    means = {group: means_of({n: r for n, r in rows.items() if among(n)}) for group, among in GROUPS.items()}
    predictions = {
        s: sorted(r[s + "_predicted_over_measured"] for r in rows.values() if s + "_predicted_over_measured" in r) for s in sides
    }
    result = {
        "schema": "rammerc/gpu-precision/v2",
        **made_with(),
        "old_commit": os.environ.get("OLD_COMMIT", ""),
        "torch": peers.get("torch"),
        "cudnn": peers.get("cudnn"),
        "ratios": means,
        "predicted_over_measured": {
            s: {"median": statistics.median(p), "least": p[0], "most": p[-1]} for s, p in predictions.items() if p
        },
        "models": rows,
    }
    with open(f"{out}/precision.json", "w") as f:
        json.dump(result, f, indent=1)
    columns = [s + "_ms" for s in sides] + ["pytorch_fp32_ms", "best_tf32_ms", "pytorch_fp16_ms"] + [c for c in RATIOS if any(c in r for r in rows.values())] + [s + "_rel_l2" for s in sides if s != "old"]
    print("model".ljust(22), *columns)
    for n, r in rows.items():
        print(n.ljust(22), *(f"{r[c]:.3g}".rjust(len(c)) if c in r else "-".rjust(len(c)) for c in columns))
    print(json.dumps({k: result[k] for k in ("ratios", "predicted_over_measured")}, indent=1))


main()
