"""Tabulates the machine code of models, from what scripts/code_sizes.sh left in a folder.

    python3 bench/code_sizes.py OUT

OUT/rows has MODEL.PRECISION.json. OUT/code.json gets the table.
"""

import glob
import json
import os
import subprocess
import sys

LARGEST = 300 * 1024  # bytes that a program should not exceed


def rows(folder):
    for path in sorted(glob.glob(os.path.join(folder, "rows", "*.json"))):
        name, precision = os.path.basename(path)[:-len(".json")].rsplit(".", 1)
        try:
            with open(path) as f:
                report = json.load(f)
            summary = report["summary"]
            yield {"model": name, "precision": precision, "code_bytes": summary["code_bytes"],
                   "spilled_bytes": summary.get("spilled_bytes", 0), "registers": summary["registers"],
                   "instances": summary["instances"], "launches": summary["launches"],
                   "nvcc_s": round(sum(t["seconds"] for t in report["timings"] if t["stage"] == "nvcc"), 1)}
        except (OSError, ValueError, KeyError) as e:
            print(f"{name} {precision}: left out, {e!r}")


def main(folder):
    table = list(rows(folder))
    for r in table:
        marks = [m for m, on in (("large", r["code_bytes"] > LARGEST), ("spills", r["spilled_bytes"])) if on]
        print(f"{r['model']:24} {r['precision']:5} {r['code_bytes']:7d} bytes, {r['spilled_bytes']:4d} spilled, "
              f"nvcc {r['nvcc_s']:5.1f} s  {' '.join(marks)}")
    root = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    commit = subprocess.run(["git", "-C", root, "rev-parse", "HEAD"], capture_output=True, text=True, check=False)
    result = {"schema": "rammerc/code-sizes/v1", "commit": commit.stdout.strip(), "processors": os.cpu_count(),
              "programs": len(table), "over_300_kib": sum(r["code_bytes"] > LARGEST for r in table),
              "that_spill": sum(r["spilled_bytes"] > 0 for r in table), "models": table}
    with open(os.path.join(folder, "code.json"), "w") as f:
        json.dump(result, f, indent=1)
        f.write("\n")


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    main(sys.argv[1])
