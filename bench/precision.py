"""Joins what scripts/gpu_precision.sh left in a folder into precision.json, and prints it as a table.

    python3 precision.py OUT "SIDE…" MODEL…

A side is a precision, or old for another version of rammerc. The time of a side is the median of its rounds' medians.
Ratios are how many times faster ours is: PyTorch's time over ours in the same precision, and that of the old version
over strict, which both compute alike.
"""
import json
import math
import os
import statistics
import sys

from collect import load, made_with

RATIOS = {  # name → whose time, over whose
    "old_over_strict": ("old_ms", "strict_ms"),
    "strict_over_fp32": ("strict_ms", "fp32_ms"),
    "strict_over_tf32": ("strict_ms", "tf32_ms"),
    "pytorch_fp32_over_fp32": ("pytorch_fp32_ms", "fp32_ms"),
    "pytorch_tf32_over_tf32": ("pytorch_tf32_ms", "tf32_ms"),
}


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
        v = load(f"{out}/rows/{name}.{side}.verify.json")
        if v and "outputs" in v:
            r[side + "_rel_l2"] = max((o["rel_l2"] for o in v["outputs"]), default=0)
            r[side + "_ok"] = v["ok"]
    for precision in ("fp32", "tf32"):
        if precision + "_graph_ms" in peer:
            r[f"pytorch_{precision}_ms"] = peer[precision + "_graph_ms"]
    for ratio, (over, under) in RATIOS.items():
        if over in r and under in r:
            r[ratio] = r[over] / r[under]
    return r


def main():
    out, sides, names = sys.argv[1], sys.argv[2].split(), sys.argv[3:]
    peers = load(f"{out}/peers.json") or {}
    rows = {n: row(out, n, sides, peers.get("models", {}).get(n, {})) for n in names}
    means = {}
    for ratio in RATIOS:
        values = [r[ratio] for r in rows.values() if ratio in r]
        if values:
            means[ratio] = {"geometric_mean": math.exp(statistics.fmean(map(math.log, values))), "least": min(values), "models": len(values)}
    result = {
        "schema": "rammerc/gpu-precision/v1",
        **made_with(),
        "old_commit": os.environ.get("OLD_COMMIT", ""),
        "torch": peers.get("torch"),
        "cudnn": peers.get("cudnn"),
        "ratios": means,
        "models": rows,
    }
    with open(f"{out}/precision.json", "w") as f:
        json.dump(result, f, indent=1)
    columns = [s + "_ms" for s in sides] + ["pytorch_fp32_ms", "pytorch_tf32_ms"] + list(RATIOS) + [s + "_rel_l2" for s in sides if s != "old"]
    print("model".ljust(22), *columns)
    for n, r in rows.items():
        print(n.ljust(22), *(f"{r[c]:.3g}".rjust(len(c)) if c in r else "-".rjust(len(c)) for c in columns))
    print(json.dumps(means))


main()
