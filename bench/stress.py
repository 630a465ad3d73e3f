"""Rows and summary of scripts/gpu_stress.sh.

usage: stress.py STEP KEY=VALUE… [FILE…]   prints a row of that step
       stress.py collect OUT ROOT          joins OUT/rows/*.json in OUT/stress.json; status 1 when one failed

Every row says what it is of, whether it is ok, and, where nothing was run, why ("skipped").
"""
import glob
import json
import os
import sys

from collect import shell


def read_json(path):
    try:
        return json.load(open(path))
    except (OSError, ValueError):
        return {}


def said_in(path, most):
    """What a tool wrote, without its frame and empty lines."""
    text = open(path, errors="replace").read().splitlines() if os.path.exists(path) else []
    text = [line.lstrip("= ") for line in text if line.strip("= ")]
    return text if len(text) <= most else text[:most] + [f"… and {len(text) - most} lines more"]


def delays(row, *results):
    """Each of the results is of so many launches, compared with the first among them."""
    runs = [read_json(r) for r in results]
    row["launches"] = sum(r.get("repeats", 0) for r in runs)
    row["differing"] = sum(r.get("repeats_differing", 0) for r in runs)
    row["ok"] = row["exit"] == 0 and row["launches"] > 0 and row["differing"] == 0 and all(r.get("ok") for r in runs)
    errors = [r["error"] for r in runs if "error" in r]
    if errors:
        row["says"] = "; ".join(errors)


def program(row, output):
    row["says"] = "; ".join(said_in(output, 20))
    row["ok"] = row["exit"] == 0


def sanitize(row, log):
    said = said_in(log, 300)
    row["says"] = next((line for line in reversed(said) if "SUMMARY" in line), "no end" if row["exit"] in (124, 137) else "")
    row["ok"] = row["exit"] == 0
    if not row["ok"] or any("Warning" in line for line in said):
        row["log"] = said
        row["hazards"] = said_in(log + ".hazards", 60)


def mps(row, *processes):
    """Processes that ran at once, PERCENTAGE:EXIT:RESULT each."""
    row["processes"] = []
    for p in processes:
        percentage, status, result = p.split(":", 2)
        r = read_json(result)
        row["processes"].append({
            "percentage": int(percentage), "exit": int(status), "mode": r.get("mode", ""), "reason": r.get("reason", ""),
            "launches": r.get("repeats", 0), "differing": r.get("repeats_differing"), "ok": bool(r.get("ok")),
            "says": " ".join(said_in(result + ".err", 5))})
    row["ok"] = row["ended"] and all(p["exit"] == 0 and p["ok"] and p["differing"] == 0 for p in row["processes"])


STEPS = {"delays": delays, "contexts": program, "devices": program, "sanitize": sanitize, "mps": mps}


def make_row(step, args):
    row, files = {"step": step}, []
    for a in args:
        key, equals, value = a.partition("=")
        if not equals:
            files.append(a)
            continue
        try:
            row[key] = json.loads(value)
        except ValueError:
            row[key] = value
    if "skipped" in row:
        row["ok"] = True
    elif "failed" in row:
        row["ok"] = False
    else:
        STEPS[step](row, *files)
    return row


def collect(out, root):
    rows = [json.load(open(f)) for f in sorted(glob.glob(f"{out}/rows/*.json"))]
    summary = {
        "schema": "rammerc/stress/v1",
        "gpu": shell("nvidia-smi", "--query-gpu=name", "--format=csv,noheader").replace("\n", ", "),
        "driver": shell("nvidia-smi", "--query-gpu=driver_version", "--format=csv,noheader").split("\n")[0],
        "sanitizer": " ".join(shell("compute-sanitizer", "--version").splitlines()[-1:]),
        "commit": os.environ.get("COMMIT") or shell("git", "-C", root, "rev-parse", "HEAD"),
        "seconds": int(os.environ.get("TOOK", 0)),
        "ok": bool(rows) and all(r["ok"] for r in rows),
        "results": rows,
    }
    with open(f"{out}/stress.json", "w") as f:
        json.dump(summary, f, indent=1)
    return 0 if summary["ok"] else 1


if __name__ == "__main__":
    if len(sys.argv) == 4 and sys.argv[1] == "collect":
        sys.exit(collect(sys.argv[2], sys.argv[3]))
    if len(sys.argv) < 3 or sys.argv[1] not in STEPS:
        sys.exit(__doc__)
    print(json.dumps(make_row(sys.argv[1], sys.argv[2:])))
