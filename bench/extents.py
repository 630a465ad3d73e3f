"""Writes extents.json out of what scripts/gpu_extents.sh has measured.

    python3 extents.py OUT MODEL "PRECISION…" "EXTENT…"
"""
import json
import os
import statistics
import sys

from collect import made_with, p50_ms, verified


def measured(out, precision, extent):
    """The times of both programs in ms, one for each round, and how far the general one is from the evaluator."""
    row = {"seq": extent, "exact_ms": p50_ms(out, f"exact{extent}.{precision}.{extent}"),
           "general_ms": p50_ms(out, f"general.{precision}.{extent}")}
    if row["exact_ms"] and row["general_ms"]:
        row["general_over_exact"] = statistics.median(row["general_ms"]) / statistics.median(row["exact_ms"])
    row.update(verified(out, f"general.{precision}.{extent}"))
    return row


def main():
    out, model, precisions, extents = sys.argv[1], sys.argv[2], sys.argv[3].split(), [int(n) for n in sys.argv[4].split()]
    result = {"schema": "rammerc/extents/v2", **made_with(),
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
