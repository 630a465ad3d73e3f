"""Depthwise convolutions out of MobileNet, EfficientNet and ConvNeXt, and depthwise ones with the pointwise
one that follows them."""
import convolution_row

# name: (channels, height = width, filter, stride, output channels of a pointwise convolution behind it, or 0)
SHAPES = {
    "mobilenet_112": (32, 112, 3, 1, 0),
    "mobilenet_14": (512, 14, 3, 1, 0),
    "efficientnet_14": (672, 14, 5, 1, 0),
    "efficientnet_7": (1152, 7, 5, 1, 0),
    "convnext_56": (96, 56, 7, 1, 0),
    "convnext_14": (384, 14, 7, 1, 0),
    "separable_56": (128, 56, 3, 1, 128),
    "separable_14": (512, 14, 3, 1, 512),
}


def rows():
    for name, (channels, side, k, stride, out) in SHAPES.items():
        for batch in convolution_row.BATCHES:
            yield convolution_row.Row("depthwise", name, batch, channels, side, side, channels, (k, k), stride,
                                (k // 2, k // 2), 1, channels, out)
