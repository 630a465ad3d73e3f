"""Latency of PyTorch on the models that gpu_check measures, batch 1, as JSON on standard output.

Every model is replayed as a CUDA graph, inputs resident; the median of 300 replays by device events after
50 of warm-up, in milliseconds. fp32 is strict (no tf32); tf32 is given beside it. A model whose package
is missing is left out with the reason.

    python3 peers.py [NAME…]                     times them, all by default
    python3 peers.py --export FOLDER NAME…       writes them as ONNX; needs the package onnx
"""
import json
import statistics
import sys

import torch

RUNS, WARM_UP = 300, 50


def vision(name, size=224, batch=1):
    import torchvision

    kwargs = {"init_weights": False} if name in ("googlenet", "inception_v3") else {}
    return getattr(torchvision.models, name)(weights=None, **kwargs), torch.randn(batch, 3, size, size)


class TimeMajorLSTM(torch.nn.Module):
    def __init__(self, size, layers):
        super().__init__()
        self.lstm = torch.nn.LSTM(size, size, layers)

    def forward(self, x):
        return self.lstm(x)[0][-1]


class EncoderDecoder(torch.nn.Module):
    """A stack of LSTM layers reads a sequence; a smaller one goes on from its upper layers' last states,
    and takes its own results as its inputs."""

    def __init__(self, size, encoders, decoders, steps):
        super().__init__()
        self.encoder = torch.nn.LSTM(size, size, encoders)
        self.decoder = torch.nn.ModuleList(torch.nn.LSTMCell(size, size) for _ in range(decoders))
        self.steps = steps

    def forward(self, x):
        encoded, (hidden, cell) = self.encoder(x)
        skipped = self.encoder.num_layers - len(self.decoder)
        states = list(zip(hidden[skipped:], cell[skipped:]))
        value, values = encoded[-1], []
        for _ in range(self.steps):
            for i, layer in enumerate(self.decoder):
                states[i] = layer(value, states[i])
                value = states[i][0]
            values.append(value)
        return torch.stack(values)


class Speech(torch.nn.Module):
    """Two convolutions over a spectrogram, then LSTM layers over time, then a label for every step."""

    def __init__(self, layers, size, labels):
        super().__init__()

        def convolution(channels, kernel, stride):
            padding = tuple(k // 2 for k in kernel)
            conv = torch.nn.Conv2d(channels, 32, kernel, stride, padding, bias=False)
            return torch.nn.Sequential(conv, torch.nn.ReLU6(), torch.nn.BatchNorm2d(32))

        self.front = torch.nn.Sequential(convolution(1, (41, 11), (2, 2)), convolution(32, (21, 11), (2, 1)))
        self.lstm = torch.nn.LSTM(32 * 81, size, layers)
        self.head = torch.nn.Sequential(torch.nn.BatchNorm1d(size), torch.nn.Linear(size, labels))

    def forward(self, x):
        features = self.front(x)  # batch, channel, time, frequency
        sequence, _ = self.lstm(features.permute(2, 0, 3, 1).flatten(2))
        return self.head(sequence.flatten(0, 1))


def bert(layers, batch=1, tokens=32):
    import transformers

    config = transformers.BertConfig(num_hidden_layers=layers, attn_implementation="sdpa")
    return transformers.BertModel(config, add_pooling_layer=False), torch.randint(0, 1000, (batch, tokens))


def gpt2(layers):
    import transformers

    config = transformers.GPT2Config(n_layer=layers, use_cache=False)
    return transformers.GPT2LMHeadModel(config), torch.randint(0, 1000, (1, 32))


def vit():
    import timm

    return timm.create_model("vit_tiny_patch16_224"), torch.randn(1, 3, 224, 224)


MODELS = {
    "alexnet": lambda: vision("alexnet"),
    "squeezenet1_1": lambda: vision("squeezenet1_1"),
    "googlenet": lambda: vision("googlenet"),
    "inception_v3": lambda: vision("inception_v3", 299),
    "resnet18": lambda: vision("resnet18"),
    "mobilenet_v3_small": lambda: vision("mobilenet_v3_small"),
    "efficientnet_b0": lambda: vision("efficientnet_b0"),
    "lstm_tc": lambda: (TimeMajorLSTM(256, 10), torch.randn(100, 1, 256)),
    "seq2seq": lambda: (EncoderDecoder(128, 8, 4, 30), torch.randn(100, 1, 128)),
    "deepspeech2": lambda: (Speech(7, 256, 29), torch.randn(1, 1, 300, 161)),
    "bert_l4_s32": lambda: bert(4),
    "bert_l2_legacy_dyn": lambda: bert(2),
    "gpt2_l2": lambda: gpt2(2),
    "vit_tiny_patch16_224": vit,
    "vgg11": lambda: vision("vgg11"),
    "convnext_tiny": lambda: vision("convnext_tiny"),
    "resnet50": lambda: vision("resnet50"),
    "resnet50_b8": lambda: vision("resnet50", batch=8),
    "bert_l2_b1_s128": lambda: bert(2, 1, 128),
    "bert_l2_b1_s512": lambda: bert(2, 1, 512),
    "bert_l2_b8_s128": lambda: bert(2, 8, 128),
}


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
    stream = torch.cuda.Stream()
    with torch.no_grad(), torch.cuda.stream(stream):
        for _ in range(5):
            model(x)
        stream.synchronize()
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph, stream=stream):
            model(x)
        times = []
        for i in range(WARM_UP + RUNS):
            start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
            start.record(stream)
            graph.replay()
            end.record(stream)
            end.synchronize()
            if i >= WARM_UP:
                times.append(start.elapsed_time(end))
    return statistics.median(times)


def main():
    if sys.argv[1:2] == ["--export"]:
        return export(sys.argv[2], sys.argv[3:])
    torch.backends.cudnn.benchmark = True
    out = {"torch": torch.__version__, "cudnn": torch.backends.cudnn.version(), "models": {}}
    for name in sys.argv[1:] or MODELS:
        if name not in MODELS:
            continue
        row = {}
        for precision in ("fp32", "tf32"):
            torch.backends.cuda.matmul.allow_tf32 = precision == "tf32"
            torch.backends.cudnn.allow_tf32 = precision == "tf32"
            try:
                torch.manual_seed(0)
                model, x = MODELS[name]()
                row[precision + "_graph_ms"] = time_graph(model.cuda().eval(), x.cuda())
            except Exception as e:  # a peer that cannot run is a row without a time
                row[precision + "_error"] = f"{type(e).__name__}: {e}"[:200]
        out["models"][name] = row
        print(name, row, file=sys.stderr)
    json.dump(out, sys.stdout, indent=1)


main()
