#!/usr/bin/env python3
"""How often the clinic is right: makes ill and harmlessly changed copies of the shipped checkpoints by editing weights, asks
`statescope inspect` about them and about the shipped ones themselves, and counts.

    tests/clinic/trial.py STATESCOPE ASSETS [-o assets/clinic/trial.json] [--keep FOLDER]

Half of the bases ("chosen on") served to choose the thresholds of engine/clinic/clinic.h, the other half ("validated on") did not. Needs
numpy and h5py; takes some minutes."""
import argparse, json, os, shutil, subprocess, sys, tempfile

import h5py
import numpy as np

CHOSEN_ON = ["niah-gla", "niah-sse-gla-n4k1", "niah-sla-gla", "niah-gated-deltanet", "niah-sse-gla-n8k2", "mqar-gla", "mqar-sse-gdn-n4k1"]
VALIDATED_ON = ["niah-gla-row-sparse", "niah-sse-gdn-n4k1", "niah-sla-gdn", "niah-sse-gla-n8k1", "niah-sse-gla-n16k4", "niah-delta-net",
                "niah-mom", "niah-retnet", "niah-mamba2", "mqar-sse-gla-n4k2", "mqar-gated-deltanet", "mqar-sla-gla", "prose-gla",
                "prose-sse-gla-n4k1"]


def bfloat16(x):
    u = np.ascontiguousarray(x, np.float32).view(np.uint32).astype(np.uint64)
    rounded = (((u + 0x7FFF + ((u >> 16) & 1)) >> 16) << 16).astype(np.uint32).view(np.float32)
    return np.where(np.isfinite(x), rounded, x)


class Base:
    def __init__(self, name, assets, statescope):
        self.name, self.assets, self.statescope = name, assets, statescope
        self.path = os.path.join(assets, "checkpoints", name.partition("-")[0], name + ".h5")
        with h5py.File(self.path) as f:
            self.config = json.loads(f.attrs["config"])
            self.shapes = {key: f["tensors"][key].shape for key in f["tensors"]}
        self.layers = self.config["num_hidden_layers"]
        self.mixer = "mixer" if "mamba" in name else "attn"
        self.prefix = "backbone" if any(key.startswith("backbone.") for key in self.shapes) else "model"

    def tensor(self, layer, name):
        return f"{self.prefix}.layers.{layer}.{self.mixer}.{name}"

    def has(self, name, layer=0):
        return self.tensor(layer, name) in self.shapes

    def mixer_inputs(self, layer):
        """What the mixer of `layer` reads on the shipped prompt of its vocabulary, [T, D]."""
        with tempfile.TemporaryDirectory() as folder:
            dump = os.path.join(folder, "run.h5")
            prompt = ["--prompt", os.path.join(self.assets, "prompts", "needle.json")] if self.name.startswith("niah") else []
            subprocess.run([self.statescope, "run", self.path, *prompt, "--generate", "0", "--dump", dump], check=True, capture_output=True)
            with h5py.File(dump) as d, h5py.File(self.path) as f:
                hidden = sorted(map(int, d["hidden"]))
                x = d[f"hidden/{layer - 1 if layer else hidden[0]}"][()].astype(np.float64)
                weight = f["tensors"][f"{self.prefix}.layers.{layer}.attn_norm.weight"][()].astype(np.float64)
        return x / np.sqrt((x * x).mean(-1, keepdims=True) + 1e-6) * weight

    def copy(self, path, edits):
        """edits: tensor name → function of its float64 values."""
        shutil.copy(self.path, path)
        with h5py.File(path, "r+") as f:
            for name, change in edits.items():
                data = f["tensors"][name]
                values = np.asarray(change(data[()].astype(np.float64)), np.float32)
                data[...] = bfloat16(values) if "dtype" in data.attrs else values


def one_direction(heads):
    """Every head's rows become multiples of their mean."""
    def change(w):
        w = w.copy()
        n = w.shape[0] // heads
        for h in range(heads):
            w[h * n:(h + 1) * n] = w[h * n:(h + 1) * n].mean(0)
        return w
    return change


def same_heads(heads, a, b):
    def change(w):
        w, n = w.copy(), w.shape[0] // heads
        w[b * n:(b + 1) * n] = w[a * n:(a + 1) * n]
        return w
    return change


def without_head(heads, head, axis):
    def change(w):
        parts = np.split(w.copy(), heads, axis)
        parts[head][:] = 0
        return np.concatenate(parts, axis)
    return change


def permuted_heads(heads, order, axis=0):
    def change(w):
        parts = np.split(w, heads, axis)
        return np.concatenate([parts[i] for i in order], axis)
    return change


def copies(base, rng):
    """(name, ids of illnesses, layers or None, edits)"""
    all_layers, one = list(range(base.layers)), [int(rng.integers(1, base.layers))] if base.layers > 1 else [0]
    heads = base.config.get("num_heads") or 1

    def on(layers, names, change):
        return {base.tensor(i, name): change for i in layers for name in names if base.has(name, i)}

    zero, router = (lambda w: w * 0), "gate.weight" if "mom" in base.name else "e_proj.weight"
    value = [name for name in ("v_proj.weight", "shared_v.weight") if base.has(name)]
    if base.has(router):
        yield "router-says-nothing", ["routing_collapse"], one, on(one, [router], zero)
        if base.shapes[base.tensor(one[0], router)][0] >= 4 and base.mixer == "attn" and base.name.startswith("niah") and "mom" not in base.name:
            x = base.mixer_inputs(one[0])
            low = np.linalg.lstsq(x, np.full(len(x), -60.0), rcond=1e-3)[0]
            dead = lambda w: np.where(np.isin(np.arange(len(w)), [len(w) - 2])[:, None], low, w)
            yield "one-dead-partition", ["dead_partition"], one, on(one, [router], dead)
        order = rng.permutation(base.shapes[base.tensor(0, router)][0])
        if "sse" in base.name:
            yield "partitions-permuted", [], None, on(all_layers, [router], lambda w: w[order])
            # a norm stands between them
            yield "v-doubled", [], None, on(all_layers, ["v_proj.weight"], lambda w: 2 * w)
    if base.has("gk_proj.1.bias") and "row-sparse" not in base.name:  # whose rows rest where they are not written
        yield "forgets-at-once", ["forgets_at_once"], all_layers, on(all_layers, ["gk_proj.1.bias"], lambda b: b * 0 - 1000)
        yield "forgets-soon", ["forgets_at_once"], one, {**on(one, ["gk_proj.1.bias"], lambda b: b * 0 - 12), **on(one, ["gk_proj.1.weight"], zero)}
        yield "never-forgets", ["never_forgets"], one, on(one, ["gk_proj.1.bias"], lambda b: b * 0 + 1000)
    if base.has("dt_bias"):
        yield "forgets-at-once", ["forgets_at_once"], one, on(one, ["dt_bias"], lambda b: b * 0 + 1000)
    if base.has("q_proj.weight"):
        yield "never-read", ["memory_unread"], all_layers, on(all_layers, ["q_proj.weight", "lora_q_proj.1.weight"], zero)
    if base.has("o_proj.weight"):
        yield "read-thrown-away", ["memory_unread"], one, on(one, ["o_proj.weight"], zero)
    if base.has("v_proj.weight"):
        yield "nothing-written", ["memory_unwritten"], one, on(one, ["v_proj.weight"], zero)
    grouped = [name for name in ("q_proj.weight", "k_proj.weight", "v_proj.weight", "gk_proj.1.weight", "gk_proj.1.bias", "q_conv1d.weight",
                                 "k_conv1d.weight", "v_conv1d.weight", "b_proj.weight", "a_proj.weight", "A_log", "dt_bias",
                                 "sla_k_gate.weight", "sla_q_gate.weight") if base.has(name)]
    if base.has("v_proj.weight") and "sse" not in base.name and "sla" not in base.name and "retnet" not in base.name:
        if not base.has("gk_proj.1.weight") and base.has("q_conv1d.weight"):
            turned = rng.permutation(base.shapes[base.tensor(one[0], "k_proj.weight")][0] // heads)
            def other_order(w):
                w, n = same_heads(heads, 0, heads - 1)(w), w.shape[0] // heads
                w[-n:] = w[-n:][turned]
                return w
            keys = ("q_proj.weight", "k_proj.weight", "q_conv1d.weight", "k_conv1d.weight")
            yield "same-reads", ["duplicate_heads"], one, {**on(one, keys, other_order), **on(one, [g for g in grouped if g not in keys], same_heads(heads, 0, heads - 1))}
        yield "two-heads-alike", ["duplicate_heads"], one, on(one, grouped, same_heads(heads, 0, heads - 1))
        order = list(rng.permutation(heads))
        edits = {**on(all_layers, grouped + ["g_proj.weight"], permuted_heads(heads, order)), **on(all_layers, ["o_proj.weight"], permuted_heads(heads, order, 1))}
        yield "heads-permuted", [], None, edits
    if base.has("v_proj.weight"):
        yield "values-of-one-direction", ["rank_collapse"], one, on(one, ["v_proj.weight", "v_conv1d.weight"], one_direction(heads))
    if base.has("sla_k_gate.weight"):
        yield "one-head-a-token", ["head_gate_collapse"], all_layers, on(all_layers, ["sla_k_gate.weight"], lambda w: w * 1000)
        yield "no-head-wins", ["head_gate_collapse"], one, on(one, ["sla_q_gate.weight"], zero)
    matrices = {key for key, shape in base.shapes.items() if len(shape) == 2}
    yield "untrained", ["untrained"], None, {key: (lambda w: rng.standard_normal(w.shape) * 0.02) for key in matrices}
    names = [name for name in ("v_proj.weight", "in_proj.weight", "shared_v.weight") if base.has(name)]
    yield "one-nan", ["not_finite"], one, on(one, names[:1], lambda w: np.where(np.arange(w.size).reshape(w.shape) == 7, np.nan, w))
    yield "one-percent-noise", [], None, on(all_layers, ["q_proj.weight", "k_proj.weight", "v_proj.weight", "o_proj.weight", "in_proj.weight"],
                                            lambda w: w * (1 + 0.01 * rng.standard_normal(w.shape)))
    if base.has("o_proj.weight") and heads > 1:
        yield "a-head-unread", ["memory_unread"], one, on(one, ["o_proj.weight"], without_head(heads, heads - 1, 1))
    if base.has("in_proj.weight"):  # Mamba-2: z | x | B | C | dt
        inner, state = base.config["expand"] * base.config["hidden_size"], base.config["n_groups"] * base.config["state_size"]
        zeros = lambda first, count: lambda w: np.where(((np.arange(len(w)) >= first) & (np.arange(len(w)) < first + count)).reshape(-1, *[1] * (w.ndim - 1)), 0, w)
        of = lambda part: {**on(one, ["in_proj.weight"], zeros(2 * inner + part * state, state)), **on(one, ["conv1d.bias"], zeros(inner + part * state, state))}
        yield "never-read", ["memory_unread"], one, of(1)
        yield "nothing-written", ["memory_unwritten"], one, of(0)
    if base.has("v_proj.weight") and heads > 1 and base.has("o_proj.weight"):
        yield "a-head-hardly-written", ["memory_unwritten"], one, on(one, ["v_proj.weight"], lambda w: w * np.repeat([1e-9] + [1] * (heads - 1), len(w) // heads)[:, None])
    if base.has("v_proj.weight") and heads > 2 and "sla" not in base.name and "sse" not in base.name and "retnet" not in base.name:
        yield "three-heads-alike", ["duplicate_heads"], one, on(one, grouped, lambda w: same_heads(heads, 0, 2)(same_heads(heads, 0, 1)(w)))
    if base.has("v_proj.weight") and heads > 1:
        yield "a-head-unwritten", ["memory_unwritten"], one, on(one, ["v_proj.weight"], without_head(heads, heads - 1, 0))


def verdicts(statescope, paths):
    """{path: [(id, layers)]} or why there is none"""
    found = {}
    for path in paths:
        run = subprocess.run([statescope, "inspect", path, "--samples", "1", "--json", "-"], capture_output=True, text=True)
        try:
            checkpoint = json.loads(run.stdout)["checkpoints"][0]
            found[path] = [(v["id"], v["layers"]) for v in checkpoint["verdicts"]]
        except (ValueError, KeyError, IndexError):
            found[path] = [("error", [run.stderr.strip()[-200:]])]
    return found


def judged(found, ids, layers):
    """What is found, without other illnesses of layers behind the ill one: those read what it made, so either answer may be right."""
    behind = max(layers) if ids and layers else None
    return [(id, where) for id, where in found if id in ids or behind is None or not where or min(where) <= behind]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("statescope")
    parser.add_argument("assets")
    parser.add_argument("-o", "--output")
    parser.add_argument("--keep", help="leave the copies in this folder")
    parser.add_argument("--quick", action="store_true", help="two bases of each half; ends with 1 where anything is wrong")
    arguments = parser.parse_args()
    folder = arguments.keep or tempfile.mkdtemp()
    os.makedirs(folder, exist_ok=True)
    halves = {}
    quick = (["niah-gla", "niah-sse-gla-n4k1"], ["niah-sla-gdn", "niah-sse-gdn-n4k1"])
    for half, bases in zip(("chosen", "validated"), quick if arguments.quick else (CHOSEN_ON, VALIDATED_ON)):
        cases = {}  # path → (expected ids, layers, label)
        for name in bases:
            base, rng = Base(name, arguments.assets, arguments.statescope), np.random.default_rng(1)
            cases[base.path] = ([], None, f"{name} as shipped")
            for what, ids, layers, edits in copies(base, rng):
                path = os.path.join(folder, f"{name}-{what}.h5")
                base.copy(path, edits)
                cases[path] = (ids, layers, f"{name} {what}")
        found = verdicts(arguments.statescope, cases)
        table, wrong = {}, []
        for path, (ids, layers, label) in cases.items():
            told = judged(found[path], ids, layers)
            got = [id for id, _ in told]
            for id in set(ids) | set(got):
                row = table.setdefault(id, {"ill": 0, "hits": 0, "false_alarms": 0})
                row["ill"] += id in ids
                row["hits"] += id in ids and id in got
                row["false_alarms"] += id in got and id not in ids
            where = [l for id, l in told if id in ids]
            if set(got) != set(ids) or (ids and layers is not None and where and where[0] != layers):
                wrong.append({"checkpoint": label, "expected": ids, "layers": layers, "found": found[path]})
        halves[half] = {"bases": bases, "checkpoints": len(cases), "wrong": wrong, "illnesses": dict(sorted(table.items()))}
        print(f"{half}: {len(cases)} checkpoints, {len(wrong)} wrong", file=sys.stderr)
    report = {"format": "statescope-clinic-trial", "version": 1, **halves}
    text = json.dumps(report, indent=1) + "\n"
    if arguments.output:
        with open(arguments.output, "w") as file:
            file.write(text)
    print(text)
    if not arguments.keep:
        shutil.rmtree(folder)
    if arguments.quick and any(half["wrong"] for half in halves.values()):
        sys.exit(1)


if __name__ == "__main__":
    main()
