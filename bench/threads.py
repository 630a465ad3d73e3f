"""Runs libraries from many threads of one process, beside PyTorch's kernels on the default stream, and compares all bits.

    python3 threads.py OUT SECONDS THREADS LIBDIR…

Each thread has a context of its own, and runs inferences on CUDA tensors of PyTorch: by turns on the library's own
stream, on a stream of PyTorch, with new tensors and with the same ones, which the library records as a CUDA graph when
they come again. One more thread multiplies and copies on the legacy default stream all the while. Every 20 s a line says how
far the threads are, and OUT gets threads.json, so that a run that is cut off leaves what it has shown. It has the memory
of the process and of the device at each of these times. The exit status is 1 if a call fails, a bit differs, a thread
makes no progress for a minute, or memory grows; that of the device does not count where BESIDE=1 says that other programs
use it, too. The checks of tensors in the module are tried first.
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


def resident_mb():
    with open("/proc/self/statm") as f:
        return int(f.read().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 2**20


class Watch:
    """Looks at the workers every 20 s, prints how far they are, and keeps the memory that was in use."""

    def __init__(self, workers):
        self.workers, self.start = workers, time.monotonic()
        self.next, self.memory, self.stuck = self.start + 20, [], []
        self.last, self.moved = [0] * len(workers), [self.start] * len(workers)

    def look(self, beside):
        now = time.monotonic()
        if now < self.next:
            return False
        self.next = now + 20
        free, total = torch.cuda.mem_get_info()
        row = {"second": round(now - self.start), "host_mb": round(resident_mb(), 1), "device_mb": round((total - free) / 2**20, 1)}
        self.memory.append(row)
        for i, w in enumerate(self.workers):
            if w.runs != self.last[i] or not w.is_alive():
                self.last[i], self.moved[i] = w.runs, now
            elif now - self.moved[i] > 60:
                self.stuck = [f"thread {i} ({os.path.basename(w.folder)}) makes no progress after run {w.runs}"]
        runs, problems = sum(w.runs for w in self.workers), [p for w in self.workers for p in w.problems]
        print(f"{row['second']} s: {runs} inferences, {beside} kernels beside them, host {row['host_mb']} MB, "
              f"device {row['device_mb']} MB, problems: {problems + self.stuck}", flush=True)
        return True


def growth(memory):
    """What memory grew by in MB since the second minute. Before that, allocators still gather what they keep."""
    settled = [row for row in memory if row["second"] >= 60]
    if len(settled) < 2:
        return {}
    return {kind: round(settled[-1][kind] - settled[0][kind], 1) for kind in ("host_mb", "device_mb")}


def grew(memory):
    """Problems with that growth. A leak of 100 bytes an inference is more than the limit after ten minutes."""
    counted = ("host_mb",) if os.environ.get("BESIDE") == "1" else ("host_mb", "device_mb")
    return [f"{kind} grew by {by}" for kind, by in growth(memory).items() if kind in counted and by > 64]


def main():
    out, seconds, count, folders = sys.argv[1], float(sys.argv[2]), int(sys.argv[3]), sys.argv[4:]
    made, wrong = made_with(), [f"{os.path.basename(f)}: {w}" for f in folders for w in checks(f)]
    until, wanted = time.monotonic() + seconds, {}
    workers = [Worker(folders[i % len(folders)], i, until, wanted) for i in range(count)]
    watch, beside = Watch(workers), 0

    def report(ended):
        problems = [p for w in workers for p in w.problems] + watch.stuck + grew(watch.memory)
        runs = {os.path.basename(f): sum(w.runs for w in workers if w.folder == f) for f in folders}
        result = {"schema": "rammerc/threads/v1", **made, "torch": torch.__version__, "threads": count,
                  "seconds": round(time.monotonic() - watch.start, 1), "ended": ended, "inferences": runs,
                  "default_stream_kernels": beside, "module_checks": wrong, "memory": watch.memory,
                  "growth": growth(watch.memory), "problems": problems,
                  "ok": ended and not wrong and not problems}
        with open(os.path.join(out, "threads.json"), "w") as f:
            json.dump(result, f, indent=1)
            f.write("\n")
        return result

    for w in workers:
        w.daemon = True  # a thread that hangs must not keep the process from ending
        w.start()
    a = torch.randn(512, 512, device="cuda")
    while any(w.is_alive() for w in workers) and not watch.stuck:
        (a @ a).sum().item()  # on the legacy default stream
        beside += 1
        if watch.look(beside):
            report(False)
    result = report(True)
    print(json.dumps(result, indent=1), flush=True)
    os._exit(0 if result["ok"] else 1)


main()
