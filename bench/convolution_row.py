"""A convolution of images, and a pointwise one behind it, as a row of bench/families.py."""
import dataclasses

import numpy as np

import onnx_file

BATCHES = (1, 8, 32)
FEWEST_LAST = 4  # images with fewer channels are stored with their rows innermost


@dataclasses.dataclass
class Row:
    family: str
    of: str
    batch: int
    channels: int
    height: int
    width: int
    out: int
    filter: tuple
    stride: int
    padding: tuple
    dilation: int
    groups: int
    pointwise: int = 0  # output channels of the pointwise convolution behind it, 0 for none

    @property
    def name(self):
        return f"{self.family}_{self.of}_b{self.batch}"

    def _places(self):
        """The output's height and width."""
        reach = [self.dilation * (k - 1) + 1 for k in self.filter]
        return [(n + 2 * p - r) // self.stride + 1
                for n, p, r in zip((self.height, self.width), self.padding, reach)]

    @property
    def flops(self):
        height, width = self._places()
        taps = self.filter[0] * self.filter[1] * self.channels // self.groups
        return 2 * self.batch * height * width * self.out * (taps + self.pointwise)

    def model(self, precision, dtype):
        """The operator on images in the order in which the compiler stores them inside a model of this precision: with
        their channels last for tensor cores, and for depthwise convolutions in any precision. A transposition of an
        input or output is a way to say how it is stored, and costs nothing."""
        rng = np.random.default_rng(self.channels + self.out)
        last = precision not in ("strict", "fp32") or self.groups == self.channels
        consts, nodes = [], []

        def conv(x, y, out, inner, filter, **attributes):
            w = rng.standard_normal((out, inner, *filter)) / (inner * filter[0] * filter[1])**0.5
            consts.append(onnx_file.constant("w" + y, w, dtype))
            nodes.append(onnx_file.node("Conv", [x, "w" + y], [y], kernel_shape=list(filter), **attributes))

        x_last = last and self.channels >= FEWEST_LAST
        if x_last:
            nodes.append(onnx_file.node("Transpose", ["x"], ["images"], perm=[0, 3, 1, 2]))
        conv("images" if x_last else "x", "a", self.out, self.channels // self.groups, self.filter, group=self.groups,
             strides=[self.stride] * 2, pads=[*self.padding] * 2, dilations=[self.dilation] * 2)
        result, channels = "a", self.out
        if self.pointwise:
            conv("a", "b", self.pointwise, self.out, (1, 1))
            result, channels = "b", self.pointwise
        if last:
            nodes.append(onnx_file.node("Transpose", [result], ["y"], perm=[0, 2, 3, 1]))
        shape = lambda c, places, innermost: (*places, c) if innermost else (c, *places)
        return onnx_file.model(
            self.name, nodes, consts,
            [onnx_file.value("x", self.batch, *shape(self.channels, (self.height, self.width), x_last), dtype=dtype)],
            [onnx_file.value("y" if last else result, self.batch, *shape(channels, self._places(), last),
                             dtype=dtype)])

    def vendor(self, torch, dtype):
        """Ways to have cuDNN convolve: in either order of the images, by the algorithm that it measures to be fastest."""
        torch.backends.cudnn.benchmark = True
        conv = torch.nn.functional.conv2d
        random = lambda *dims: torch.randn(*dims, device="cuda").to(dtype)
        x = random(self.batch, self.channels, self.height, self.width)
        w = random(self.out, self.channels // self.groups, *self.filter)
        p = random(self.pointwise, self.out, 1, 1) if self.pointwise else None

        def way(form):
            images, first = x.to(memory_format=form), w.to(memory_format=form)
            second = None if p is None else p.to(memory_format=form)

            def call():
                y = conv(images, first, None, self.stride, self.padding, self.dilation, self.groups)
                return y if second is None else conv(y, second)

            return call

        return {"rows": way(torch.contiguous_format), "channels last": way(torch.channels_last)}
