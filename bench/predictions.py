"""Tabulates predicted over measured latencies, from what scripts/gpu_collect.sh left in a folder.

    python3 bench/predictions.py OUT

OUT/rows has MODEL.PRECISION.compile.json and MODEL.PRECISION.bench.json. OUT/predictions.json gets the table.
"""

import glob
import json
import os
import statistics
import sys


def rows(folder):
    for path in sorted(glob.glob(os.path.join(folder, "rows", "*.bench.json"))):
        name, precision = os.path.basename(path)[:-len(".bench.json")].rsplit(".", 1)
        try:
            with open(path) as f:
                bench = json.load(f)["libraries"][0]
            with open(path[:-len("bench.json")] + "compile.json") as f:
                summary = json.load(f)["summary"]
        except (OSError, ValueError, KeyError, IndexError) as e:
            print(f"{name} {precision}: left out, {e!r}")
            continue
        yield {"model": name, "precision": precision, "predicted_us": round(summary["predicted_us"], 1),
               "measured_us": round(1000 * bench["p50_ms"], 1), "mode": bench["mode"],
               "roperators": summary["roperators"], "measured_costs": summary["measured_costs"],
               "ratio": round(summary["predicted_us"] / (1000 * bench["p50_ms"]), 3)}


def main(folder):
    table = list(rows(folder))
    print(f"{'model':24} {'precision':9} {'predicted':>9} {'measured':>9} {'ratio':>6} {'costs measured':>15}  mode")
    for r in table:
        print(f"{r['model']:24} {r['precision']:9} {r['predicted_us']:9.1f} {r['measured_us']:9.1f} {r['ratio']:6.2f} "
              f"{r['measured_costs']:6d} of {r['roperators']:5d}  {r['mode']}")
    errors = [abs(r["ratio"] - 1) for r in table]
    result = {"schema": "rammerc/predictions/v1", "models": table}
    if errors:
        result["median_absolute_error"] = round(statistics.median(errors), 3)
        result["worst_absolute_error"] = round(max(errors), 3)
        print(f"median absolute error {100 * result['median_absolute_error']:.1f} %, "
              f"worst {100 * result['worst_absolute_error']:.1f} %, of {len(errors)} programs")
    with open(os.path.join(folder, "predictions.json"), "w") as f:
        json.dump(result, f, indent=1)
        f.write("\n")


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    main(sys.argv[1])
