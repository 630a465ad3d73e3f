"""What bounds the models of h200-latency.json from below, from their plans, and how far their times are from that.

    python3 floors.py LATENCY.json PLANS OUT.json

PLANS holds MODEL.PRECISION.plan.json of the libraries that were timed. Three floors follow from a plan alone, however
well its rTasks are carried out. Other tiles can have lower ones: they multiply less padding, or read less of what others
read, too.

- arithmetic: all multiplications of the plan, at the rate of all tensor cores in that precision and of all FFMA units;
- bytes: weights from device memory, where they do not stay in L2 from one inference to the next, and what rTasks read
  and write at the rate of L2;
- steps: as many rOperators as depend on each other, each of which costs what the start of a launch that overlaps with the
  one before it costs, and the latency of a first load and a last store. Plans with rPrograms have no such floor: values
  that travel with tags need neither.

The rates are those of the H200's device file (device/devices/h200.yaml). The largest of the three is the floor, although
arithmetic and bytes can overlap with the steps only in part.
"""
import json
import os
import sys

SMS, L2_BYTES = 132, 62914560
TENSOR, FFMA = 3750 * SMS, 441 * SMS  # flop/ns; plans state products of tensor cores as if they were tf32
DRAM, L2 = 4670, 9100  # bytes/ns
STEP = 652 + 800  # ns: pdl_ns and latency_ns


def chain(plan):
    """How many rOperators depend on each other, at most. A plan lists them in an order in which they can run.

    It does not say which part of a buffer an rOperator reads, so that this can be too many where several write one; those
    of one launch do not depend on each other.
    """
    ops, launches = plan["ops"], sum(s["waves"] for s in plan["segments"] if s["kind"] == "waves")
    depth, written = {}, {}
    for op in ops:
        before = [w for buffer in op["reads"] for w in written.get(buffer, [])]
        depth[op["id"]] = 1 + max((depth[w] for w in before), default=0)
        for buffer in op["writes"]:
            written.setdefault(buffer, []).append(op["id"])
    steps = max(depth.values(), default=0)
    return min(steps, launches) if launches else steps


def floors(plan):
    tensor = ffma = moved = 0
    for op in plan["ops"]:
        work, n = op["work"], op["rtasks"]
        tensor += n * work.get("tensor_flops", 0)
        ffma += n * work.get("flops", 0)
        moved += n * (work.get("read_bytes", 0) + work.get("write_bytes", 0))
        if not op["rkernel"].endswith("_resident"):  # those stay on chip from step to step
            moved += n * work.get("const_bytes", 0)
    weights = plan["weights_bytes"]
    steps = 0 if any(s["kind"] == "rprogram" for s in plan["segments"]) else chain(plan)
    return {
        "arithmetic_us": (tensor / TENSOR + ffma / FFMA) / 1e3,
        "bytes_us": max(weights / DRAM if weights > 0.8 * L2_BYTES else 0, moved / L2) / 1e3,
        "steps": steps,
        "steps_us": steps * STEP / 1e3,
    }


def main():
    latency, plans, out = sys.argv[1:]
    with open(latency) as f:
        results = json.load(f)
    models = {}
    for name, row in results["models"].items():
        for precision in ("fp32", "tf32", "fp16"):
            path = f"{plans}/{name}.{precision}.plan.json"
            if not os.path.exists(path) or f"{precision}_ms" not in row:
                continue
            with open(path) as f:
                bounds = floors(json.load(f))
            us = row[f"{precision}_ms"] * 1e3
            by = max(("arithmetic", "bytes", "steps"), key=lambda kind: bounds[kind + "_us"])
            models.setdefault(name, {})[precision] = {"us": us, **bounds, "by": by, "floor_share": bounds[by + "_us"] / us}
    made_with = {key: results[key] for key in ("gpu", "driver", "nvcc", "commit")}
    with open(out, "w") as f:
        json.dump({"schema": "rammerc/floors/v1", **made_with, "models": models}, f, indent=1)
    for name, rows in models.items():
        print(name.ljust(22), *(f"{p} {r['us']:.0f} us: {r['by']} {r['floor_share']:.2f}" for p, r in rows.items()))


main()
