"""Writes extents.json out of what scripts/gpu_extents.sh has measured.

    python3 extents.py OUT MODEL "PRECISION…" "EXTENT…"
"""
import json
import os
import statistics
import sys

from collect import made_with, p50_ms, rows, verified


KINDS = ("general", "auto", "named")  # without special programs, with those of the compiler's choice, with five


def measured(out, precision, extent):
    """The times in ms, one for each round, of a program for this extent alone and of the libraries for all extents; which
    of their programs ran, and how far the one with the compiler's choice is from the evaluator."""
    row = {"seq": extent, "exact_ms": p50_ms(out, f"exact{extent}.{precision}.{extent}")}
    for kind in KINDS:
        times = row[f"{kind}_ms"] = p50_ms(out, f"{kind}.{precision}.{extent}")
        if row["exact_ms"] and times:
            row[f"{kind}_over_exact"] = statistics.median(times) / statistics.median(row["exact_ms"])
        for r in rows(out, f"{kind}.{precision}.{extent}", "bench.*"):
            row[f"{kind}_program"] = r["libraries"][0].get("program")
    row.update(verified(out, f"auto.{precision}.{extent}"))
    return row


def main():
    out, model, precisions, extents = sys.argv[1], sys.argv[2], sys.argv[3].split(), [int(n) for n in sys.argv[4].split()]
    result = {"schema": "rammerc/extents/v4", **made_with(),
              "model": model, "range": "seq=1..512",
              "precisions": {p: [measured(out, p, n) for n in extents] for p in precisions}}
    with open(os.path.join(out, "extents.json"), "w") as f:
        json.dump(result, f, indent=1)
        f.write("\n")
    for p, found in result["precisions"].items():
        for kind in KINDS:
            ratios = [r[f"{kind}_over_exact"] for r in found if f"{kind}_over_exact" in r]
            print(f"{p}: {kind} / exact {', '.join(f'{r:.2f}' for r in ratios)} at seq = {', '.join(map(str, extents))}")


if __name__ == "__main__":
    main()
