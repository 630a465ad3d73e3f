"""Joins what scripts/gpu_search.sh left in a folder into search.json, and prints it as a table.

    python3 search.py OUT PRECISION

A time is the median of its rounds' medians. Programs are those that the cost model chooses alone (model), that are chosen
by measured rTasks (measured), by timing plans (auto), and by a search (tuned), all in one precision. fp32 is the model's
choice in fp32, and mixed what a search found beside it in all precisions inside an error budget. other is what the cost
model chooses alone with another device file, such as one of a GPU that nobody has measured, and other-auto what timing
plans chooses with that file. rates is the plan that auto tries of the device's rates alone, without what was fitted.
"""
import glob
import json
import math
import os
import statistics
import sys

from collect import load, made_with, timed_programs

# Which kinds of programs are compared with which.
PAIRS = [("measured", "model"), ("auto", "model"), ("tuned", "model"), ("mixed", "fp32"), ("rates", "model"), ("model", "other"),
         ("other-auto", "other"), ("auto", "other"), ("tuned", "other")]


def row(out, name):
    """Times of all programs of a model, what they were predicted to take, and what was tried."""
    r = {"measured_us": {}, "rounds_us": {}, "predicted_us": {}, "measured_costs": {}}
    for side, compiled, times in timed_programs(out, name):
        for k, v in times.items():
            r[k][side] = v
        summary = compiled["summary"]
        r["measured_costs"][side] = [summary["measured_costs"], summary["roperators"]]
        if side == "auto":
            r["tried"] = compiled.get("tried", [])
        if t := load(f"{out}/rows/{name}.{side}.tune.json"):
            r.setdefault("searches", {})[side] = {k: t[k] for k in ("tries", "problems", "first_us", "best_us", "best", "space") if k in t}
    return r


def summed_up(models):
    """How many times faster programs are than what they are compared with, and how far predictions are off."""
    faster = []
    for side, base in PAIRS:
        ratios = {n: m["measured_us"][base] / m["measured_us"][side] for n, m in models.items() if {side, base} <= m["measured_us"].keys()}
        if ratios:
            faster.append({"side": side, "than": base, "geometric_mean": math.exp(statistics.fmean(map(math.log, ratios.values()))),
                           "models": ratios})
    errors = {}
    for side in ("model", "measured", "other"):
        ratios = [m["predicted_us"][side] / m["measured_us"][side] for m in models.values() if side in m["measured_us"]]
        if ratios:
            errors[side] = {"median_absolute_error": statistics.median(abs(r - 1) for r in ratios),
                            "least": min(ratios), "most": max(ratios), "programs": len(ratios)}
    return {"faster": faster, "predicted_over_measured": errors}


def main():
    out, precision = sys.argv[1:]
    names = sorted({os.path.basename(p).split(".")[0] for p in glob.glob(f"{out}/rows/*.compile.json")})
    models = {n: r for n in names if (r := row(out, n))["measured_us"]}
    collected = load(f"{out}/rows/collect.json") or {}
    profiled = collected.get("profiled", {})
    result = {"schema": "rammerc/measured-search/v1", **made_with(), "precision": precision, **summed_up(models), "models": models,
              "collected": {k: profiled.get(k) for k in ("missing", "measured", "device_seconds")} | {"seconds": collected.get("seconds")}}
    with open(f"{out}/search.json", "w") as f:
        json.dump(result, f, indent=1)
        f.write("\n")
    sides = ["model", "measured", "auto", "tuned", "mixed", "fp32", "rates", "other", "other-auto"]
    print("model".ljust(24), *(s.rjust(18) for s in sides))
    for n, m in models.items():
        cells = (f"{m['measured_us'][s]:.1f} ({m['predicted_us'][s]:.1f})" if s in m["measured_us"] else "-" for s in sides)
        print(n.ljust(24), *(c.rjust(18) for c in cells))
    print(json.dumps({k: result[k] for k in ("faster", "predicted_over_measured", "collected")}, indent=1))


if __name__ == "__main__":
    main()
