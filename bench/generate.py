"""A decoder of GPT-2's size with random weights: writes it as ONNX, and times whole answers of it.

    python3 generate.py model FILE.onnx            writes the decoder
    python3 generate.py time OUT LIBRARY…          times libraries that --generate made of it, and PyTorch

The second form prints a line for each, and writes OUT/generate.json. The others compute the same decoder with the same
weights (generate_peers.py); SIDES names those that are asked (default: all). Times are those of the host's clock, from
the prompt to the tokens.
"""
import importlib
import json
import os
import statistics
import sys
import tempfile
import time

from gpt2 import ANSWER, PROMPT, RUNS, SLOW_RUNS, prompt, write_model


def timed(answer, runs=RUNS):
    """The tokens of an answer, and what it takes in milliseconds: the median."""
    tokens, times = answer(), []
    answer()
    for _ in range(runs):
        start = time.perf_counter()
        again = answer()
        times.append(1e3 * (time.perf_counter() - start))
        assert again == tokens, "an answer differs from run to run"
    return {"tokens": tokens[PROMPT:], "p50_ms": round(statistics.median(times), 3), "min_ms": round(min(times), 3)}


def opened(folder):
    sys.path.insert(0, os.path.join(folder, "python"))
    name = next(f[:-3] for f in os.listdir(os.path.join(folder, "python")) if f.endswith(".py"))
    return importlib.import_module(name).Model()


def library(folder):
    model = opened(folder)
    row = timed(lambda: model.generate([prompt()], PROMPT + ANSWER)[0])
    row["mode"] = json.loads(model.run_info)["mode"]
    model.close()
    return row


def traced(folder):
    """What CUPTI sees of an answer: how often the host launches something, and the bytes of each copy."""
    from torch.profiler import ProfilerActivity, profile

    model = opened(folder)
    model.generate([prompt()], PROMPT + ANSWER)
    with profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA]) as trace:
        model.generate([prompt()], PROMPT + ANSWER)
    model.close()
    with tempfile.TemporaryDirectory() as tmp:
        trace.export_chrome_trace(f"{tmp}/trace.json")
        with open(f"{tmp}/trace.json") as f:
            events = json.load(f)["traceEvents"]
    calls = [e["name"] for e in events if e.get("cat") in ("cuda_runtime", "cuda_driver") and "Launch" in e["name"]]
    copies = [e["args"]["bytes"] for e in events if e.get("cat") == "gpu_memcpy"]
    return {"launches": {name: calls.count(name) for name in sorted(set(calls))}, "copied_bytes": sorted(copies)}


def peer(name):
    import torch
    from generate_peers import made

    with torch.no_grad():
        side = made(name)
        row = timed(lambda: side.answer(prompt()), RUNS if name.startswith("pytorch") else SLOW_RUNS)
    del side
    torch.cuda.empty_cache()
    return row


def compared(rows):
    """Says of each row how many of its tokens are those of PyTorch in fp32: those in front, and all."""
    for name, row in rows.items():
        want = rows.get("pytorch.float32" + (".beam4" if name.endswith("beam4") else ""), {}).get("tokens")
        if want and "tokens" in row:
            same = [a == b for a, b in zip(row["tokens"], want)]
            row["as_pytorch"] = {"first": (same + [False]).index(False), "all": sum(same)}
            row["distinct"] = len(set(row["tokens"]))


def write(out, rows):
    from collect import made_with

    compared(rows)
    result = {"schema": "rammerc/generate/v1", **made_with(), "prompt": PROMPT, "answer": ANSWER, "rows": rows}
    with open(f"{out}/generate.json", "w") as f:
        json.dump(result, f, indent=1)
        f.write("\n")


def main():
    if sys.argv[1] == "model":
        write_model(sys.argv[2])
        return
    import generate_peers

    out, rows = sys.argv[2], {}
    sides = [(os.path.basename(f), library, f) for f in sys.argv[3:]]
    asked = os.environ.get("SIDES", "").split() or generate_peers.names()
    sides += [(name, peer, name) for name in asked]
    for name, measure, what in sides:
        try:
            rows[name] = measure(what)
        except Exception as e:  # one that fails leaves the others
            rows[name] = {"problem": repr(e)[:2000]}
        print(name, rows[name].get("problem") or f"{rows[name]['p50_ms']} ms", flush=True)
        write(out, rows)
    for name, _, folder in sides[: len(sys.argv) - 3]:  # behind the times, since what makes traces slows down the rest
        try:
            rows[name]["trace"] = traced(folder)
        except Exception as e:
            rows[name]["trace"] = {"problem": repr(e)}
        print(name, rows[name]["trace"], rows[name].get("as_pytorch"), flush=True)
        write(out, rows)


main()
