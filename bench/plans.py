"""Joins what scripts/gpu_plans.sh left in a folder into plans.json, prints it as a table, and draws Figure 17.

    python3 plans.py OUT PRECISION "NAME…" "NAME…"     the models of the table, and those of Figure 17

The time of a plan is the median of its rounds' medians; the predicted time is the simulation's, which was made before
anything ran. Plans are named as `rammerc compile --plan` has them; wavefront is mixed, Algorithm 1 of the Rammer paper;
model is what the cost model chooses alone, and auto what is chosen by timing. The kinds of Figure 17 are RammerBase and
Algorithm 1, each with the rKernels that are fastest by themselves and with those that are selected for waves.
"""
import json
import math
import statistics
import sys

from collect import made_with, timed_programs

# Kinds of plan by their names in the figure. The paper says by how much each is faster than the one before in the average
# of its two models (§5.2.4): fast over base-fast 2.89, selected over fast 1.44, and base-fast over base-selected 1.84.
FIGURE = {"base-fast": "base", "rammer-fast": "mixed-fast", "base-selected": "base-selected", "rammer-selected": "wavefront"}
PAPER = {"rammer-fast / base-fast": 2.89, "rammer-selected / rammer-fast": 1.44, "base-fast / base-selected": 1.84}

# What the paper measured on a V100 at batch 1, in milliseconds: the kinds of Figure 17 in the order above, and RammerBase
# and Rammer of Figure 11.
PAPER_FIGURE_MS = {"lstm_tc": (29.7, 5.38, 52.8, 4.73), "resnext29_16x64d": (10.9, 6.09, 29.2, 4.63)}
PAPER_MODELS_MS = {"resnext29_16x64d": (10.94, 4.63), "nasnet_cifar": (2.97, 1.74), "alexnet": (0.961, 0.958),
                   "deepspeech2": (7.89, 4.69), "lstm_tc": (29.7, 4.73), "seq2seq": (9.27, 3.66)}

# The bars of the picture: plans by their names in the papers.
BARS = {"RammerBase": "base", "Opara": "opara", "wavefront (Algorithm 1)": "wavefront", "critical-path": "critical-path", "auto": "auto"}


def row(out, name):
    """Measured and predicted microseconds of all plans of a model."""
    r = {"measured_us": {}, "predicted_us": {}, "rounds_us": {}, "launches": {}}
    for plan, compiled, times in timed_programs(out, name):
        for k, v in times.items():
            r[k][plan] = v
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
    """Draws the models under several plans, and Figure 17, beside what the Rammer paper has. Times are relative to the
    fastest plan of a model, and to the paper's Rammer."""
    try:
        import matplotlib
    except ImportError:
        print("no matplotlib: no picture")
        return
    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    drawing, (left, right) = plt.subplots(1, 2, figsize=(14, 4.5), width_ratios=(3, 2))
    models = {n: m["measured_us"] for n, m in result["models"].items() if len(m["measured_us"]) > 1}
    groups = {}
    for n, times in models.items():
        groups[n] = {label: times[plan] / min(times.values()) for label, plan in BARS.items() if plan in times}
        if n in PAPER_MODELS_MS:
            base, rammer = PAPER_MODELS_MS[n]
            groups[n]["the paper: RammerBase / Rammer, V100"] = base / rammer
    bars(left, groups)
    left.set(title="latency over that of the fastest plan", yscale="log")
    groups = {}
    for n, times in result["figure_17"]["measured_us"].items():
        if times["rammer-selected"]:
            groups[n] = {kind: us / times["rammer-selected"] for kind, us in times.items() if us}
            groups[n + "\nthe paper, V100"] = dict(zip(FIGURE, (ms / PAPER_FIGURE_MS[n][-1] for ms in PAPER_FIGURE_MS[n])))
    bars(right, groups)
    right.set(title="kernel choice (Figure 17): latency over that of rammer-selected", yscale="log")
    drawing.tight_layout()
    drawing.savefig(picture, dpi=110)


def bars(axis, groups):
    """Bars side by side for the values of each group, with their heights above them."""
    labels = list(dict.fromkeys(k for g in groups.values() for k in g))
    width = 0.85 / max(1, len(labels))
    for i, label in enumerate(labels):
        places = [(j + i * width, g[label]) for j, g in enumerate(groups.values()) if label in g]
        drawn = axis.bar(*zip(*places), width, label=label, hatch="//" if label.startswith("the paper") else None)
        axis.bar_label(drawn, fmt="%.2f", fontsize=6, rotation=90, padding=2)
    axis.set_xticks([j + 0.4 for j in range(len(groups))], list(groups), rotation=12, fontsize=8)
    axis.axhline(1, color="grey", linewidth=0.5)
    axis.margins(y=0.15)
    axis.legend(fontsize=7)


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
