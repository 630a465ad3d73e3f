"""Writes int8.json out of what scripts/gpu_int8.sh has measured.

    python3 int8.py OUT QUANTISED:FLOAT…
"""
import glob
import json
import os
import statistics
import subprocess
import sys


def rows(out, name, kind):
    """What a step of the script has printed about a model; of files that are missing or broken nothing."""
    for path in sorted(glob.glob(os.path.join(out, "rows", f"{name}.{kind}.json"))):
        try:
            with open(path) as f:
                yield json.load(f)
        except ValueError:
            pass


def measured(out, name):
    row = {"fp16_ms": [r["libraries"][0]["p50_ms"] for r in rows(out, name, "bench.*")]}
    for r in rows(out, name, "verify"):
        row["rel_l2"] = max(o["rel_l2"] for o in r["outputs"])
        row["right"] = all(o["ok"] for o in r["outputs"])
    return row


def asked(*command):
    return subprocess.run(command, capture_output=True, text=True).stdout.strip()


def main():
    out, pairs = sys.argv[1], [p.split(":") for p in sys.argv[2:]]
    models = {name: measured(out, name) for pair in pairs for name in pair}
    ratios = {q: statistics.median(models[f]["fp16_ms"]) / statistics.median(models[q]["fp16_ms"])
              for q, f in pairs if models[f]["fp16_ms"] and models[q]["fp16_ms"]}
    gpu, _, driver = asked("nvidia-smi", "--query-gpu=name,driver_version", "--format=csv,noheader").partition(", ")
    result = {"schema": "rammerc/int8/v3", "gpu": gpu.split("\n")[0], "driver": driver.split("\n")[0],
              "commit": asked("git", "-C", os.path.dirname(os.path.abspath(__file__)), "rev-parse", "HEAD"),
              "fp16_over_int8": ratios, "models": models}
    with open(os.path.join(out, "int8.json"), "w") as f:
        json.dump(result, f, indent=1)
        f.write("\n")
    for q, r in ratios.items():
        print(f"{q}: {1000 * statistics.median(models[q]['fp16_ms']):.1f} µs, fp16 / int8 {r:.2f}, {models[q]}")


if __name__ == "__main__":
    main()
