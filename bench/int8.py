"""Writes int8.json out of what scripts/gpu_int8.sh has measured.

    python3 int8.py OUT QUANTISED:FLOAT…
"""
import json
import os
import statistics
import sys

from collect import made_with, p50_ms, verified


def measured(out, name):
    return {"fp16_ms": p50_ms(out, name), **verified(out, name)}


def main():
    out, pairs = sys.argv[1], [p.split(":") for p in sys.argv[2:]]
    models = {name: measured(out, name) for pair in pairs for name in pair}
    ratios = {q: statistics.median(models[f]["fp16_ms"]) / statistics.median(models[q]["fp16_ms"])
              for q, f in pairs if models[f]["fp16_ms"] and models[q]["fp16_ms"]}
    result = {"schema": "rammerc/int8/v4", **made_with(),
              "fp16_over_int8": ratios, "models": models}
    with open(os.path.join(out, "int8.json"), "w") as f:
        json.dump(result, f, indent=1)
        f.write("\n")
    for q, r in ratios.items():
        print(f"{q}: {1000 * statistics.median(models[q]['fp16_ms']):.1f} µs, fp16 / int8 {r:.2f}, {models[q]}")


if __name__ == "__main__":
    main()
