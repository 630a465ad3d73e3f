"""Models as the exporters of torchvision, ultralytics and transformers write them. Detectors have all that they do behind
the network: thresholds, the best boxes of each class, NonMaxSuppression, and windows at the boxes that are found.

    python3 scripts/zoo/exported.py FOLDER [NAME…]      writes NAME.onnx

Weights are random. Each layer's are scaled so that what it makes of noise has the deviation 1, and those behind which
classes and boxes stand, so that boxes differ enough to be told apart. Then tensors are drawn anew with the mean and the
deviation that they have, each from its seed: where these are known, a file with zeros instead is as good (sow), and small
once it is packed. Sizes are options of the classes.
"""
import json
import pathlib
import shutil
import sys

import numpy as np

CLASSES = 5
LARGE = 1024  # elements of a tensor that is drawn anew
SPREAD = {"cls_logits": 2, "cls_score": 2, "classification_head": 2, "bbox": 0.5, "regression_head": 0.5}


def torchvision_model(name):
    """The model, and the size of an image."""
    import torchvision
    from torchvision.models import detection
    layers = torchvision.ops.feature_pyramid_network
    options = dict(weights=None, weights_backbone=None, num_classes=CLASSES)
    size = dict(min_size=64, max_size=96)
    small = dict(min_size=32, max_size=48)
    if name == "ssdlite":
        return detection.ssdlite320_mobilenet_v3_large(score_thresh=0.3, **options), (320, 320)
    if name == "retinanet":
        backbone = detection.backbone_utils.resnet_fpn_backbone(
            backbone_name="resnet18", weights=None, trainable_layers=5, returned_layers=[2, 3, 4],
            extra_blocks=layers.LastLevelP6P7(256, 256))
        return detection.RetinaNet(backbone, CLASSES, score_thresh=0.3, **small), (32, 48)
    few = dict(rpn_pre_nms_top_n_test=60, rpn_post_nms_top_n_test=30, **size)
    if name == "fasterrcnn":
        return detection.fasterrcnn_mobilenet_v3_large_320_fpn(**few, **options), (64, 96)
    backbone = detection.backbone_utils.resnet_fpn_backbone(backbone_name="resnet18", weights=None, trainable_layers=5)
    return detection.MaskRCNN(backbone, CLASSES, **few), (64, 96)


def scaled(model, run):
    """Scale the weights of each layer, in the order in which run(model) comes by them."""
    import torch
    hooks = []

    def add(name, layer):
        wanted = next((by for part, by in SPREAD.items() if part in name), 1.0)

        def hook(layer, _, out):
            if getattr(layer, "done", False):
                return out
            layer.done = True
            bias = 0 if layer.bias is None else layer.bias.reshape([-1] + [1] * (out.dim() - 2))
            by = wanted / float((out - bias).std().clamp(min=1e-6))
            layer.weight.mul_(by)
            return (out - bias) * by + bias
        hooks.append(layer.register_forward_hook(hook))

    for name, layer in model.named_modules():
        if isinstance(layer, (torch.nn.Conv2d, torch.nn.Linear)) and layer.weight.requires_grad:
            add(name, layer)
    with torch.no_grad():
        run(model)
    for h in hooks:
        h.remove()


def draw(seed, count, mean, deviation):
    return (np.random.default_rng(seed).standard_normal(count) * deviation + mean).astype("<f4").tobytes()


def draw_all(path, list_path):
    """Draw the large tensors of a model anew, and list where in the file they are, and what they are drawn from."""
    import onnx
    model, drawn, lists = onnx.load(path), [], []
    for seed, w in enumerate(model.graph.initializer):
        x = onnx.numpy_helper.to_array(w)
        if x.dtype == np.float32 and x.size >= LARGE:
            drawn.append([seed, x.size, float(x.mean()), float(x.std())])
            w.ClearField("float_data")
            w.raw_data = draw(*drawn[-1])
    onnx.save(model, path)
    data, at = pathlib.Path(path).read_bytes(), 0
    for row in drawn:
        at = data.index(draw(*row), at)
        lists.append([at, *row])
    list_path.write_text(json.dumps(lists))


def sow(path, list_path):
    """Put the drawn tensors into a file that has zeros instead."""
    with open(path, "r+b") as f:
        for at, *row in json.loads(list_path.read_text()):
            f.seek(at)
            f.write(draw(*row))


def export(name, path, list_path):
    """Write a model, and the list for sow."""
    write(name, path)
    draw_all(path, list_path)


def write(name, path):
    import torch
    torch.manual_seed(3)
    torch.set_num_threads(1)
    if name.startswith("yolo"):
        return export_yolo(name, path)
    if name == "whisper-encoder":
        return export_encoder(path)
    sizes = name.endswith("-sizes")  # of images: any
    name = name.removesuffix("-sizes")
    model, size = torchvision_model(name)
    model.eval()
    scaled(model, lambda m: m([torch.rand(3, *size)]))
    names = ["boxes", "labels", "scores"] if "rcnn" in name else ["boxes", "scores", "labels"]
    names += ["masks"] if name == "maskrcnn" else []
    torch.onnx.export(model, ([torch.rand(3, *size)],), path, dynamo=False, opset_version=17, input_names=["image"],
                      output_names=names, dynamic_axes={"image": {1: "height", 2: "width"}} if sizes else None)


def export_yolo(name, path):
    import torch
    from ultralytics import YOLO
    model = YOLO(name + ".yaml")
    heads = model.model.model[-1].cv3
    with torch.no_grad():
        for branch in heads:
            branch[-1].bias.zero_()
    scaled(model.model.eval(), lambda m: m((torch.rand(1, 3, 64, 96) - 0.5) * 0.85 + 0.5))
    with torch.no_grad():
        for branch in heads:
            branch[-1].weight.mul_(10)  # what is drawn anew makes less of an image
            branch[-1].bias.fill_(-2.5)
    shutil.move(model.export(format="onnx", nms=True, imgsz=(64, 96), opset=17, simplify=False), path)


def export_encoder(path):
    """The encoder of a Whisper that is as deep as the smallest one and takes a second of audio, or several of these."""
    import torch
    from transformers import WhisperConfig
    from transformers.models.whisper.modeling_whisper import WhisperEncoder
    config = WhisperConfig(d_model=96, encoder_layers=4, encoder_attention_heads=6, encoder_ffn_dim=384, num_mel_bins=80,
                           max_source_positions=50)
    model = WhisperEncoder(config).eval()
    torch.onnx.export(model, (torch.rand(1, 80, 100),), path, dynamo=False, opset_version=17,
                      input_names=["input_features"], output_names=["last_hidden_state"],
                      dynamic_axes={"input_features": {0: "batch"}, "last_hidden_state": {0: "batch"}})


if __name__ == "__main__":
    for wanted in sys.argv[2:] or ["ssdlite", "retinanet", "fasterrcnn", "maskrcnn", "yolov8n", "whisper-encoder"]:
        folder = pathlib.Path(sys.argv[1])
        export(wanted, folder / f"{wanted}.onnx", folder / f"{wanted}.weights.json")
