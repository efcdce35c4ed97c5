"""PyTorch's scores of trainings, by family and seed: from seeds/*.json, of a shipped seed that is not there from the checkpoint."""

import functools
import json
import math
import re
import statistics
from pathlib import Path

import h5py

ASSETS = Path(__file__).resolve().parent.parent

# Student's t of 95 % by degrees of freedom
T = {1: 12.706, 2: 4.303, 3: 3.182, 4: 2.776}


class Shipped:
    """A checkpoint's config and the files of its recipe"""

    def __init__(self, path):
        with h5py.File(path) as file:
            self.config = json.loads(file.attrs["config"])
            self.recipe, scores = (json.loads(bytes(file["provenance"][name][:])) for name in ("recipe.json", "scores.json"))
        self.theirs = {kind(cell): cell["exact"] for cell in scores["cells"]}

    def state(self):
        """Numbers of a layer's memory; what softmax attention keeps grows with the text"""
        config = self.config
        if config["model_type"] in ("transformer", "moba", "nsa"):
            return f"{2 * config['hidden_size'] * config['num_kv_heads'] // config['num_heads']} a token"
        if config["model_type"] in ("mamba", "mamba2"):
            return str(config["expand"] * config["hidden_size"] * config["state_size"])
        if config["model_type"] in ("rwkv7", "hgrn2"):
            return str(config["hidden_size"] * config.get("head_dim", config.get("expand_ratio")))
        if "head_dim" in config:
            K, V = config["head_dim"], int(config["head_dim"] * config["expand_v"])
        else:
            K, V = (int(config["hidden_size"] * config[key]) // config["num_heads"] for key in ("expand_k", "expand_v"))
        matrices = {"sse": config.get("num_sparse_partition", 0) + 1, "mom": config.get("num_memories", 0) + 1}.get(config["model_type"], 1)
        fixed = str(matrices * config["num_heads"] * K * V)
        softmax = (config.get("attn") or {}).get("layers")
        return f"{fixed}; {len(softmax)} of {config['num_hidden_layers']} layers: {2 * config['hidden_size']} a token" if softmax else fixed


def kind(cell):
    """What tells a suite's cells apart: (length, keys)"""
    return cell["length"], cell.get("pairs", cell.get("needles"))


@functools.cache
def shipped(task, family):
    return Shipped(ASSETS / "checkpoints" / task / f"{task}-{family}.h5")


def trainings_in(path, task):
    """{family: {seed: {cell: exact}}}"""
    found = {}
    for cell in json.loads(path.read_text())["cells"]:
        family, seed = re.fullmatch(rf"{task}-(.*)-seed(\d+)", cell["checkpoint"]).groups()
        found.setdefault(family, {}).setdefault(int(seed), {})[kind(cell)] = cell["exact"]
    return found


@functools.cache
def trainings(task, file=None):
    """Of the families that were trained on several seeds: {family: {seed: {cell: exact}}}; `file`: of seeds/, by another recipe than the shipped"""
    found = trainings_in(ASSETS / "recipes" / "seeds" / f"{file or task}.json", task)
    if file is None:
        for family, seeds in found.items():
            seeds[shipped(task, family).recipe["seed"]] = shipped(task, family).theirs
    return found


def trainings_of(task, family, file=None):
    """{seed: {cell: exact}}, of the shipped seed alone where a family was trained once"""
    found = trainings(task, file).get(family)
    if found or file is not None:
        return found or {}
    return {shipped(task, family).recipe["seed"]: shipped(task, family).theirs}


def median_seed(means):
    """{seed: mean score over a task's cells} → the seed of the median; of an even number the better of the two in the middle. Scores that lie
    in seeds/ are rounded: what differs by less is equal."""
    return sorted(means, key=lambda seed: (round(means[seed], 5), -seed))[len(means) // 2]


def mean_and_half(differences):
    """The mean of differences paired by seed, and half of its 95 % interval over the seeds"""
    half = T[len(differences) - 1] * statistics.stdev(differences) / math.sqrt(len(differences))
    return statistics.mean(differences), half


def points(difference, plus="+"):
    """+43, 0, −23: of shares, in percent"""
    return f"{100 * difference:{plus}.0f}".replace("-", "−") if abs(100 * difference) >= 0.5 else "0"


def mean_with_interval(differences):
    mean, half = mean_and_half(differences)
    return f"{points(mean)} ±{100 * half:.0f}"
