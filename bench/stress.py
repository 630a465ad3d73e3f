"""Makes the rows and the summary of scripts/gpu_stress.sh.

usage: stress.py STEP KEY=VALUE… [FILE…]   prints a row of that step
       stress.py collect OUT               joins OUT/rows/*.json in OUT/stress.json; status 1 when one failed

Every row says what was run and whether it is ok. If nothing was run, "skipped" says why.
"""
import collections
import glob
import json
import os
import re
import sys

from collect import made_with, shell


def read_json(path):
    try:
        return json.load(open(path))
    except (OSError, ValueError):
        return {}


def said_in(path, most):
    """What a tool wrote, without the lines that frame it and without empty lines."""
    text = open(path, errors="replace").read().splitlines() if os.path.exists(path) else []
    text = [line.lstrip("= ") for line in text if line.strip("= ")]
    return text if len(text) <= most else text[:most] + [f"… and {len(text) - most} lines more"]


def delays(row, *results):
    """A row of delayed launches. Each result has a number of launches, and how many of them differ from its first."""
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
    """A row of processes that ran at once. Each is given as PERCENTAGE:EXIT:RESULT."""
    row["processes"] = []
    for p in processes:
        percentage, status, result = p.split(":", 2)
        r = read_json(result)
        row["processes"].append({
            "percentage": int(percentage), "exit": int(status), "mode": r.get("mode", ""), "reason": r.get("reason", ""),
            "launches": r.get("repeats", 0), "differing": r.get("repeats_differing"), "ok": bool(r.get("ok")),
            "says": " ".join(said_in(result + ".err", 5))})
    row["ok"] = row["ended"] and all(p["exit"] == 0 and p["ok"] and p["differing"] == 0 for p in row["processes"])


def neighbours(row, *logs):
    """A line a process: what the driver said to those that trap, to those that do not, and what `verify` printed."""
    lines = {k: [line for f in logs if f".{k}." in f for line in said_in(f, 100000)] for k in ("trap", "wait", "delays")}
    delayed = [json.loads(line) for line in lines["delays"] if line.startswith("{")]
    row["traps"] = sum("launch failure" in line for line in lines["trap"])
    row["processes"], row["ended"] = {}, {}
    for what, errors in (("wait", [line if not line.endswith("no error") else "" for line in lines["wait"]]),
                         ("delays", [r.get("error", "") for r in delayed])):
        row["processes"][what] = len(errors)
        row["ended"][what] = [e for e in errors if e]
    row["differing"] = sum(r.get("repeats_differing", 0) for r in delayed)
    row["ok"] = row["traps"] > 0 and row["differing"] == 0 and all(row["processes"].values())


def kernel_log(since):
    """What the driver wrote to the kernel's log of failures (Xid) after the machine had been up so many seconds, without
    processes and channels, how often each; None where it cannot be read."""
    log = shell("dmesg")
    if not log:
        return None
    found = collections.Counter()
    for line in log.splitlines():
        m = re.match(r"\[ *([0-9.]+)\] NVRM: Xid \([^)]*\): (\d+), (.*)", line)
        if m and float(m[1]) >= since:
            name, error = re.search(r"name=([^,]*)", m[3]), re.search(r"errorString ([A-Z ]+)", m[3])
            what = re.sub(r"-[0-9a-f]{6,}$", "", name[1]) if name else ""
            found[" ".join(x for x in (f"Xid {m[2]}", error and error[1].strip(), what and f"of {what}") if x)] += 1
    return dict(found)


STEPS = {"delays": delays, "contexts": program, "devices": program, "sanitize": sanitize, "mps": mps, "neighbours": neighbours}


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


def collect(out):
    rows = [json.load(open(f)) for f in sorted(glob.glob(f"{out}/rows/*.json"))]
    summary = {
        "schema": "rammerc/stress/v1",
        **made_with(),
        "sanitizer": " ".join(shell("compute-sanitizer", "--version").splitlines()[-1:]),
        "seconds": int(os.environ.get("TOOK", 0)),
        "kernel_log": kernel_log(float(os.environ.get("UP", 0))),
        "ok": bool(rows) and all(r["ok"] for r in rows),
        "results": rows,
    }
    with open(f"{out}/stress.json", "w") as f:
        json.dump(summary, f, indent=1)
    return 0 if summary["ok"] else 1


if __name__ == "__main__":
    if len(sys.argv) == 3 and sys.argv[1] == "collect":
        sys.exit(collect(sys.argv[2]))
    if len(sys.argv) < 3 or sys.argv[1] not in STEPS:
        sys.exit(__doc__)
    print(json.dumps(make_row(sys.argv[1], sys.argv[2:])))
