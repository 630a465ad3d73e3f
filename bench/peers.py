"""Latency of PyTorch on the networks of networks.py, as JSON on standard output.

A time is that of a CUDA graph's replay, inputs resident: the median of RUNS replays by device events after WARM_UP
others, in milliseconds. fp32 is strict (no tf32), tf32 allows it in products and convolutions, and fp16 has weights and
activations in half. cuDNN takes the algorithms that it measures to be fastest. A network that cannot run is a row with the
reason.

    python3 peers.py [NAME…]                       times them, all by default
    python3 peers.py --inductor SECONDS [NAME…]    and Inductor's programs for them, see below
    python3 peers.py --export FOLDER NAME…         writes them as ONNX; needs the package onnx

Inductor compiles for tf32 and for fp16, in the default mode and then with max-autotune, and the faster program counts.
Each network, precision and mode has a process of its own; half as many compile at a time as there are processors, and what
is not compiled SECONDS after the start has no time. The processes stay, and nothing is timed before all have ended or wait
and a line has come on standard input: so they can compile while other programs keep the GPU and the processors busy, and
the line says that the GPU is free. Then they take turns. With 0 SECONDS nothing is compiled, and the line is waited for
all the same.
"""
import concurrent.futures
import json
import os
import statistics
import subprocess
import sys
import threading
import time

import torch

from networks import MODELS

RUNS, WARM_UP = int(os.environ.get("RUNS", 300)), 50
PRECISIONS, COMPILED = ("fp32", "tf32", "fp16"), ("tf32", "fp16")
MODES = ("default", "max-autotune-no-cudagraphs")  # the replay of a graph is ours


def export(folder, names):
    """Writes models as ONNX, weights inside, so that both sides run the same network."""
    for name in names:
        torch.manual_seed(0)
        model, x = MODELS[name]()
        with torch.no_grad():
            torch.onnx.export(
                Result(model.eval()), (x,), f"{folder}/{name}.onnx", dynamo=False, opset_version=17, input_names=["x"], output_names=["y"]
            )


class Result(torch.nn.Module):
    """A model whose result is one tensor, also if the model itself returns several by name."""

    def __init__(self, model):
        super().__init__()
        self.model = model

    def forward(self, x):
        y = self.model(x)
        return y if isinstance(y, torch.Tensor) else y[0]


def time_graph(model, x, stream=None):
    """The median time of a replay of model(x) as a CUDA graph, in milliseconds."""
    stream = stream or torch.cuda.Stream()
    with torch.no_grad(), torch.cuda.stream(stream):
        for _ in range(5):
            model(x)
        stream.synchronize()
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph, stream=stream):
            model(x)
        return median_time(graph.replay, stream)


def median_time(run, stream):
    times = []
    for i in range(WARM_UP + RUNS):
        start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        start.record(stream)
        run()
        end.record(stream)
        end.synchronize()
        if i >= WARM_UP:
            times.append(start.elapsed_time(end))
    return statistics.median(times)


def allow_tf32(allowed):
    torch.backends.cudnn.benchmark = True
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = allowed


def on_device(name):
    torch.manual_seed(0)
    model, x = MODELS[name]()
    return model.cuda().eval(), x.cuda()


def in_precision(name, precision):
    """The network and its input as the precision wants them, on the device."""
    allow_tf32(precision == "tf32")
    model, x = on_device(name)
    if precision == "fp16":
        return model.half(), x.half() if x.is_floating_point() else x
    return model, x


class Compiled:
    """A process that holds a network which Inductor has compiled, if it did so in time."""

    silent = 0  # processes that gave no time when asked; after two of them no other is asked

    def __init__(self, name, precision, mode, deadline):
        self.error, started = None, time.monotonic()
        if started > deadline:
            self.error, self.seconds = "was not begun", 0
            return
        self.process = subprocess.Popen([sys.executable, __file__, "--compiled", name, precision, mode], text=True,
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        killer = threading.Timer(deadline - started, self.process.kill)
        killer.start()
        line = self.process.stdout.readline()
        killer.cancel()
        self.seconds = time.monotonic() - started
        if line != "compiled\n":
            self.error = f"failed or was stopped after {self.seconds:.0f} s"

    def time(self):
        if self.error or Compiled.silent == 2:
            raise RuntimeError(self.error or "was not asked, since others did not answer")
        try:
            answer, _ = self.process.communicate("go\n", timeout=20)
        except subprocess.TimeoutExpired:
            self.process.kill()
            Compiled.silent += 1
            raise
        return json.loads(answer)


def compile_all(names, seconds):
    """The processes by network, precision and mode, as soon as each of them waits or has ended."""
    deadline = time.monotonic() + seconds
    os.environ.setdefault("TORCHINDUCTOR_COMPILE_THREADS", "2")
    with concurrent.futures.ThreadPoolExecutor(max(1, os.cpu_count() // 2)) as pool:
        started = {(n, p, m): pool.submit(Compiled, n, p, m, deadline) for m in MODES for p in COMPILED for n in names}
    return {key: process.result() for key, process in started.items()}


def hold_compiled(name, precision, mode):
    """Compiles a network, says so on standard output, and times it when a line comes.

    One call compiles it, on the stream on which it is timed. cuDNN measures its algorithms later: by then other processes
    use the GPU at the same time."""
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what Inductor prints is for the log
    model, x = in_precision(name, precision)
    fast = torch.compile(model, mode=mode)
    torch.backends.cudnn.benchmark = False
    stream = torch.cuda.Stream()
    with torch.no_grad(), torch.cuda.stream(stream):
        fast(x)
    stream.synchronize()
    print("compiled", file=answers, flush=True)
    if sys.stdin.readline():
        torch.backends.cudnn.benchmark = True
        print(json.dumps(time_graph(fast, x, stream)), file=answers, flush=True)


def times(name, processes):
    row = {}
    for precision in PRECISIONS:
        try:
            row[precision + "_graph_ms"] = time_graph(*in_precision(name, precision))
        except Exception as e:  # a peer that cannot run is a row without a time
            row[precision + "_graph_error"] = f"{type(e).__name__}: {e}"[:200]
    for precision in COMPILED:
        row |= times_of_inductor(precision, {m: p for m in MODES if (p := processes.get((name, precision, m)))})
    return row


def times_of_inductor(precision, programs):
    """The time of the fastest of Inductor's programs, which are given by mode, and what came of each."""
    row, best = {}, None
    for mode, process in programs.items():
        key = f"{precision}_inductor_{mode.split('-')[0]}"
        row[key + "_compile_s"] = process.seconds
        try:
            row[key + "_ms"] = ms = process.time()
        except Exception as e:
            row[key + "_error"] = f"{type(e).__name__}: {e}"[:200]
            continue
        best = min(ms, best or ms)
    return row | ({f"{precision}_inductor_ms": best} if best else {})


def main():
    arguments, processes = sys.argv[1:], {}
    if arguments[:1] == ["--export"]:
        return export(arguments[1], arguments[2:])
    if arguments[:1] == ["--compiled"]:
        return hold_compiled(*arguments[1:])
    seconds = None
    if arguments[:1] == ["--inductor"]:
        seconds, arguments = float(arguments[1]), arguments[2:]
    names = [n for n in arguments or MODELS if n in MODELS]
    if seconds is not None:
        processes = compile_all(names, seconds) if seconds else {}
        print("compiled", {key: p.error or round(p.seconds) for key, p in processes.items()}, file=sys.stderr, flush=True)
        sys.stdin.readline()
    out = {"torch": torch.__version__, "cudnn": torch.backends.cudnn.version(), "models": {}}
    for name in names:
        out["models"][name] = row = times(name, processes)
        print(name, row, file=sys.stderr)
    json.dump(out, sys.stdout, indent=1)


main()
