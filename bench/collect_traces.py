"""Joins the totals of traced runs, OUT/NAME.PLAN.trace.json as `rammerc profile --json` prints them, in
OUT/traces.json (schema rammerc/profile-shares/v1). The exit status is 1 when there are none.

    python3 collect_traces.py OUT
"""
import glob
import json
import os
import sys

from collect import load, made_with

TOTALS = ["span_us", "veus", "sms", "rtasks", "launches", "dropped_steps", "shares", "weights"]


def main():
    out, traces = sys.argv[1], []
    for path in sorted(glob.glob(f"{out}/*.trace.json")):
        name, plan = os.path.basename(path).removesuffix(".trace.json").rsplit(".", 1)
        t = load(path)
        if t and "span_us" in t:
            traces.append({"model": name, "plan": plan} | {k: t[k] for k in TOTALS if k in t})
        else:
            print(f"no trace: {name} {plan}", file=sys.stderr)
    summary = {
        "schema": "rammerc/profile-shares/v1",
        **made_with(),
        "traces": traces,
    }
    with open(f"{out}/traces.json", "w") as f:
        json.dump(summary, f, indent=1)
    for t in traces:
        ahead = f", weights {t['weights']['ahead_us']:.2f} µs ahead" if "weights" in t else ""
        print(f"{t['model']:16}{t['plan']:12}{t['span_us']:10.1f} µs, computing {t['shares']['compute']:.0%}{ahead}")
    sys.exit(0 if traces else 1)


main()
