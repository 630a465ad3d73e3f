"""Convolutions out of ResNet-50, Inception v3, VGG, ConvNeXt, ResNeXt and DeepLab."""
import convolution_row

# name: (channels, height, width, output channels, filter, stride, padding, dilation, groups)
SHAPES = {
    "resnet50_first": (3, 224, 224, 64, (7, 7), 2, (3, 3), 1, 1),
    "resnet50_56_reduce": (256, 56, 56, 64, (1, 1), 1, (0, 0), 1, 1),
    "resnet50_56": (64, 56, 56, 64, (3, 3), 1, (1, 1), 1, 1),
    "resnet50_28_stride": (256, 56, 56, 512, (1, 1), 2, (0, 0), 1, 1),
    "resnet50_14": (256, 14, 14, 256, (3, 3), 1, (1, 1), 1, 1),
    "resnet50_7": (512, 7, 7, 512, (3, 3), 1, (1, 1), 1, 1),
    "inception_17": (192, 17, 17, 192, (1, 7), 1, (0, 3), 1, 1),
    "vgg_56": (256, 56, 56, 256, (3, 3), 1, (1, 1), 1, 1),
    "vgg_14": (512, 14, 14, 512, (3, 3), 1, (1, 1), 1, 1),
    "convnext_28_down": (192, 28, 28, 384, (2, 2), 2, (0, 0), 1, 1),
    "resnext_28": (256, 28, 28, 256, (3, 3), 1, (1, 1), 1, 16),
    "deeplab_28": (256, 28, 28, 256, (3, 3), 1, (2, 2), 2, 1),
}


def rows():
    for name, shape in SHAPES.items():
        for batch in convolution_row.BATCHES:
            yield convolution_row.Row("conv", name, batch, *shape)
