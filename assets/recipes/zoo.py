"""Trains the zoo: python3 zoo.py --out zoo

Every model of a task has the same width, heads, data, steps and tokens, and the same number of parameters to 5 % (what a mixer needs more
is taken from the MLP). Models are trained side by side, the longest first, each in a process of its own; a model whose folder is there is
not trained again, and one whose state lies there goes on from it, so a run that was stopped goes on where it was. At the end the scores of all trainings of a task are in OUT/TASK.json, laid out
as `seeds/` has them: `table.py --seeds OUT` makes the tables over seeds of them.
"""

import argparse
import json
import os
import re
import subprocess
import sys
import time
from pathlib import Path

# name → what distinguishes the model; the rest follows from the task's size.
FAMILIES = {
    "transformer": {"model_type": "transformer"},
    "moba": {"model_type": "moba"},
    "nsa": {"model_type": "nsa"},
    "retnet": {"model_type": "retnet"},
    "gla": {"model_type": "gla"},
    "delta-net": {"model_type": "delta_net"},
    "gated-deltanet": {"model_type": "gated_deltanet"},
    "mamba2": {"model_type": "mamba2"},
    "mamba": {"model_type": "mamba"},
    "kda": {"model_type": "kda"},
    "rwkv7": {"model_type": "rwkv7"},
    "hgrn2": {"model_type": "hgrn2"},
    "mom": {"model_type": "mom", "num_memories": 4, "topk": 1},
    "gla-row-sparse": {"model_type": "gla", "row_sparse": {"topk": 4, "skip_decay": True}},
    "sla-retnet": {"model_type": "retnet", "sla": {}},
    "sla-gla": {"model_type": "gla", "sla": {}},
    "sla-gdn": {"model_type": "gated_deltanet", "sla": {}},
    "sse-gla-n4k1": {"model_type": "sse", "linear_attn_type": "gla", "N": 4, "W": 1},
    "sse-gla-n4k2": {"model_type": "sse", "linear_attn_type": "gla", "N": 4, "W": 2},
    "sse-gla-n8k1": {"model_type": "sse", "linear_attn_type": "gla", "N": 8, "W": 1},
    "sse-gla-n8k2": {"model_type": "sse", "linear_attn_type": "gla", "N": 8, "W": 2},
    "sse-gla-n16k4": {"model_type": "sse", "linear_attn_type": "gla", "N": 16, "W": 4},
    "sse-gdn-n4k1": {"model_type": "sse", "linear_attn_type": "gdn", "N": 4, "W": 1},
    "sse-h-n4k1": {"model_type": "sse", "linear_attn_type": "gla", "N": 4, "W": 1, "attn": {}},
}

# hidden_size, heads, width of a head, layers, intermediate_size of the family that all others are matched to (GLA).
SIZES = {
    "niah": {"vocab_size": 512, "D": 128, "H": 4, "K": 16, "L": 4, "inner": 128},
    "mqar": {"vocab_size": 576, "D": 64, "H": 2, "K": 16, "L": 2, "inner": 128},
    "prose": {"vocab_size": 256, "D": 256, "H": 4, "K": 32, "L": 7, "inner": 768},
}


def make_config(family, size, **changes):
    """config.json of a family at a size, its intermediate_size chosen so that the parameters match"""
    config = raw_config(family, size)
    config.update(changes)
    if config["model_type"] in ("mamba", "mamba2"):
        return config
    step = 4 if config["model_type"] == "moba" else 8  # in steps of 8 MoBA falls between two, one of which is out of the 5 %
    least, next_one = (count({**config, "intermediate_size": width}) for width in (step, 2 * step))
    spare = count(raw_config("gla", size)) - least
    config["intermediate_size"] = step * max(1, 1 + round(spare / (next_one - least)))
    return config


def raw_config(family, size):
    s, given = SIZES[size], dict(FAMILIES[family])
    D, H, K, L = s["D"], s["H"], s["K"], s["L"]
    config = {"model_type": given.pop("model_type"), "vocab_size": s["vocab_size"], "hidden_size": D, "num_hidden_layers": L,
              "intermediate_size": s["inner"], "hidden_act": "swish", "norm_eps": 1e-6, "tie_word_embeddings": True, "fuse_norm": True,
              "torch_dtype": "float32", "num_heads": H}
    kind = config["model_type"]
    if kind not in ("transformer", "moba", "nsa", "mamba", "mamba2", "rwkv7"):
        config.update(use_short_conv=True, conv_size=4)
    if kind in ("retnet", "gla", "delta_net"):
        config.update(expand_k=H * K / D, expand_v=H * K / D)
        config["use_gate" if kind == "delta_net" else "use_output_gate"] = True
    if kind == "delta_net":
        config.update(qk_norm="l2", qk_activation="silu")
    if kind == "gla":
        config.update(feature_map=None, gate_logit_normalizer=16, gate_low_rank_dim=16)
    if kind in ("gated_deltanet", "kda", "mom", "sse"):
        config.update(head_dim=K, expand_v=1.0)
    if kind in ("gated_deltanet", "mom", "sse"):
        config["use_gate" if kind == "gated_deltanet" else "use_output_gate"] = True
    if kind in ("gated_deltanet", "kda"):
        config.update(allow_neg_eigval=False)
    if kind == "hgrn2":
        # Its bounds ask for as many key channels as the stream has: more heads, as wide as those of the others.
        config.update(expand_ratio=K, num_heads=D // K, use_lower_bound=True)
    if kind == "rwkv7":
        config.update(head_dim=K, num_heads=D // K, hidden_act="sqrelu", norm_first=True, norm_bias=True, norm_eps=1e-5,
                      decay_low_rank_dim=K // 2, a_low_rank_dim=K // 2, v_low_rank_dim=K // 2, gate_low_rank_dim=K)
    if kind == "mom":
        config.update(shared_mem=True, single_kv_proj=True, mom_backend="gated_deltanet")
    if kind == "sse":
        N, W = given.pop("N"), given.pop("W")
        config.update(num_sparse_partition=N, num_writer=W, num_reader=W, use_q_softmax=False, use_k_softmax=False, emulq=True, emulk=True,
                      conv_bias=False, sparse_branch_after_conv=True, architectures=["SSEForCausalLM"])
        gla = given["linear_attn_type"] == "gla"
        config.update({"gate_logit_normalizer": 16, "gate_low_rank_dim": 16} if gla else {"sse_gdn_gate": "post_l2", "allow_neg_eigval": False})
    if kind in ("transformer", "moba"):
        config.update(num_kv_heads=H, qkv_bias=False, qk_norm=False, window_size=None, rope_theta=10000.0)
    if kind == "moba":
        config.update(moba_chunk_size=16, moba_topk=4, use_output_gate=True)
    if kind == "nsa":
        # Three blocks are chosen freely, as many as MoBA chooses; two query heads choose together.
        config.update(num_kv_heads=H // 2, head_dim=D // H, qkv_bias=False, rope_theta=10000.0, block_size=16, block_counts=6, window_size=32)
    if kind in ("mamba", "mamba2"):
        for key in ("intermediate_size", "num_heads", "fuse_norm", "norm_eps"):
            config.pop(key)
        config.update(expand=2, conv_kernel=4, use_bias=False, use_conv_bias=True, hidden_act="silu")
    if kind == "mamba":
        config.update(layer_norm_epsilon=1e-5, state_size=16)
        config = without_mlp(config, "time_step_rank", range(D // 16, D // 2 + 1, 4), size)
    if kind == "mamba2":
        config.update(head_dim=K, n_groups=1, rmsnorm=True, norm_before_gate=False, norm_eps=1e-5)
        config = without_mlp(config, "state_size", range(K, 8 * K + 1, K), size)
    if "sla" in given:
        given["sla"] = {"enabled": True, "gate_input": "x", "gate_stage": "proj", "read_gate_position": "q", "temperature": 1.0}
        given["sla"].update({"gdn_decay": True} if kind == "gated_deltanet" else {})
    if "attn" in given:
        # The paper's softmax layer after every five; in a stack this small, the last one.
        given["attn"] = {"layers": [L - 1], "num_heads": H, "num_kv_heads": H, "qkv_bias": False, "window_size": None, "rope_theta": 10000.0}
    return {**config, **given}


def without_mlp(config, key, values, size):
    """Mamba has no MLP: as many layers as hold the parameters, with the smallest value of the key that lets them match to 4 %"""
    budget = count(raw_config("gla", size))
    for value in values:
        one, two = (count({**config, key: value, "num_hidden_layers": n}) for n in (1, 2))
        layers = 1 + round((budget - one) / (two - one))
        if abs(one + (layers - 1) * (two - one) - budget) < 0.04 * budget:
            return {**config, key: value, "num_hidden_layers": layers}
    raise ValueError(f"no {config['model_type']} matches the size {size}")


def count(config):
    from models import Model

    return Model(config).parameters_in_all()


# Trained on every seed asked for; the other families on the first three of them.
ON_ALL_SEEDS = ("transformer", "retnet", "gla", "gated-deltanet", "sla-gla", "sla-gdn", "sse-gla-n4k1", "sse-gla-n4k2", "sse-gla-n8k2",
                "sse-gdn-n4k1", "sse-h-n4k1")

# Of these tasks alone. Behind the prompt MoBA attends to everything (spec §18.4): in answers of several tokens the program's scores are not those
# of one pass over the whole text.
ONLY_OF = {"moba": ("mqar",)}

# Keep five earlier steps of every seed, for the seed that ships is known last.
WITH_TRAJECTORY = ("gla", "gated-deltanet", "sse-gla-n4k1")


def jobs(tasks, seeds):
    """What is trained: (task, family, further arguments of train.py, name), the longest first"""
    slow = ["sse-gla-n16k4", "mom", "sse-gla-n8k2", "sse-gla-n8k1", "sse-gdn-n4k1", "rwkv7", "kda", "mamba", "mamba2", "sse-gla-n4k1",
            "sse-gla-n4k2", "sse-h-n4k1"]
    families = slow + [family for family in FAMILIES if family not in slow]
    if "prose" in tasks:
        for family in ("sse-gla-n4k1", "gla"):
            yield from (("prose", family, ["--seed", str(seed)], named("prose", family, seed)) for seed in seeds[:3])
    if "niah" in tasks:
        yield "niah", "sse-gla-n4k1", ["--recipe", "balance=0"], "niah-sse-gla-n4k1-collapsed"
    for task in ("niah", "mqar"):
        for family in families:
            if task not in ONLY_OF.get(family, (task,)):
                continue
            for seed in (seeds if family in ON_ALL_SEEDS else seeds[:3]) if task in tasks else []:
                trajectory = ["--trajectory", "6"] if family in WITH_TRAJECTORY else []
                yield task, family, ["--seed", str(seed), *trajectory], named(task, family, seed)


def named(task, family, seed):
    return f"{task}-{family}" + (f"-seed{seed}" if seed != 1 else "")


# What `statescope eval` says of a cell besides: the settings of the task that the zoo leaves as they are.
SETTINGS = {"mqar": {"filler": "noise"}, "niah": {"values": 1, "queries": 1, "depth_percent": None, "haystack": "filler", "value": "code"}}
SETTINGS["prose"] = {**SETTINGS["niah"], "haystack": "prose"}


def scores_of(folder):
    return json.loads((folder / "provenance" / "scores.json").read_text())["cells"]


def as_eval_has_it(cell, task, training):
    settings = {**SETTINGS[task], "seed": 1, "questions": cell["samples"] * cell.get("pairs", 1)}
    results = {key: [round(x, 6) for x in value] if isinstance(value, list) else round(value, 6) if isinstance(value, float) else value
               for key, value in cell.items()}
    return {"checkpoint": training, **settings, **results}


def cells_of(zoo, task, family):
    """The scores of all trainings of a family in the zoo, as `statescope eval --json` has them"""
    cells = []
    for folder in sorted(zoo.glob(f"{task}-{family}*")):
        if match := re.fullmatch(rf"{task}-{family}(?:-seed(\d+))?", folder.name):
            if folder.is_dir():
                cells += [as_eval_has_it(cell, task, f"{task}-{family}-seed{match[1] or 1}") for cell in scores_of(folder)]
    return cells


def write_scores(cells, file):
    """One cell a line"""
    head, lines = '{"format": "statescope-scores", "version": 1, "split": "evaluation", "cells": [\n', ",\n".join(map(json.dumps, cells))
    file.write_text(head + lines + "\n]}\n")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--tasks", nargs="+", default=["niah", "mqar", "prose"], choices=list(SIZES))
    parser.add_argument("--seeds", nargs="+", type=int, default=[1])
    parser.add_argument("--only", nargs="+", help="names of the models, such as niah-gla")
    parser.add_argument("--share", default="1", help="of the recipe's steps")
    parser.add_argument("--devices", type=int, default=1, help="GPUs")
    parser.add_argument("--side-by-side", type=int, default=1, help="models a GPU: a gain only under CUDA's Multi-Process Service")
    arguments = parser.parse_args()
    arguments.out.mkdir(parents=True, exist_ok=True)

    waiting = [job for job in jobs(arguments.tasks, arguments.seeds) if not arguments.only or job[3] in arguments.only]
    waiting = [job for job in waiting if not (arguments.out / job[3]).exists() or (arguments.out / f"{job[3]}.state").exists()]
    places = [device for _ in range(arguments.side_by_side) for device in range(arguments.devices)]
    running, failed, began, all_jobs = {}, [], time.time(), len(waiting)
    while waiting or running:
        while waiting and places:
            task, family, extra, name = waiting.pop(0)
            device = places.pop(0)
            command = [sys.executable, str(Path(__file__).with_name("train.py")), "--task", task, "--family", family, "--share", arguments.share,
                       "--out", str(arguments.out / name), *extra]
            log = open(arguments.out / f"{name}.log", "w")
            environment = {**os.environ, "CUDA_VISIBLE_DEVICES": str(device), "PYTHONUNBUFFERED": "1"}
            running[subprocess.Popen(command, stdout=log, stderr=subprocess.STDOUT, env=environment)] = name, device
        for process, (name, device) in list(running.items()):
            if process.poll() is not None:
                del running[process]
                places.append(device)
                failed += [name] if process.returncode else []
                print(f"{time.time() - began:6.0f} s  {name}: {'failed, see its log' if process.returncode else 'done'}, "
                      f"{all_jobs - len(waiting) - len(running)} of {all_jobs}", flush=True)
        time.sleep(1)
    for task in arguments.tasks:
        write_scores([cell for family in FAMILIES for cell in cells_of(arguments.out, task, family)], arguments.out / f"{task}.json")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
