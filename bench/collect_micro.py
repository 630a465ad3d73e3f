"""Joins the results that scripts/gpu_micro.sh wrote to a folder into micro.json (schema rammerc/micro/v1), prints them
as a table, and says which checks hold. The exit status is 1 if a check fails or lacks its figures.

    python3 collect_micro.py OUT
"""
import glob
import json
import os
import statistics
import sys

from collect import load, made_with, shell

HERE = os.path.dirname(os.path.abspath(__file__))

# Comparisons of our steps with what bench/micro measures. A row is: a name, the kind of plan, the pattern of
# bench/models.py, the row of bench/micro, and the greatest allowed ratio of our time to the other.
STEP_CHECKS = [
    ("sparse steps, 1 value, against a graph node", "rprogram", "sparse_1", "node_sparse_1", 0.7),
    ("sparse steps, 8 values, against a graph node", "rprogram", "sparse_8", "node_sparse_8", 0.7),
    ("sparse steps, 64 values, against a graph node", "rprogram", "sparse_64", "node_sparse_64", 0.7),
    ("steps in a group of 8, against a graph node", "clusters-8", "group_8", "node_group_8", 0.6),
    ("steps in a group of 8, against a cluster by hand", "clusters-8", "group_8", "cluster_8", 1.1),
    ("steps between neighbours, against a hop", "rprogram", "sparse_1", "hop", 1.2),
    ("dense steps in waves, against a graph node", "waves", "dense", "node_dense", 1.05),
]
# How much longer a step takes if the one before it ran on another vEU, compared with a hop between two SMs.
EDGE_CHECK = ("an edge of a step, against a hop", "edge", "hop", 1.2)
# How many times faster than cuBLAS a chain must be, by N, and what share of DRAM's bandwidth the largest must reach.
CHAIN_CHECKS = {512: 2.5, 1024: 1.7, 2048: 1.3, 4096: 1.1}
DRAM_CHECK = (4096, 0.85)
# The plan that auto chooses may be slower by this factor than the fastest plan asked for by name, because medians vary.
AUTO_CHECK = 1.05


def peers(out):
    rows = {}
    try:
        with open(f"{out}/peers.jsonl") as f:
            for line in f:
                row = json.loads(line)
                if "samples" in row:
                    s = sorted(row["samples"])
                    tenth = len(s) // 10
                    rows[row["name"]] = {
                        "unit": row["unit"], "p10": s[tenth], "median": statistics.median(s), "p90": s[-1 - tenth], "n": len(s),
                    }
    except (OSError, ValueError) as e:
        print(f"peers: {e}", file=sys.stderr)
    return rows


def library(out, name, plan):
    r = {}
    c = load(f"{out}/{name}.{plan}.compile.json")
    if c and "summary" in c:
        r["summary"] = c["summary"]
        r["compile_seconds"] = {t["stage"]: round(t["seconds"], 3) for t in c["timings"]}
    elif c:
        r["error"] = c.get("error")
    if c and c.get("tried"):
        r["tried"] = c["tried"]
    v = load(f"{out}/{name}.{plan}.verify.json")
    if v and "outputs" in v:
        r["verify"] = {"ok": v["ok"], "rel_l2": max(o["rel_l2"] for o in v["outputs"]), "repeats": v.get("repeats"),
                       "differing": v.get("repeats_differing")}
    b = load(f"{out}/{name}.{plan}.bench.json")
    if b and b.get("libraries"):
        lib = b["libraries"][0]
        r["bench"] = {k: lib[k] for k in ("mode", "min_ms", "p50_ms", "p90_ms", "p99_ms", "max_ms", "n", "warm_up")}
    return r


def p50_us(row):
    return row["bench"]["p50_ms"] * 1e3 if row and "bench" in row else None


def step_times(models, listing):
    """Microseconds per step of each pattern and plan, from the difference between its long and its short model."""
    times = {}
    for name, m in listing.items():
        if m["kind"] != "steps" or m["length"] != "long":
            continue
        short = m["pattern"] + "_short"
        for plan, row in models.get(name, {}).items():
            a, b = p50_us(models.get(short, {}).get(plan)), p50_us(row)
            if a is not None and b is not None:
                times.setdefault(m["pattern"], {})[plan] = (b - a) / (m["steps"] - listing[short]["steps"])
    return times


def chain_times(models, listing):
    return {
        name: {plan: p50_us(row) / m["steps"] for plan, row in models.get(name, {}).items() if p50_us(row) is not None}
        for name, m in listing.items()
        if m["kind"] == "chain" and name in models
    }


def check(what, value, limit, least, plan, others):
    """value holds a ratio for each plan. The check is about that of the named plan, or about the best if plan is None."""
    known = {p: v for p, v in value.items() if v is not None}
    if plan is None and known:
        plan = (max if least else min)(known, key=known.get)
    v = known.get(plan)
    ok = None if v is None else (v >= limit if least else v <= limit)
    auto = known.get("auto")
    return {
        "what": what, "plan": plan, "value": v, "at_least" if least else "at_most": limit, "ok": ok,
        "auto_value": auto, "auto_ok": None if auto is None else (auto >= limit if least else auto <= limit), **others,
    }


def median(rows, *names):
    """The least of the medians, without those that are missing."""
    return min((rows[n]["median"] for n in names if n in rows), default=None)


def auto_checks(models):
    """What auto takes beside each of the plans of the same model; of steps the long graphs count, which are all steps."""
    out = []
    for name, plans in models.items():
        auto, others = p50_us(plans.get("auto")), {p: p50_us(r) for p, r in plans.items() if p != "auto" and p50_us(r)}
        if auto is None or not others or name.endswith("_short"):
            continue
        best = min(others, key=others.get)
        chosen = next((t["plan"] for t in plans["auto"].get("tried", []) if t["chosen"]), None)
        out.append(check(f"auto takes {chosen} for {name}, against {best}", {"auto": auto / others[best]}, AUTO_CHECK, False, "auto",
                         {"pattern": name, "peer": best, "peer_ns": others[best] * 1e3}))
    return out


def checks(steps, chains, rows, listing):
    out = []
    for what, plan, pattern, peer, limit in STEP_CHECKS:
        theirs = median(rows, peer)
        ratios = {p: t * 1e3 / theirs for p, t in steps.get(pattern, {}).items()} if theirs else {}
        out.append(check(what, ratios, limit, False, plan, {"pattern": pattern, "peer": peer, "peer_ns": theirs}))
    what, pattern, peer, limit = EDGE_CHECK
    theirs, both = median(rows, peer), steps.get(pattern, {})
    known = theirs and "one-veu" in both and "two-veus" in both
    ratios = {"two-veus": (both["two-veus"] - both["one-veu"]) * 1e3 / theirs} if known else {}
    out.append(check(what, ratios, limit, False, "two-veus", {"pattern": pattern, "peer": peer, "peer_ns": theirs}))
    for n, limit in CHAIN_CHECKS.items():
        theirs = median(rows, f"cublas_rows_{n}", f"cublas_columns_{n}")
        ratios = {p: theirs / (t * 1e3) for p, t in chains.get(f"chain_{n}", {}).items()} if theirs else {}
        out.append(check(f"chain of {n}×{n} products, times as fast as cuBLAS", ratios, limit, True, None,
                         {"pattern": f"chain_{n}", "peer": f"cublas_{n}", "peer_ns": theirs,
                          "ring_ns": median(rows, f"ring_deep_{n}", f"ring_half_{n}")}))
    n, limit = DRAM_CHECK
    bandwidth, m = median(rows, "dram"), listing[f"chain_{n}"]
    bytes_a_step = m["bytes"] / m["steps"]
    shares = {p: bytes_a_step / (t * 1e3) / bandwidth for p, t in chains.get(f"chain_{n}", {}).items()} if bandwidth else {}
    out.append(check(f"chain of {n}×{n} products, share of DRAM's bandwidth", shares, limit, True, None,
                     {"pattern": f"chain_{n}", "peer": "dram", "peer_bytes_per_ns": bandwidth}))
    return out


def main():
    out = sys.argv[1]
    listing = json.loads(shell(sys.executable, os.path.join(HERE, "models.py"), "--list"))
    models = {}
    for path in sorted(glob.glob(f"{out}/*.compile.json")):
        name, plan = os.path.basename(path).removesuffix(".compile.json").rsplit(".", 1)
        models.setdefault(name, {})[plan] = library(out, name, plan)
    rows, steps, chains = peers(out), step_times(models, listing), chain_times(models, listing)
    found = checks(steps, chains, rows, listing) + auto_checks(models)
    wrong = [f"{n} {p}" for n, plans in models.items() for p, r in plans.items()
             if not r.get("verify", {}).get("ok") or r["verify"].get("differing")]
    summary = {
        "schema": "rammerc/micro/v1",
        **made_with(),
        "planned_for": os.environ.get("DEVICE") or "the known device of the architecture",
        "step_us": steps,
        "chain_step_us": chains,
        "peers": rows,
        "checks": found,
        "not_verified": wrong,
        "models": models,
    }
    with open(f"{out}/micro.json", "w") as f:
        json.dump(summary, f, indent=1)
    for title, table in (("steps", steps), ("chains", chains)):
        for name, plans in table.items():
            print(f"{title:8}{name:14}" + "  ".join(f"{p} {t:.3f} µs" for p, t in sorted(plans.items())))
    for name, row in rows.items():
        print(f"peer    {name:22}{row['median']:10.1f} {row['unit']}")
    verdict = {True: "ok", False: "FAILED", None: "unknown"}
    for c in found:
        limit = f"≥ {c['at_least']}" if "at_least" in c else f"≤ {c['at_most']}"
        value = "-" if c["value"] is None else f"{c['value']:.3f}"
        auto = "-" if c["auto_value"] is None else f"{c['auto_value']:.3f}"
        print(f"{verdict[c['ok']]:8}{c['what']}: {value} ({c['plan']}; auto {auto}), wanted {limit}")
    for w in wrong:
        print(f"FAILED  {w} was not verified")
    sys.exit(0 if all(c["ok"] for c in found) and not wrong else 1)


main()
