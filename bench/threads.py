"""Runs libraries from many threads of one process, beside PyTorch's kernels on the default stream, and compares all bits.

    python3 threads.py OUT SECONDS THREADS LIBDIR…

Each thread has a context of its own, and runs inferences on CUDA tensors of PyTorch: by turns on the library's own
stream, on a stream of PyTorch, with new tensors and with the same ones, which the library records as a CUDA graph when
they come again. One more thread multiplies and copies on the legacy default stream all the while. OUT gets threads.json,
and the exit status is 1 if a call fails or a bit differs. The checks of tensors in the module are tried first.
"""
import glob
import importlib.util
import json
import os
import sys
import threading
import time

import numpy as np
import torch

from collect import made_with


def module(folder):
    path, = glob.glob(f"{folder}/python/*.py")
    spec = importlib.util.spec_from_file_location("library_" + os.path.basename(folder).replace(".", "_").replace("-", "_"), path)
    loaded = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(loaded)
    return loaded


def tensors(model, seed):
    draw = np.random.default_rng(seed)
    made = []
    for t in model.inputs:
        x = draw.standard_normal(t.shape) if t.dtype.kind == "f" else draw.integers(0, 2, t.shape)
        made.append(torch.from_numpy(x.astype(t.dtype)).cuda())
    return made


def refused(call, text):
    try:
        call()
    except ValueError as e:
        return [] if text in str(e) else [f"want {text!r}, got {e}"]
    return [f"taken: {text}"]


def checks(folder):
    """What the module must refuse, and what it must do with streams and outputs, on one library."""
    wrong = []
    with module(folder).Model() as m:
        x = tensors(m, 1)
        out = m(x)
        host = m([t.cpu().numpy() for t in x])
        if not all(np.array_equal(a.cpu().numpy(), b) for a, b in zip(out, host)):
            wrong.append("tensors in device memory give other results than arrays")
        wrong += refused(lambda: m([t.double() if t.is_floating_point() else t.float() for t in x]), "want")
        if x[0].dtype == torch.float32:
            wrong += refused(lambda: m([x[0].view(torch.int32), *x[1:]]), "want")
        wrong += refused(lambda: m([t.cpu() if i == 0 else t for i, t in enumerate(x)] if len(x) > 1 else x, [o.cpu() for o in out]),
                         "must be CUDA tensors")
        wrong += refused(lambda: m(x, []), "out: want")
        stream = torch.cuda.Stream()
        with torch.cuda.stream(stream):
            # x is made late on this stream: who does not wait for it reads zeros.
            late = [torch.zeros_like(t) for t in x]
            torch.cuda._sleep(20_000_000)
            for a, b in zip(late, x):
                a.copy_(b)
            got = m(late)
            into = m.run_async(late, [torch.empty_like(o) for o in got], stream.cuda_stream)
        stream.synchronize()
        for kind, results in (("a call", got), ("run_async", into)):
            if not all(torch.equal(a, b) for a, b in zip(results, out)):
                wrong.append(f"{kind} behind work on another stream gives other results")
    return wrong


class Worker(threading.Thread):
    def __init__(self, folder, number, until, wanted):
        super().__init__()
        self.folder, self.number, self.until, self.wanted = folder, number, until, wanted
        self.runs, self.problems = 0, []

    def run(self):
        try:
            self.work()
        except Exception as e:  # what a call raises is the finding
            self.problems.append(f"{os.path.basename(self.folder)}: {type(e).__name__}: {e}")

    def work(self):
        stream = torch.cuda.Stream()
        with module(self.folder).Model() as m, torch.cuda.stream(stream):
            x = tensors(m, 7)
            kept = [torch.empty(t.shape, dtype=getattr(torch, t.type_name), device="cuda") for t in m.outputs]
            torch.cuda.current_stream().synchronize()
            while time.monotonic() < self.until and not self.problems:
                way = self.runs % 3
                fresh = [t.clone() for t in x] if way == 0 else x
                if way == 2:
                    out = m.run_async(fresh, kept, stream.cuda_stream)
                else:
                    out = m(fresh, kept if way else None)
                stream.synchronize()
                self.runs += 1
                bits = b"".join(o.cpu().numpy().tobytes() for o in out)
                if self.wanted.setdefault(self.folder, bits) != bits:
                    self.problems.append(f"{os.path.basename(self.folder)}: run {self.runs} of thread {self.number} differs")


def main():
    out, seconds, count, folders = sys.argv[1], float(sys.argv[2]), int(sys.argv[3]), sys.argv[4:]
    wrong = [f"{os.path.basename(f)}: {w}" for f in folders for w in checks(f)]
    until, wanted = time.monotonic() + seconds, {}
    workers = [Worker(folders[i % len(folders)], i, until, wanted) for i in range(count)]
    for w in workers:
        w.start()
    a = torch.randn(512, 512, device="cuda")
    beside = 0
    while any(w.is_alive() for w in workers):
        (a @ a).sum().item()  # on the legacy default stream
        beside += 1
    problems = [p for w in workers for p in w.problems]
    runs = {os.path.basename(f): sum(w.runs for w in workers if w.folder == f) for f in folders}
    result = {"schema": "rammerc/threads/v1", **made_with(), "torch": torch.__version__, "threads": count, "seconds": seconds,
              "inferences": runs, "default_stream_kernels": beside, "module_checks": wrong, "problems": problems,
              "ok": not wrong and not problems}
    with open(os.path.join(out, "threads.json"), "w") as f:
        json.dump(result, f, indent=1)
        f.write("\n")
    print(json.dumps(result, indent=1))
    sys.exit(0 if result["ok"] else 1)


main()
