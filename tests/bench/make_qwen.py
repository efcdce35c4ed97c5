#!/usr/bin/env python3
"""A folder like Qwen3.5-0.8B's: its config, its tensors by name, shape and type, random weights (1.75 GB; with --size 27B 54 GB).

    tests/bench/make_qwen.py FOLDER [--size 0.8B] [--layers N] [--text-only] [--tokenizer tokenizer.json …]

Matrices are N(0, 1/in), norms near their neutral values, decays and steps as the model's authors draw them: logits are finite and about
N(0, 1). Everything is bfloat16 but A_log and the gated norms, which are float32 as in the release. The vision tower and the layer for
several tokens at once are there too, as a reader has to pass over them. Needs numpy; the same seed gives the same weights."""
import argparse
import json
import pathlib
import shutil
import struct

import numpy as np

VOCAB, HEAD_DIM, STATE = 248320, 256, 128
# hidden and feed-forward width, layers, heads (query, kv) of softmax attention, (key, value) of the gated delta rule, whether the
# embedding is the head
SIZES = {"0.8B": (1024, 3584, 24, (8, 2), (16, 16), True), "27B": (5120, 17408, 64, (24, 4), (16, 48), False)}
HIDDEN, FFN, LAYERS, (HEADS, KV_HEADS), (KEY_HEADS, VALUE_HEADS), TIED = SIZES["0.8B"]
VISION = {"depth": 12, "hidden_size": 768, "intermediate_size": 3072, "num_heads": 12, "patch_size": 16, "temporal_patch_size": 2,
          "in_channels": 3, "spatial_merge_size": 2, "num_position_embeddings": 2304, "out_hidden_size": HIDDEN}


def is_full(layer):
    return (layer + 1) % 4 == 0


def config(layers, with_vision):
    text = {"model_type": "qwen3_5_text", "attention_bias": False, "attention_dropout": 0.0, "attn_output_gate": True, "dtype": "bfloat16",
            "eos_token_id": 248044, "full_attention_interval": 4, "head_dim": HEAD_DIM, "hidden_act": "silu", "hidden_size": HIDDEN,
            "initializer_range": 0.02, "intermediate_size": FFN,
            "layer_types": ["full_attention" if is_full(i) else "linear_attention" for i in range(layers)],
            "linear_conv_kernel_dim": 4, "linear_key_head_dim": STATE, "linear_num_key_heads": KEY_HEADS,
            "linear_num_value_heads": VALUE_HEADS, "linear_value_head_dim": STATE, "mamba_ssm_dtype": "float32",
            "max_position_embeddings": 262144, "mlp_only_layers": [], "mtp_num_hidden_layers": 1, "mtp_use_dedicated_embeddings": False,
            "num_attention_heads": HEADS, "num_hidden_layers": layers, "num_key_value_heads": KV_HEADS, "rms_norm_eps": 1e-6,
            "rope_parameters": {"mrope_interleaved": True, "mrope_section": [11, 11, 10], "partial_rotary_factor": 0.25,
                                "rope_theta": 10000000, "rope_type": "default"},
            "tie_word_embeddings": TIED, "use_cache": True, "vocab_size": VOCAB}
    if not with_vision:
        return {"architectures": ["Qwen3_5ForCausalLM"], **text}
    return {"architectures": ["Qwen3_5ForConditionalGeneration"], "dtype": "bfloat16", "image_token_id": 248056, "model_type": "qwen3_5",
            "text_config": text, "tie_word_embeddings": TIED, "video_token_id": 248057, "vision_end_token_id": 248054,
            "vision_start_token_id": 248053,
            "vision_config": {"model_type": "qwen3_5", "hidden_act": "gelu_pytorch_tanh", "initializer_range": 0.02, **VISION}}


def attention_tensors(prefix):
    yield prefix + "q_proj.weight", (2 * HEADS * HEAD_DIM, HIDDEN)
    yield prefix + "k_proj.weight", (KV_HEADS * HEAD_DIM, HIDDEN)
    yield prefix + "v_proj.weight", (KV_HEADS * HEAD_DIM, HIDDEN)
    yield prefix + "o_proj.weight", (HIDDEN, HEADS * HEAD_DIM)
    yield prefix + "q_norm.weight", (HEAD_DIM,)
    yield prefix + "k_norm.weight", (HEAD_DIM,)


def delta_net_tensors(prefix):
    keys, values = KEY_HEADS * STATE, VALUE_HEADS * STATE
    yield prefix + "in_proj_qkv.weight", (2 * keys + values, HIDDEN)
    yield prefix + "in_proj_z.weight", (values, HIDDEN)
    yield prefix + "in_proj_a.weight", (VALUE_HEADS, HIDDEN)
    yield prefix + "in_proj_b.weight", (VALUE_HEADS, HIDDEN)
    yield prefix + "conv1d.weight", (2 * keys + values, 1, 4)
    yield prefix + "A_log", (VALUE_HEADS,)
    yield prefix + "dt_bias", (VALUE_HEADS,)
    yield prefix + "norm.weight", (STATE,)
    yield prefix + "out_proj.weight", (HIDDEN, values)


def layer_tensors(prefix, full):
    yield prefix + "input_layernorm.weight", (HIDDEN,)
    yield from attention_tensors(prefix + "self_attn.") if full else delta_net_tensors(prefix + "linear_attn.")
    yield prefix + "post_attention_layernorm.weight", (HIDDEN,)
    yield prefix + "mlp.gate_proj.weight", (FFN, HIDDEN)
    yield prefix + "mlp.up_proj.weight", (FFN, HIDDEN)
    yield prefix + "mlp.down_proj.weight", (HIDDEN, FFN)


def vision_tensors():
    width, inner, merged = VISION["hidden_size"], VISION["intermediate_size"], VISION["hidden_size"] * VISION["spatial_merge_size"] ** 2
    yield "model.visual.patch_embed.proj.weight", (width, VISION["in_channels"], VISION["temporal_patch_size"], VISION["patch_size"],
                                                   VISION["patch_size"])
    yield "model.visual.patch_embed.proj.bias", (width,)
    yield "model.visual.pos_embed.weight", (VISION["num_position_embeddings"], width)
    for i in range(VISION["depth"]):
        for name, outputs, inputs in (("attn.qkv", 3 * width, width), ("attn.proj", width, width), ("mlp.linear_fc1", inner, width),
                                      ("mlp.linear_fc2", width, inner)):
            yield f"model.visual.blocks.{i}.{name}.weight", (outputs, inputs)
            yield f"model.visual.blocks.{i}.{name}.bias", (outputs,)
        for name in ("norm1.weight", "norm1.bias", "norm2.weight", "norm2.bias"):
            yield f"model.visual.blocks.{i}.{name}", (width,)
    yield "model.visual.merger.norm.weight", (width,)
    yield "model.visual.merger.norm.bias", (width,)
    yield "model.visual.merger.linear_fc1.weight", (merged, merged)
    yield "model.visual.merger.linear_fc1.bias", (merged,)
    yield "model.visual.merger.linear_fc2.weight", (HIDDEN, merged)
    yield "model.visual.merger.linear_fc2.bias", (HIDDEN,)


def mtp_tensors():
    yield "mtp.fc.weight", (HIDDEN, 2 * HIDDEN)
    yield from layer_tensors("mtp.layers.0.", full=True)
    for name in ("norm", "pre_fc_norm_embedding", "pre_fc_norm_hidden"):
        yield f"mtp.{name}.weight", (HIDDEN,)


def tensors(layers, with_vision):
    root = "model.language_model." if with_vision else "model."
    yield root + "embed_tokens.weight", (VOCAB, HIDDEN)
    for i in range(layers):
        yield from layer_tensors(f"{root}layers.{i}.", is_full(i))
    yield root + "norm.weight", (HIDDEN,)
    if not TIED:
        yield "lm_head.weight", (VOCAB, HIDDEN)
    if with_vision:
        yield from vision_tensors()
        yield from mtp_tensors()


def is_float32(name):
    return name.endswith(("linear_attn.A_log", "linear_attn.norm.weight"))


def drawn(random, name, shape):
    """Float32 numbers of a tensor."""
    if name.endswith("A_log"):
        return np.log(random.uniform(1, 16, shape)).astype(np.float32)
    if name.endswith("dt_bias"):  # softplus of it is a step from 0.001 to 0.1
        step = np.exp(random.uniform(np.log(0.001), np.log(0.1), shape))
        return np.log(np.expm1(step)).astype(np.float32)
    most = 1 << 22  # numbers drawn for one tensor, and then repeated
    numbers = np.resize(random.standard_normal(min(most, np.prod(shape)), dtype=np.float32), shape)
    if name.endswith("conv1d.weight"):
        return 0.5 * numbers
    if len(shape) > 1:
        return numbers / np.float32(np.sqrt(np.prod(shape[1:])))
    return 0.1 * numbers + np.float32(1 if name.endswith("linear_attn.norm.weight") or "visual" in name and "norm" in name else 0)


def as_bfloat16(numbers):
    """Rounded to the nearest, ties to even; as uint16."""
    bits = numbers.view(np.uint32)
    return ((bits + 0x7FFF + (bits >> 16 & 1)) >> 16).astype(np.uint16)


def write_safetensors(path, listed, seed):
    header, end = {}, 0
    for name, shape in listed:
        begin, end = end, end + int(np.prod(shape)) * (4 if is_float32(name) else 2)
        header[name] = {"dtype": "F32" if is_float32(name) else "BF16", "shape": list(shape), "data_offsets": [begin, end]}
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 64)
    random = np.random.default_rng(seed)
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text)
        for name, shape in listed:
            numbers = drawn(random, name, shape)
            file.write((numbers if is_float32(name) else as_bfloat16(numbers)).tobytes())
    return end


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--size", choices=SIZES, default="0.8B", help="27B: text only")
    parser.add_argument("--layers", type=int)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--text-only", action="store_true", help="a bare text config, no vision tower")
    parser.add_argument("--tokenizer", type=pathlib.Path, nargs="*", default=[], help="files to copy beside the weights")
    options = parser.parse_args()
    global HIDDEN, FFN, LAYERS, HEADS, KV_HEADS, KEY_HEADS, VALUE_HEADS, TIED
    HIDDEN, FFN, LAYERS, (HEADS, KV_HEADS), (KEY_HEADS, VALUE_HEADS), TIED = SIZES[options.size]
    options.layers = options.layers or LAYERS
    with_vision = not options.text_only and options.size == "0.8B"
    options.folder.mkdir(parents=True, exist_ok=True)
    # Float32 tensors first, so that each tensor is aligned to its own type.
    listed = sorted(tensors(options.layers, with_vision), key=lambda tensor: not is_float32(tensor[0]))
    shard = "model.safetensors-00001-of-00001.safetensors"  # as the release spells it
    size = write_safetensors(options.folder / shard, listed, options.seed)
    index = {"metadata": {"total_size": size}, "weight_map": {name: shard for name, _ in listed}}
    (options.folder / "model.safetensors.index.json").write_text(json.dumps(index, indent=2))
    (options.folder / "config.json").write_text(json.dumps(config(options.layers, with_vision), indent=2))
    for file in options.tokenizer:
        shutil.copy(file, options.folder)


if __name__ == "__main__":
    main()
