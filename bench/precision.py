"""Joins what scripts/gpu_precision.sh left in a folder into precision.json, and prints it as a table.

    python3 precision.py OUT "SIDE…" MODEL…

A side is a precision, whose plans the cost model chose, or old for another version of rammerc; -measured and -auto after
a precision are two ways to choose by measurement (see the script). The time of a side is the median of its rounds' medians.
Ratios are how many times faster ours is: PyTorch's time over ours in the same precision, and that of the old version
over strict, which both compute alike. PyTorch is the replay of a CUDA graph; the best peer in tf32 and in fp16 is the
faster one of that and of what Inductor compiled. Means are over all models, over those of batch 1, and over those of a larger batch (name_bN).
"""
import json
import math
import os
import re
import statistics
import sys

from collect import load, made_with

PEERS = {"fp32": ["pytorch_fp32"], "tf32": ["pytorch_tf32", "best_tf32"], "fp16": ["pytorch_fp16", "best_fp16"], "bf16": ["pytorch_fp16"]}


def ratios_of(sides):
    """Which time is divided by which, for each ratio's name."""
    pairs = []
    for side in sides:
        precision, _, way = side.partition("-")
        pairs += [(peer, side) for peer in PEERS.get(precision, [])]
        if way:
            pairs.append((precision, side))
        elif precision not in ("old", "strict"):
            pairs.append(("strict", side))
    if "old" in sides:
        pairs.append(("old", "strict"))
    return {key(f"{over}_over_{under}"): (key(over + "_ms"), key(under + "_ms")) for over, under in pairs}


def key(name):
    return name.replace("-", "_")


GROUPS = {
    "all": lambda name: True,
    "batch_1": lambda name: batch(name) == 1,
    "batched": lambda name: batch(name) > 1,
}


def batch(name):
    """The batch of a model, which its name ends with; efficientnet_b0 is a size."""
    found = re.findall(r"_b([1-9]\d*)(?=_|$)", name)
    return int(found[-1]) if found else 1


def of_compile(side, report, measured):
    """What compiling took, and the predicted time over the measured one."""
    if not report or "timings" not in report:
        return {}
    side = key(side)
    r = {f"{side}_{t['stage']}_s": t["seconds"] for t in report["timings"] if t["stage"] in ("schedule", "nvcc")}
    r[side + "_launches"] = report["summary"]["launches"]
    if measured:
        r[side + "_predicted_over_measured"] = report["summary"]["predicted_us"] / 1e3 / measured
    return r


def of_peers(peer):
    """PyTorch's times by precision, those of Inductor's programs, and the better ones of both."""
    r = {}
    for precision in ("fp32", "tf32", "fp16"):
        graph, inductor = (peer.get(f"{precision}_{way}_ms") for way in ("graph", "inductor"))
        if graph:
            r[f"pytorch_{precision}_ms"] = graph
        if inductor:
            r[f"inductor_{precision}_ms"] = inductor
        if (graph or inductor) and precision != "fp32":
            r[f"best_{precision}_ms"] = min(t for t in (graph, inductor) if t)
        r |= {key: value for key, value in peer.items() if key.startswith(precision + "_inductor_") and key != f"{precision}_inductor_ms"}
    return r


def row(out, name, sides, peer):
    r = {}
    for side in sides:
        rounds, i = [], 0
        while b := load(f"{out}/rows/{name}.{side}.bench.{i}.json"):
            rounds.append(b["libraries"][0]["p50_ms"])
            i += 1
        if rounds:
            r[key(side) + "_ms"] = statistics.median(rounds)
            r[key(side) + "_rounds_ms"] = rounds
        r |= of_compile(side, load(f"{out}/rows/{name}.{side}.compile.json"), r.get(key(side) + "_ms"))
        v = load(f"{out}/rows/{name}.{side}.verify.json")
        if v and "outputs" in v:
            r[key(side) + "_rel_l2"] = max((o["rel_l2"] for o in v["outputs"]), default=0)
            r[key(side) + "_ok"] = v["ok"]
    r |= of_peers(peer)
    for ratio, (over, under) in ratios_of(sides).items():
        if over in r and under in r:
            r[ratio] = r[over] / r[under]
    return r


def means_of(rows, sides):
    means = {}
    for ratio in ratios_of(sides):
        values = [r[ratio] for r in rows.values() if ratio in r]
        if values:
            means[ratio] = {"geometric_mean": math.exp(statistics.fmean(map(math.log, values))), "least": min(values), "models": len(values)}
    return means


def main():
    out, sides, names = sys.argv[1], sys.argv[2].split(), sys.argv[3:]
    peers = load(f"{out}/peers.json") or {}
    rows = {n: row(out, n, sides, peers.get("models", {}).get(n, {})) for n in names}
    means = {group: means_of({n: r for n, r in rows.items() if among(n)}, sides) for group, among in GROUPS.items()}
    predictions = {
        s: sorted(r[s + "_predicted_over_measured"] for r in rows.values() if s + "_predicted_over_measured" in r) for s in map(key, sides)
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
    columns = [key(s) + "_ms" for s in sides] + ["pytorch_fp32_ms", "best_tf32_ms", "best_fp16_ms"] + list(ratios_of(sides))
    columns += [key(s) + "_rel_l2" for s in sides if s != "old"]
    columns = [c for c in columns if any(c in r for r in rows.values())]
    print("model".ljust(22), *columns)
    for n, r in rows.items():
        print(n.ljust(22), *(f"{r[c]:.3g}".rjust(len(c)) if c in r else "-".rjust(len(c)) for c in columns))
    print(json.dumps({k: result[k] for k in ("ratios", "predicted_over_measured")}, indent=1))


main()
