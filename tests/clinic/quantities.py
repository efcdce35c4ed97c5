#!/usr/bin/env python3
"""Whether `statescope inspect` computes what it says: works its figures out again in double precision, from their definitions and from
what `statescope run --dump` wrote about the same tokens, and compares.

    tests/clinic/quantities.py STATESCOPE ASSETS

The definitions are those of app/schemas/inspection.schema.json and engine/analysis/*.h. What the predictions owe to reading a memory
(read_effect, all_reads_effect) is in no dump and left out. Ends with status 1 where something differs. Needs numpy and h5py; takes some
seconds."""
import argparse, json, os, random, subprocess, sys, tempfile

import h5py
import numpy as np

MODELS = ["niah-sse-gla-n4k1", "niah-sse-gla-n4k1-collapsed", "niah-sse-gla-n8k2", "niah-gla", "niah-sla-gdn", "niah-gated-deltanet"]
REMEMBERING = "niah-sse-gla-n4k1"  # of it remembrance is worked out too, which takes a run for every eighth
EIGHTHS = 8
COMPARED = 64  # last predictions of 128 tokens and more, whose entropy is told (ablation.cpp)
REMEMBERED_AT = 16  # last predictions, without the first tokens (ablation.h)
THETA, MEASURED = 0.001, 128  # of receptive fields (decay_analysis.h)
ZERO_ROW = 1e-12  # a shorter row has no cosines (similarity_analysis.h)
LOW_RANK, HIGH_RANK = 0.1, 0.5  # collapse_report.h
DEAD, OVERLOADED = 0.1, 2.5  # collapse_report.h

# Two numbers may differ by relative · |number| + absolute.
USUAL = (1e-5, 0)
COSINE = (0, 1e-5)  # of float32 products; what `accuracy` says of cosines
SPECTRAL = (1e-4, 0)  # of float32 singular values; what `accuracy` says of entropies and ranks
TOLERANCES = {
    "heads.mean_abs_cosine": COSINE,
    "heads.within_partitions": COSINE,
    "heads.between_partitions": COSINE,
    "heads.min_cosine": COSINE,
    "heads.entropy": SPECTRAL,
    "heads.effective_rank": SPECTRAL,
    "heads.effective_rank_of_squares": SPECTRAL,
}


def eighths(count):
    return [(i * count // EIGHTHS, (i + 1) * count // EIGHTHS) for i in range(EIGHTHS)]


def entropy(p):
    """Over the last axis, nat."""
    return -np.sum(p * np.log(np.where(p > 0, p, 1)), -1)


def normalised_entropy(p):
    return entropy(p) / np.log(p.shape[-1])


def log_softmax(x):
    x = x - x.max(-1, keepdims=True)
    return x - np.log(np.exp(x).sum(-1, keepdims=True))


def frobenius(state):
    """Of states [slots, heads, K, V]: [slots, heads]."""
    return np.sqrt((state * state).sum((-2, -1)))


class Dump:
    """What a run wrote, in float64."""

    def __init__(self, path):
        self.file = h5py.File(path)
        self.ids = self.file["input_ids"][()]
        self.tokens = len(self.ids)
        self.config = json.loads(self.file.attrs["config"])
        self.logits = self.file["logits"][()].astype(np.float64)

    def channel(self, layer, name):
        """None where the layer has no such channel."""
        place = f"channels/{layer}/{name}"
        return self.file[place][()].astype(np.float64) if place in self.file else None

    def state(self, layer, tokens):
        """[slots, heads, K, V] after so many tokens."""
        return self.file[f"state/{layer}/{tokens - 1}"][()].astype(np.float64)

    def entering(self, layer, embeddings):
        """What enters the block of `layer`, [T, D]."""
        return self.file[f"hidden/{layer - 1}"][()].astype(np.float64) if layer else embeddings[self.ids]


def predictions(dump):
    log_p = log_softmax(dump.logits)
    nll = -log_p[np.arange(dump.tokens - 1), dump.ids[1:]]
    by_eighth = [nll[begin:end].mean() for begin, end in eighths(len(nll))]
    frequency = np.unique(dump.ids, return_counts=True)[1] / dump.tokens
    return {
        "nll_by_eighth": by_eighth,
        "perplexity_by_eighth": np.exp(by_eighth),
        "predicting": {
            "nll": nll.mean(),
            "unigram": entropy(frequency),
            "uniform": np.log(dump.logits.shape[1]),
        },
    }


def moments(state, tokens):
    return {"tokens": tokens, "norm": frobenius(state).mean(), "mean": state.mean(), "variance": state.var(), "largest": abs(state).max()}


def outlier(state):
    norms = np.sqrt((state * state).sum(-1)).ravel()
    return norms.max() / np.median(norms[norms > 0])


def likest_heads(state):
    heads = state.swapaxes(0, 1).reshape(state.shape[1], -1)
    heads = heads / np.sqrt((heads * heads).sum(1, keepdims=True))
    cosine = np.triu(abs(heads @ heads.T), 1)
    best = np.unravel_index(cosine.argmax(), cosine.shape)
    return {"cosine": cosine[best], "heads": best}


def row_cosines(rows, partitions):
    """Of a head's stacked rows [P·K, V]."""
    norms = np.sqrt((rows * rows).sum(1))
    unit = rows / np.where(norms < ZERO_ROW, np.inf, norms)[:, None]
    cosine = unit @ unit.T
    n = len(rows)
    partition = np.arange(n) // (n // partitions)
    same, other = partition[:, None] == partition, ~np.eye(n, dtype=bool)
    written = norms >= ZERO_ROW
    return {
        "mean_abs_cosine": abs(cosine)[other].mean(),
        "within_partitions": abs(cosine)[same & other].mean(),
        "between_partitions": abs(cosine)[~same].mean() if partitions > 1 else None,
        "min_cosine": cosine[other & written & written[:, None]].min(),
        "zero_rows": np.count_nonzero(~written),
    }


def spectrum(rows):
    sigma = np.linalg.svd(rows, compute_uv=False)
    squares, linear = sigma**2 / (sigma**2).sum(), sigma / sigma.sum()
    rank = np.exp(entropy(linear))
    relative = rank / len(sigma)
    return {
        "entropy": normalised_entropy(squares),
        "effective_rank": rank,
        "effective_rank_of_squares": np.exp(entropy(squares)),
        "spectral_statistic": (rows @ rows.T).min() / sigma[0]**2,
        "class": "high" if relative > HIGH_RANK else "middle" if relative > LOW_RANK else "low",
    }


def head_figures(state):
    slots, heads, keys, values = state.shape
    stacked = state.swapaxes(0, 1).reshape(heads, slots * keys, values)
    flat = stacked.reshape(heads, -1)
    norms = np.sqrt((flat * flat).sum(1))
    cosine = abs(flat @ flat.T) / np.outer(norms, norms)
    gram = np.einsum("hrv,hrw->hvw", stacked, stacked).reshape(heads, -1)
    reads = gram @ gram.T / np.sqrt(np.outer((gram * gram).sum(1), (gram * gram).sum(1)))
    for matrix in cosine, reads:
        np.fill_diagonal(matrix, -1)
    return [row_cosines(rows, slots) | spectrum(rows) | {"norm": norms[h], "likeness": cosine[h].max(), "same_reads": reads[h].max()}
            for h, rows in enumerate(stacked)]


class Routing:
    """Which partitions the tokens of a layer write to."""

    def __init__(self, dump, layer):
        self.gate = dump.channel(layer, "partition_gate")
        self.width, self.partitions = dump.config["num_writer"], self.gate.shape[1]
        chosen = dump.channel(layer, "partition_selected")[:, :self.width].astype(int)
        self.writes = (chosen[:, :, None] == np.arange(self.partitions)).any(1)  # [T, N]
        self.frequency = self.writes.mean(0)
        self.load = self.frequency * self.partitions / self.width

    def figures(self):
        ranked = -np.sort(-self.gate, 1)
        probability = self.gate.mean(0)
        return {
            "load": self.load,
            "probability": probability,
            "loss": self.partitions / self.width * self.frequency @ probability,
            "variation": self.frequency.std() / self.frequency.mean(),
            "load_entropy": normalised_entropy(self.frequency / self.width),
            "token_entropy": normalised_entropy(self.gate).mean(),
            "margin": (ranked[:, self.width - 1] - ranked[:, self.width]).mean(),
            "dead": np.flatnonzero(self.load <= DEAD),
            "overloaded": np.flatnonzero(self.load > OVERLOADED),
        }


def receptive_fields(log_decay):
    """How far the last tokens reach back in every channel, and whether that is to the first token: [tokens, channels] each."""
    left = np.cumsum(log_decay, 0)  # log Δ_{t,s} = left_t − left_s
    last = range(max(0, len(left) - MEASURED), len(left))
    reached = np.array([(left[t] - left[:t + 1] >= np.log(THETA)).argmax(0) for t in last])  # the earliest s
    return np.array(last)[:, None] - reached, reached == 0


def slot_decays(dump, layer, routing):
    """log α of every slot, [T, channels] each: 0 where a token does not write to it."""
    log_decay = dump.channel(layer, "log_decay")
    if routing is None:
        return [log_decay.reshape(dump.tokens, -1)]
    shared, sparse = (log_decay[:, i].reshape(dump.tokens, -1) for i in range(2))
    return [shared] + [np.where(routing.writes[:, n, None], sparse, 0) for n in range(routing.partitions)]


def half_lives(log_decay):
    """Of every channel, tokens."""
    with np.errstate(divide="ignore"):
        return np.log(2) / abs(log_decay.mean(0))


def slot_figures(decays, norms, routing):
    loads = [1] if routing is None else [1, *routing.load]
    slots = []
    for log_decay, norm, load in zip(decays, norms, loads, strict=True):
        width, censored = receptive_fields(log_decay)
        slots.append({
            "norm": norm.mean(),
            "load": load,
            "half_life": np.median(half_lives(log_decay)),
            "receptive_field": width.mean(),
            "censored": censored.mean(),
        })
    return slots


def gates(gate):
    """Of competing heads, [T, H]."""
    if gate is None:
        return None
    mean = gate.mean(0)
    return {"entropy_of_mean": normalised_entropy(mean), "mean_entropy": normalised_entropy(gate).mean(), "winner": mean.argmax()}


def layer_figures(dump, layer, embeddings):
    routing = Routing(dump, layer) if dump.channel(layer, "partition_gate") is not None else None
    states = [dump.state(layer, end) for _, end in eighths(dump.tokens)]
    last = states[-1]
    norms = frobenius(last)
    decays = slot_decays(dump, layer, routing)
    lives = np.concatenate([half_lives(decay) for decay, norm in zip(decays, norms) if norm.any()])
    return {
        "residual_norm": np.sqrt((dump.entering(layer, embeddings)**2).sum(1)).mean(),
        "norm_by_eighth": [frobenius(state).mean() for state in states],
        "moments": [moments(state, end) for state, (_, end) in zip(states, eighths(dump.tokens))],
        "outlier": outlier(last),
        "full_rank": min(last.shape[0] * last.shape[2], last.shape[3]),
        "likest_heads": likest_heads(last),
        "heads": head_figures(last),
        "slots": slot_figures(decays, norms, routing),
        "longest_half_life": lives.max(),
        "shortest_half_life": lives.min(),
        "writing": gates(dump.channel(layer, "head_gate_k")),
        "reading": gates(dump.channel(layer, "head_gate_q")),
        "routing": routing and routing.figures(),
    }


class Program:
    """The program and one checkpoint."""

    def __init__(self, statescope, checkpoint, folder):
        self.statescope, self.checkpoint, self.folder = statescope, checkpoint, folder

    def call(self, *arguments):
        return subprocess.run([self.statescope, *arguments], check=True, capture_output=True, text=True).stdout

    def write(self, ids):
        path = os.path.join(self.folder, "ids")
        with open(path, "w") as f:
            f.write(" ".join(map(str, ids)))
        return path

    def dump(self, ids, ends):
        """With the states after so many tokens; what is read from one of them to the next is read in one pass, and rounded as such."""
        path = os.path.join(self.folder, "run.h5")
        states = [str(end - 1) for end in ends]
        self.call("run", self.checkpoint, "--ids", self.write(ids), "--generate", "0", "--dump", path, "--force", "--states", *states)
        return Dump(path)

    def inspect(self, ids):
        report = json.loads(self.call("inspect", self.checkpoint, "--ids", self.write(ids), "--json", "-"))
        return report["checkpoints"][0]["sequences"][0]

    def embeddings(self):
        with h5py.File(self.checkpoint) as f:
            return f["tensors/model.embeddings.weight"][()].astype(np.float64)


def last_predictions(program, ids, count):
    return np.exp(log_softmax(program.dump(ids, [len(ids) - count]).logits[-count:]))


def remembrance(program, ids):
    """How the last predictions change where the first tokens are left out."""
    last, changes = last_predictions(program, ids, COMPARED), []
    for dropped, _ in eighths(len(ids))[1:]:
        without = last_predictions(program, ids[dropped:], REMEMBERED_AT)
        changes.append({"dropped": dropped, "change": abs(last[-REMEMBERED_AT:] - without).sum(1).mean() / 2})
    return changes


def figures(program, ids):
    """As inspect reports a sequence, without what is in no dump."""
    dump, embeddings = program.dump(ids, [end for _, end in eighths(len(ids))]), program.embeddings()
    layers = [layer_figures(dump, layer, embeddings) for layer in range(dump.config["num_hidden_layers"])]
    ours = {"tokens": dump.tokens, **predictions(dump), "layers": layers}
    ours["predicting"]["entropy"] = entropy(last_predictions(program, ids, COMPARED)).mean()
    return ours


def pairs(ours, theirs, name="", place=""):
    """All that was worked out beside what was reported: (quantity, where, ours, theirs)."""
    if isinstance(ours, dict) and isinstance(theirs, dict):
        for key in ours:
            yield from pairs(ours[key], theirs.get(key), f"{name}.{key}".removeprefix("."), place)
    elif isinstance(ours, np.ndarray):
        yield from pairs(ours.tolist(), theirs, name, place)
    elif isinstance(ours, (list, tuple)) and isinstance(theirs, list) and len(ours) == len(theirs):
        for i, (a, b) in enumerate(zip(ours, theirs)):
            step = f"{name.split('.')[-1].removesuffix('s')} {i}"
            yield from pairs(a, b, name, f"{place}, {step}".removeprefix(", "))
    else:
        yield name.removeprefix("layers."), place, ours, theirs


def is_number(x):
    return isinstance(x, (int, float, np.number)) and np.isfinite(x)


def relative_difference(ours, theirs):
    """None where they cannot be compared as numbers."""
    if not (is_number(ours) and is_number(theirs)):
        return None
    return abs(ours - theirs) / abs(ours) if ours != theirs else 0.0


def agree(name, ours, theirs):
    if not (is_number(ours) and is_number(theirs)):
        return ours == theirs or (theirs is None and isinstance(ours, float) and not np.isfinite(ours))
    relative, absolute = TOLERANCES.get(name, USUAL)
    return abs(ours - theirs) <= relative * abs(ours) + absolute


class Comparison:
    def __init__(self):
        self.worst, self.failures = {}, 0

    def add(self, what, ours, theirs):
        for name, place, a, b in pairs(ours, theirs):
            difference = relative_difference(a, b)
            if difference is not None:
                self.worst[name] = max(self.worst.get(name, 0), difference)
            if not agree(name, a, b):
                self.failures += 1
                print(f"{what}: {name} ({place}) is {a} by definition, inspect says {b}")

    def print(self):
        print(f"{'quantity':40} {'worst relative':>15}   allowed")
        for name, difference in sorted(self.worst.items()):
            relative, absolute = TOLERANCES.get(name, USUAL)
            print(f"{name:40} {difference:15.1e}   " + (f"{relative:g}" if relative else f"{absolute:g}, absolute"))


def prompt_ids(program, assets):
    with open(os.path.join(assets, "prompts", "needle.json")) as f:
        text = json.load(f)["prompt"]
    return json.loads(program.call("tokenize", program.checkpoint, "--text", text))["ids"][:203]


def check(comparison, program, assets, remembering):
    """With any ids, and with those of a prompt."""
    for name, ids in {"random ids": random.Random(1).choices(range(512), k=256), "a prompt": prompt_ids(program, assets)}.items():
        what = f"{os.path.basename(program.checkpoint)}, {name}"
        theirs = program.inspect(ids)
        comparison.add(what, figures(program, ids), theirs)
        if remembering:
            comparison.add(what, {"remembrance": remembrance(program, ids)}, theirs)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("statescope")
    parser.add_argument("assets")
    arguments = parser.parse_args()
    comparison = Comparison()
    with tempfile.TemporaryDirectory() as folder:
        for model in MODELS:
            program = Program(arguments.statescope, os.path.join(arguments.assets, "checkpoints", model.partition("-")[0], model + ".h5"), folder)
            check(comparison, program, arguments.assets, model == REMEMBERING)
    comparison.print()
    return 1 if comparison.failures else 0


if __name__ == "__main__":
    sys.exit(main())
