"""Latency of PyTorch on the networks of networks.py, as JSON on standard output.

Every network is replayed as a CUDA graph, inputs resident; the median of 300 replays by device events after 50 of
warm-up, in milliseconds. fp32 is strict (no tf32), tf32 allows it in products and convolutions, and fp16 has weights and
activations in half. With --inductor SECONDS the network is also compiled by torch.compile with the mode max-autotune in
tf32; one that takes longer than SECONDS to compile has no time there. A network that cannot run is a row with the reason.

    python3 peers.py [--inductor SECONDS] [NAME…]    times them, all by default
    python3 peers.py --export FOLDER NAME…           writes them as ONNX; needs the package onnx
"""
import json
import statistics
import subprocess
import sys

import torch

from networks import MODELS

RUNS, WARM_UP = 300, 50


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


def time_graph(model, x):
    """The median time of a replay of model(x) as a CUDA graph, in milliseconds."""
    stream = torch.cuda.Stream()
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


def time_inductor(name, seconds):
    """The time of the compiled network, taken in a process of its own, since compiling may not end in time."""
    done = subprocess.run([sys.executable, __file__, "--compiled", name], capture_output=True, text=True, timeout=seconds)
    return json.loads(done.stdout.splitlines()[-1])


def compiled(name):
    allow_tf32(True)
    model, x = on_device(name)
    with torch.no_grad():
        fast = torch.compile(model, mode="max-autotune")
        print(json.dumps(median_time(lambda: fast(x), torch.cuda.current_stream())))


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


def times(name, inductor):
    row = {}
    ways = {p: lambda p=p: time_graph(*in_precision(name, p)) for p in ("fp32", "tf32", "fp16")}
    keys = {p: p + "_graph" for p in ways}
    if inductor:
        ways["inductor"], keys["inductor"] = lambda: time_inductor(name, inductor), "tf32_inductor"
    for way, time in ways.items():
        try:
            row[keys[way] + "_ms"] = time()
        except Exception as e:  # a peer that cannot run is a row without a time
            row[keys[way] + "_error"] = f"{type(e).__name__}: {e}"[:200]
    return row


def main():
    arguments, inductor = sys.argv[1:], 0
    if arguments[:1] == ["--export"]:
        return export(arguments[1], arguments[2:])
    if arguments[:1] == ["--compiled"]:
        return compiled(arguments[1])
    if arguments[:1] == ["--inductor"]:
        inductor, arguments = float(arguments[1]), arguments[2:]
    out = {"torch": torch.__version__, "cudnn": torch.backends.cudnn.version(), "models": {}}
    for name in arguments or MODELS:
        if name not in MODELS:
            continue
        out["models"][name] = row = times(name, inductor)
        print(name, row, file=sys.stderr)
    json.dump(out, sys.stdout, indent=1)


main()
