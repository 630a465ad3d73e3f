"""What lies between the rTasks of the longest chain of traced runs, by kind of boundary.

    python3 bench/gaps.py FOLDER > gaps.json

FOLDER holds X.profile.json, which `rammerc profile --json` printed, and X.plan.json of the same library. A gap counts
from the end of an rTask to the start of the next one on the chain that decides when the run ends. In vdevice's
simulation it is made of costs of the device file:

    launch waves->waves       pdl + step              launch waves->rprogram      launch + step
    launch rprogram->waves    cold_launch + step      order waves                 step
    order rprogram            step, and publish where the step before announces itself
    wait rprogram             publish + hop + step
"""

import glob
import json
import os
import statistics
import sys


def boundary(kinds, before, step):
    """The kind of a gap, such as "launch waves->rprogram"."""
    here = kinds[step["segment"]]
    if before is None:
        return f"start {here}"
    if step["by"] == "launch":
        return f"launch {kinds[before['segment']]}->{here}"
    return f"{step['by']} {here}"


def gaps(profile):
    with open(profile) as f:
        steps = json.load(f)["critical_path"]["steps"]
    with open(profile.replace(".profile.json", ".plan.json")) as f:
        kinds = [s["kind"] for s in json.load(f)["segments"]]
    before = None
    for step in steps:
        yield boundary(kinds, before, step), step["gap_us"]
        before = step


def main(folder):
    found, models = {}, []
    for path in sorted(glob.glob(os.path.join(folder, "*.profile.json"))):
        models.append(os.path.basename(path)[: -len(".profile.json")])
        for kind, us in gaps(path):
            found.setdefault(kind, []).append(us)
    rows = {}
    for kind, all_us in sorted(found.items()):
        tenths = statistics.quantiles(all_us, n=10) if len(all_us) > 1 else all_us
        rows[kind] = {"n": len(all_us), "median_us": round(statistics.median(all_us), 3),
                      "mean_us": round(statistics.mean(all_us), 3), "p10_us": round(tenths[0], 3),
                      "p90_us": round(tenths[-1], 3)}
    print(json.dumps({"schema": "rammerc/gaps/v1", "models": models, "gaps": rows}, indent=1))


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    main(sys.argv[1])
