"""Models of other libraries, with random weights and configurations as small as their kinds allow."""
import contextlib
import inspect

import torch


# Inputs of torchvision's models that do not take an image of 224 by 224, or are slow with one.
SIZES = {"inception_v3": (3, 299, 299), "mc3_18": (3, 8, 64, 64), "r3d_18": (3, 8, 64, 64), "r2plus1d_18": (3, 8, 64, 64),
         "s3d": (3, 14, 224, 224), "mvit_v1_b": (3, 16, 224, 224), "swin3d_t": (3, 8, 64, 64),
         "fcn_resnet50": (3, 128, 128), "deeplabv3_mobilenet_v3_large": (3, 128, 128),
         "lraspp_mobilenet_v3_large": (3, 128, 128), "wide_resnet50_2": (3, 128, 128), "resnext50_32x4d": (3, 128, 128)}
LARGEST = 128  # the image of a model of timm that takes images of any size


class Positional(torch.nn.Module):
    """A model that takes its inputs by position, and gives tensors only."""

    def __init__(self, model, names):
        super().__init__()
        self.model, self.names = model, names

    def forward(self, *args):
        result = self.model(**dict(zip(self.names, args))) if self.names != ["image"] else self.model(*args)
        found = []
        collect(result, found)
        return tuple(found)


def collect(result, found):
    """Appends the floating-point tensors of a nested result."""
    if isinstance(result, torch.Tensor):
        found.append(result)
    elif isinstance(result, dict) or hasattr(result, "items"):
        for value in result.values():
            collect(value, found)
    elif isinstance(result, (list, tuple)):
        for value in result:
            collect(value, found)


def vary(model):
    """Gives parameters that begin as zeros or ones other values, so that nothing is computed in vain."""
    generator = torch.Generator().manual_seed(1)
    with torch.no_grad():
        for name, p in list(model.named_parameters()) + list(model.named_buffers()):
            if not p.is_floating_point() or p.numel() < 2 or "running_var" in name:
                continue
            if torch.all(p == p.flatten()[0]):
                p.add_(torch.rand(p.shape, generator=generator) * 0.2 - 0.1)
    return model


def build(source, name):
    """A model and its inputs by name."""
    if source == "transformers":
        model, inputs = transformer(name)
        return vary(model), inputs
    if source == "timm":
        import timm

        model = timm.create_model(name)
        size = image_size(model.default_cfg)
    else:
        import torchvision

        options = {"weights": None}
        if "weights_backbone" in inspect.signature(torchvision.models.get_model_builder(name)).parameters:
            options["weights_backbone"] = None
        if name in ("googlenet", "inception_v3"):
            options.update(init_weights=True, aux_logits=False)
        model = torchvision.models.get_model(name, **options)
        size = SIZES.get(name, (3, 224, 224))
    return vary(model), {"image": torch.randn(1, *size)}


def image_size(config):
    """A model of timm that takes images of any size gets a small one: its operators are the same."""
    channels, *own = config["input_size"]
    if config.get("fixed_input_size"):
        return channels, *own
    least = (config.get("min_input_size") or (channels, LARGEST, LARGEST))[1:]
    return channels, *map(min, own, least)


def source_of(name):
    """The line of a model that a tool rewrites."""
    import torchvision

    return ("torchvision", name, ["script"]) if name in torchvision.models.list_models() else \
        ("timm", name, ["dynamo"]) if "." not in name and is_timm(name) else ("transformers", name, ["dynamo"])


def is_timm(name):
    import timm

    return name in timm.list_models()


# Numbers that make a configuration small, where it has them.
SMALL = {
    "vocab_size": 120, "hidden_size": 64, "d_model": 64, "n_embd": 64, "dim": 64, "emb_dim": 64, "embed_dim": 64,
    "embedding_size": 64, "num_hidden_layers": 2, "n_layer": 2, "n_layers": 2, "num_layers": 2, "encoder_layers": 2,
    "decoder_layers": 2, "num_decoder_layers": 2, "num_attention_heads": 4, "n_head": 4, "n_heads": 4, "num_heads": 4,
    "encoder_attention_heads": 4, "decoder_attention_heads": 4, "num_key_value_heads": 2, "intermediate_size": 96,
    "ffn_dim": 96, "d_ff": 96, "d_kv": 16, "hidden_dim": 96, "encoder_ffn_dim": 96, "decoder_ffn_dim": 96, "n_inner": 96,
    "max_position_embeddings": 64, "n_positions": 64, "head_dim": 16, "image_size": 64, "moe_intermediate_size": 48,
    "num_experts": 4, "num_local_experts": 4, "n_routed_experts": 4, "ffn_hidden_size": 96, "pad_token_id": 0,
    "bos_token_id": 1, "eos_token_id": 2, "decoder_start_token_id": 1, "type_vocab_size": 2, "dropout": 0.0,
    "q_lora_rank": 16, "kv_lora_rank": 16, "qk_rope_head_dim": 8, "qk_nope_head_dim": 8, "v_head_dim": 16,
    "shared_expert_intermediate_size": 48, "attention_window": 8, "use_cache": False, "state_size": 8, "rank": 8,
}

# What a type needs beside that.
EXTRA = {
    "albert": {"embedding_size": 32}, "transfo-xl": {"cutoffs": []},
    "reformer": {"attn_layers": ["local", "local"], "axial_pos_embds": False, "num_buckets": 2, "attention_head_size": 16,
                 "local_attn_chunk_length": 8, "is_decoder": False, "feed_forward_size": 64},
    "funnel": {"block_sizes": [1, 1], "d_head": 16, "d_inner": 96, "n_head": 4},
    "convbert": {"head_ratio": 2}, "squeezebert": {"embedding_size": 64},
    "layoutlm": {}, "bit": {"hidden_sizes": [32, 64], "depths": [1, 1], "layer_type": "basic"},
    "resnet": {"embedding_size": 16, "hidden_sizes": [16, 32], "depths": [1, 1]},
    "regnet": {"embedding_size": 16, "hidden_sizes": [16, 32], "depths": [1, 1], "groups_width": 8},
    "convnext": {"hidden_sizes": [16, 32], "depths": [1, 1]}, "convnextv2": {"hidden_sizes": [16, 32], "depths": [1, 1]},
    "swin": {"embed_dim": 24, "depths": [1, 1], "num_heads": [2, 4], "window_size": 4, "hidden_size": None},
    "swinv2": {"embed_dim": 24, "depths": [1, 1], "num_heads": [2, 4], "window_size": 4, "hidden_size": None},
    "segformer": {"hidden_sizes": [16, 32, 32, 64], "num_attention_heads": [1, 2, 2, 4], "depths": [1, 1, 1, 1]},
    "poolformer": {"hidden_sizes": [16, 32, 32, 64], "depths": [1, 1, 1, 1]},
    "levit": {"hidden_sizes": [16, 32, 48], "num_attention_heads": [2, 2, 2], "key_dim": [8, 8, 8], "depths": [1, 1, 1]},
    "mobilevit": {"hidden_sizes": [16, 32, 48], "neck_hidden_sizes": [8, 16, 16, 32, 32, 48, 64], "num_attention_heads": 4},
    "efficientnet": {"image_size": 64}, "cvt": {}, "pvt": {}, "pvt_v2": {}, "van": {}, "focalnet": {"embed_dim": 24},
    "wav2vec2": {"conv_dim": [16, 16], "conv_stride": [5, 2], "conv_kernel": [10, 3], "num_feat_extract_layers": 2,
                 "num_conv_pos_embeddings": 16, "num_conv_pos_embedding_groups": 4},
    "whisper": {"num_mel_bins": 16, "max_source_positions": 20, "max_target_positions": 20},
    "speech_to_text": {"input_feat_per_channel": 16, "max_source_positions": 60, "max_target_positions": 20,
                       "conv_channels": 32},
    "gpt_neo": {"attention_types": [[["global", "local"], 1]], "intermediate_size": 96, "window_size": 8},
    "xlm": {"n_langs": 1}, "deberta-v2": {"relative_attention": True, "pos_att_type": ["p2c", "c2p"],
                                           "position_buckets": 8},
    "mamba": {"intermediate_size": 128}, "longformer": {"attention_window": [8, 8]}, "led": {"attention_window": [8, 8],
                                                                                            "max_encoder_position_embeddings": 64,
                                                                                            "max_decoder_position_embeddings": 64},
    "big_bird": {"attention_type": "original_full"}, "perceiver": {"d_latents": 32, "num_latents": 8},
    "ibert": {"quant_mode": False}, "falcon": {"new_decoder_architecture": False},
    "bloom": {}, "data2vec-vision": {}, "dpt": {}, "vit_mae": {"mask_ratio": 0.0},
}
for like, types in {"wav2vec2": ["wav2vec2-conformer", "hubert", "wavlm", "unispeech", "unispeech-sat", "sew", "sew-d",
                                 "data2vec-audio"]}.items():
    for t in types:
        EXTRA[t] = dict(EXTRA[like])
EXTRA["sew"]["squeeze_factor"] = EXTRA["sew-d"]["squeeze_factor"] = 2


def transformer(kind):
    """A model of transformers of this config.model_type with a small configuration, and inputs for it."""
    import transformers

    cls = transformers.CONFIG_MAPPING[kind]
    config = cls()
    shrink(config, EXTRA.get(kind, {}))
    config._attn_implementation = "eager"
    model = transformers.AutoModel.from_config(config, attn_implementation="eager")
    return model, inputs_of(model, config)


def shrink(config, extra):
    for sub in getattr(config, "sub_configs", {}):
        part = getattr(config, sub, None)
        if part is not None and hasattr(part, "to_dict"):
            shrink(part, {})
    mapped = dict(getattr(config, "attribute_map", {}))
    for key, value in {**SMALL, **extra}.items():
        now = getattr(config, key, None)
        plain = isinstance(now, (int, float)) or now is None and key in ("pad_token_id", "n_inner", "head_dim")
        if key not in extra and (not hasattr(config, mapped.get(key, key)) or not plain):
            continue
        if key == "head_dim" and now is None:
            continue
        try:
            setattr(config, key, value)
        except (AttributeError, NotImplementedError):
            continue
    if getattr(config, "layer_types", None) and hasattr(config, "num_hidden_layers"):
        with contextlib.suppress(AttributeError):  # some derive it from the number
            config.layer_types = config.layer_types[:config.num_hidden_layers]


def inputs_of(model, config):
    """Small inputs by the names of a model's parameters."""
    names = list(inspect.signature(model.forward).parameters)
    tokens = (torch.arange(16) * 7 % 100 + 3).reshape(1, 16)
    vision = getattr(config, "vision_config", config)
    size = getattr(vision, "image_size", None) or 64
    size = size if isinstance(size, int) else size[0]
    channels = getattr(vision, "num_channels", 3)
    inputs = {}
    if names[0] in ("input_ids", "pixel_values", "input_values", "input_features"):
        names = [n for n in names if n in ("input_ids", "decoder_input_ids", "pixel_values", "input_values",
                                           "input_features", "attention_mask")]
    for name in names:
        if name == "input_ids":
            inputs[name] = tokens
        elif name == "decoder_input_ids":
            inputs[name] = tokens[:, :8]
        elif name == "attention_mask" and "input_ids" in inputs and "pixel_values" not in inputs:
            inputs[name] = torch.ones_like(tokens)
        elif name == "pixel_values":
            inputs[name] = torch.randn(1, channels, size, size)
        elif name == "input_values":
            inputs[name] = torch.randn(1, 4000)
        elif name == "input_features":
            mel = getattr(config, "num_mel_bins", None) or getattr(config, "input_feat_per_channel", 16)
            inputs[name] = torch.randn(1, mel, 40) if config.model_type == "whisper" else torch.randn(1, 40, mel)
    return inputs
