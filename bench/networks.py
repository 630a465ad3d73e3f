"""The networks that our programs are compared with, as PyTorch modules with random weights.

Each entry of MODELS makes a network and an example of its input, both on the host. Names end with _bN where the batch
is N instead of 1, and with _sN where a text has N tokens instead of 32.
"""
import torch
import torch.nn.functional as F
from torch import nn


def vision(name, size=224, batch=1):
    import torchvision

    kwargs = {"init_weights": False} if name in ("googlenet", "inception_v3") else {}
    return getattr(torchvision.models, name)(weights=None, **kwargs), torch.randn(batch, 3, size, size)


class TimeMajorLSTM(nn.Module):
    def __init__(self, size, layers):
        super().__init__()
        self.lstm = nn.LSTM(size, size, layers)

    def forward(self, x):
        return self.lstm(x)[0][-1]


class EncoderDecoder(nn.Module):
    """A stack of LSTM layers reads a sequence; a smaller one goes on from its upper layers' last states,
    and takes its own results as its inputs."""

    def __init__(self, size, encoders, decoders, steps):
        super().__init__()
        self.encoder = nn.LSTM(size, size, encoders)
        self.decoder = nn.ModuleList(nn.LSTMCell(size, size) for _ in range(decoders))
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


class Speech(nn.Module):
    """Two convolutions over a spectrogram, then LSTM layers over time, then a label for every step."""

    def __init__(self, layers, size, labels):
        super().__init__()

        def convolution(channels, kernel, stride):
            padding = tuple(k // 2 for k in kernel)
            conv = nn.Conv2d(channels, 32, kernel, stride, padding, bias=False)
            return nn.Sequential(conv, nn.ReLU6(), nn.BatchNorm2d(32))

        self.front = nn.Sequential(convolution(1, (41, 11), (2, 2)), convolution(32, (21, 11), (2, 1)))
        self.lstm = nn.LSTM(32 * 81, size, layers)
        self.head = nn.Sequential(nn.BatchNorm1d(size), nn.Linear(size, labels))

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


class Bottleneck(nn.Module):
    """A ResNeXt block: 1×1, 3×3 in groups, 1×1, each normalised, with a shortcut around them."""

    def __init__(self, channels, width, out, stride, groups):
        super().__init__()
        self.body = nn.Sequential(
            *normalised(channels, width, 1), nn.ReLU(), *normalised(width, width, 3, stride, groups), nn.ReLU(), *normalised(width, out, 1)
        )
        same = channels == out and stride == 1
        self.shortcut = nn.Identity() if same else nn.Sequential(*normalised(channels, out, 1, stride))

    def forward(self, x):
        return F.relu(self.body(x) + self.shortcut(x))


def normalised(channels, out, kernel, stride=1, groups=1):
    return nn.Conv2d(channels, out, kernel, stride, kernel // 2, groups=groups, bias=False), nn.BatchNorm2d(out)


def resnext29(groups=16, width=64, blocks=3):
    """ResNeXt-29 for images of 32×32 (Xie et al. 2017): three stages of three blocks."""
    layers, channels = [*normalised(3, 64, 3), nn.ReLU()], 64
    for stage in range(3):
        out = 256 << stage
        for block in range(blocks):
            layers.append(Bottleneck(channels, groups * width << stage, out, 2 if stage and not block else 1, groups))
            channels = out
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(channels, 10)), torch.randn(1, 3, 32, 32)


class Separable(nn.Sequential):
    """NASNet's separable convolution: twice ReLU, depthwise, pointwise, normalisation; the first may have a stride."""

    def __init__(self, channels, kernel, stride=1):
        layers = []
        for s in (stride, 1):
            depthwise = nn.Conv2d(channels, channels, kernel, s, kernel // 2, groups=channels, bias=False)
            layers += [nn.ReLU(), depthwise, *normalised(channels, channels, 1)]
        super().__init__(*layers)


class Fit(nn.Module):
    """Brings a cell's input to the cell's number of channels, and to half of the size where the cell before halved it:
    by two 1×1 convolutions over every second pixel, the other one shifted by a pixel each way."""

    def __init__(self, channels, out, halves):
        super().__init__()
        self.halves = halves
        parts = (out // 2, out - out // 2) if halves else (out,)
        self.parts = nn.ModuleList(nn.Conv2d(channels, part, 1, bias=False) for part in parts)
        self.norm = nn.BatchNorm2d(out)

    def forward(self, x):
        x = F.relu(x)
        if not self.halves:
            return self.norm(self.parts[0](x))
        shifted = F.pad(x, (0, 1, 0, 1))[:, :, 1:, 1:]
        every_second = [F.avg_pool2d(v, 1, 2) for v in (x, shifted)]
        return self.norm(torch.cat([part(v) for part, v in zip(self.parts, every_second)], 1))


def average(x, stride=1):
    return F.avg_pool2d(x, 3, stride, 1, count_include_pad=False)


def maximum(x, stride=1):
    return F.max_pool2d(x, 3, stride, 1)


class NASNetCell(nn.Module):
    """The normal or the reduction cell of NASNet-A (Zoph et al. 2018)."""

    def __init__(self, before, channels, out, halves, reduces):
        super().__init__()
        self.fit_before, self.fit = Fit(before, out, halves), Fit(channels, out, False)
        self.reduces = reduces
        shapes = [(5, 2), (7, 2), (7, 2), (5, 2), (3, 1)] if reduces else [(3, 1), (3, 1), (5, 1), (5, 1), (3, 1)]
        self.separable = nn.ModuleList(Separable(out, *shape) for shape in shapes)

    def forward(self, before, x):
        p, h, s = self.fit_before(before), self.fit(x), self.separable
        if not self.reduces:
            return torch.cat([p, s[0](h) + h, s[1](p) + s[2](h), average(h) + p, average(p) + average(p), s[3](p) + s[4](p)], 1)
        first, second, third = s[0](h) + s[1](p), maximum(h, 2) + s[2](p), average(h, 2) + s[3](p)
        return torch.cat([second, third, maximum(h, 2) + s[4](first), average(first) + second], 1)


class NASNet(nn.Module):
    """NASNet-A for images of 32×32: three stages of cells, a reduction cell between two stages."""

    def __init__(self, filters=32, cells=6):
        super().__init__()
        before = channels = 3 * filters
        self.stem = nn.Sequential(*normalised(3, channels, 3))
        stack, halves = [], False
        for stage in range(3):
            out = filters << stage
            for _ in range(cells):
                stack.append(NASNetCell(before, channels, out, halves, False))
                before, channels, halves = channels, 6 * out, False
            if stage < 2:
                stack.append(NASNetCell(before, channels, 2 * out, False, True))
                before, channels, halves = channels, 8 * out, True
        self.cells, self.head = nn.ModuleList(stack), nn.Linear(channels, 10)

    def forward(self, x):
        before = x = self.stem(x)
        for cell in self.cells:
            before, x = x, cell(before, x)
        return self.head(F.relu(x).mean((2, 3)))


def batched(make, batch):
    """The network that make gives, with an input of so many samples."""

    def of():
        model, x = make()
        return model, x.repeat(batch, *[1] * (x.dim() - 1))

    return of


MODELS = {
    "resnext29_16x64d": resnext29,
    "nasnet_cifar": lambda: (NASNet(), torch.randn(1, 3, 32, 32)),
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
    "bert_l2_b32_s128": lambda: bert(2, 32, 128),
    "swin_t": lambda: vision("swin_t"),
    "resnet50_b32": lambda: vision("resnet50", batch=32),
    "densenet121": lambda: vision("densenet121"),
    "regnet_y_400mf": lambda: vision("regnet_y_400mf"),
    "shufflenet_v2_x1_0": lambda: vision("shufflenet_v2_x1_0"),
}
for _name in ("vgg11", "convnext_tiny", "inception_v3", "efficientnet_b0", "swin_t", "vit_tiny_patch16_224"):
    MODELS[_name + "_b8"] = batched(MODELS[_name], 8)
