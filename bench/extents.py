"""Writes extents.json out of what scripts/gpu_extents.sh has measured.

    python3 extents.py OUT MODEL "PRECISION…" "EXTENT…"
"""
import json
import os
import statistics
import sys

from int8 import asked, rows


def milliseconds(out, name, extent):
    return [r["libraries"][0]["p50_ms"] for r in rows(out, f"{name}.{extent}", "bench.*")]


def measured(out, precision, extent):
    """The times of both programs in ms, one for each round, and how far the general one is from the evaluator."""
    row = {"seq": extent, "exact_ms": milliseconds(out, f"exact{extent}.{precision}", extent),
           "general_ms": milliseconds(out, f"general.{precision}", extent)}
    if row["exact_ms"] and row["general_ms"]:
        row["general_over_exact"] = statistics.median(row["general_ms"]) / statistics.median(row["exact_ms"])
    for r in rows(out, f"general.{precision}.{extent}", "verify"):
        row["rel_l2"] = max(o["rel_l2"] for o in r["outputs"])
        row["right"] = all(o["ok"] for o in r["outputs"])
    return row


def main():
    out, model, precisions, extents = sys.argv[1], sys.argv[2], sys.argv[3].split(), [int(n) for n in sys.argv[4].split()]
    here = os.path.dirname(os.path.abspath(__file__))
    gpu, _, driver = asked("nvidia-smi", "--query-gpu=name,driver_version", "--format=csv,noheader").partition(", ")
    result = {"schema": "rammerc/extents/v1", "gpu": gpu.split("\n")[0], "driver": driver.split("\n")[0],
              "commit": os.environ.get("COMMIT") or asked("git", "-C", here, "rev-parse", "HEAD"),
              "model": model, "range": "seq=1..512",
              "precisions": {p: [measured(out, p, n) for n in extents] for p in precisions}}
    with open(os.path.join(out, "extents.json"), "w") as f:
        json.dump(result, f, indent=1)
        f.write("\n")
    for p, found in result["precisions"].items():
        ratios = [r["general_over_exact"] for r in found if "general_over_exact" in r]
        print(f"{p}: general / exact {', '.join(f'{r:.2f}' for r in ratios)} at seq = {', '.join(map(str, extents))}")


if __name__ == "__main__":
    main()
