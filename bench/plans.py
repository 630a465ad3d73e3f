"""Joins what scripts/gpu_plans.sh left in a folder into plans.json, prints it as a table, and draws Figure 17.

    python3 plans.py OUT PRECISION "NAME…" "NAME…"     the models of the table, and those of Figure 17

The time of a plan is the median of its rounds' medians; the predicted time is the simulation's, which was made before
anything ran. Plans are named as `rammerc compile --plan` has them; wavefront is mixed, Algorithm 1 of the Rammer paper;
model is what the cost model chooses alone, and auto what is chosen by timing. The kinds of Figure 17 are RammerBase and
Algorithm 1, each with the rKernels that are fastest by themselves and with those that are selected for waves.
"""
import glob
import json
import math
import statistics
import sys

from collect import load, made_with

# Kinds of plan by their names in the figure. The paper says by how much each is faster than the one before in the average
# of its two models (§5.2.4): fast over base-fast 2.89, selected over fast 1.44, and base-fast over base-selected 1.84.
FIGURE = {"base-fast": "base", "base-selected": "base-selected", "rammer-fast": "mixed-fast", "rammer-selected": "wavefront"}
PAPER = {"rammer-fast / base-fast": 2.89, "rammer-selected / rammer-fast": 1.44, "base-fast / base-selected": 1.84}


def row(out, name):
    """Measured and predicted microseconds of all plans of a model."""
    r = {"measured_us": {}, "predicted_us": {}, "rounds_us": {}, "launches": {}}
    for path in sorted(glob.glob(f"{out}/rows/{name}.*.compile.json")):
        plan = path[len(f"{out}/rows/{name}."):-len(".compile.json")]
        compiled = load(path)
        rounds, i = [], 0
        while b := load(f"{out}/rows/{name}.{plan}.bench.{i}.json"):
            rounds.append(1000 * b["libraries"][0]["p50_ms"])
            i += 1
        if not rounds or not compiled or "summary" not in compiled:
            continue
        r["measured_us"][plan], r["rounds_us"][plan] = statistics.median(rounds), rounds
        r["predicted_us"][plan] = compiled["summary"]["predicted_us"]
        r["launches"][plan] = compiled["summary"]["launches"]
        if plan == "auto":
            r["tried"] = compiled.get("tried", [])
    return r


def mean(values):
    return math.exp(statistics.fmean(map(math.log, values))) if values else None


def summed_up(models):
    """How far predictions are off, and how many times faster auto is than each other plan."""
    ratios = [m["predicted_us"][p] / t for m in models.values() for p, t in m["measured_us"].items() if p != "auto"]
    errors = sorted(abs(r - 1) for r in ratios)
    plans = sorted({p for m in models.values() for p in m["measured_us"]})
    over = {}
    for p in plans:
        pairs = [m["measured_us"][p] / m["measured_us"]["auto"] for m in models.values() if {p, "auto"} <= m["measured_us"].keys()]
        if p != "auto" and pairs:
            over[p] = {"geometric_mean": mean(pairs), "least": min(pairs), "models": len(pairs)}
    return {
        "auto_faster_than": over,
        "prediction": {"median_absolute_error": statistics.median(errors), "worst": errors[-1], "plans": len(errors)} if errors else {},
    }


def figure(models, names):
    """Times of the kinds of Figure 17, and the ratios that the paper gives."""
    kinds = {n: {k: models[n]["measured_us"].get(p) for k, p in FIGURE.items()} for n in names if n in models}
    ratios = {}
    for pair, paper in PAPER.items():
        fast, slow = pair.split(" / ")
        values = [k[slow] / k[fast] for k in kinds.values() if k[slow] and k[fast]]
        ratios[pair] = {"measured": mean(values), "paper": paper}
    return {"measured_us": kinds, "ratios": ratios}


def plot(result, picture):
    try:
        import matplotlib
    except ImportError:
        print("no matplotlib: no picture")
        return
    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    drawing, axes = plt.subplots(1, 2, figsize=(12, 4))
    for axis, (title, groups) in zip(axes, (
        ("latency over auto", {n: {p: t / m["measured_us"]["auto"] for p, t in m["measured_us"].items()}
                               for n, m in result["models"].items() if "auto" in m["measured_us"]}),
        ("kernel choice (Figure 17): latency over rammer-selected", {
            n: {k: t / ks["rammer-selected"] for k, t in ks.items() if t}
            for n, ks in result["figure_17"]["measured_us"].items() if ks["rammer-selected"]}),
    )):
        labels = sorted({k for g in groups.values() for k in g})
        for i, label in enumerate(labels):
            at = [j + 0.8 * i / max(1, len(labels)) for j in range(len(groups))]
            axis.bar(at, [g.get(label, 0) for g in groups.values()], 0.8 / max(1, len(labels)), label=label)
        axis.set_xticks([j + 0.4 for j in range(len(groups))], list(groups), rotation=20)
        axis.axhline(1, color="grey", linewidth=0.5)
        axis.set(title=title, ylim=(0, 6))
        axis.legend(fontsize=6)
    drawing.tight_layout()
    drawing.savefig(picture, dpi=130)


def main():
    out, precision, names, figures = sys.argv[1], sys.argv[2], sys.argv[3].split(), sys.argv[4].split()
    models = {n: row(out, n) for n in dict.fromkeys(names + figures)}
    models = {n: m for n, m in models.items() if m["measured_us"]}
    result = {"schema": "rammerc/plans/v1", **made_with(), "precision": precision, **summed_up(models), "models": models,
              "figure_17": figure(models, figures)}
    with open(f"{out}/plans.json", "w") as f:
        json.dump(result, f, indent=1)
    plans = sorted({p for m in models.values() for p in m["measured_us"]})
    print("model".ljust(20), *(p.rjust(22) for p in plans))
    for n, m in models.items():
        cells = (f"{m['measured_us'][p]:.1f} ({m['predicted_us'][p]:.1f})" if p in m["measured_us"] else "-" for p in plans)
        print(n.ljust(20), *(c.rjust(22) for c in cells))
    print(json.dumps({k: result[k] for k in ("auto_faster_than", "prediction", "figure_17")}, indent=1))
    plot(result, f"{out}/plans.png")


main()
