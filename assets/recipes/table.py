"""Writes the tables of ../README.md from ../scores/*.json: python3 table.py, or python3 table.py --check to see whether they are up to date.

The scores are what `statescope eval --suite NAME --json` wrote. What else a row says is read from the checkpoint: its config and /provenance.
Tables over seeds are PyTorch's scores: of seed 1 the shipped checkpoint's, of the others those of seeds/*.json.
"""

import argparse
import json
import math
import re
import statistics
import sys
from pathlib import Path

import h5py

ASSETS = Path(__file__).resolve().parent.parent
README = ASSETS / "README.md"

# Of each task the cells shown over seeds, (length, keys): first the one where memories fill up.
CELLS = {"mqar": [(256, 64), (256, 32)], "niah": [(512, 32), (512, 16), (2048, 8)]}
DIFFERENCES = [("sse-gla-n4k1", "gla"), ("sse-gdn-n4k1", "gated-deltanet"), ("gated-deltanet", "gla")]
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
        if config["model_type"] == "transformer":
            return f"{2 * config['hidden_size']} a token"
        if config["model_type"] == "mamba2":
            return str(config["expand"] * config["hidden_size"] * config["state_size"])
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


def result(cell, theirs):
    """exact ± half of the interval in percent; * if PyTorch's score is not in the interval"""
    outside = not cell["low"] <= theirs <= cell["high"]
    return f"{100 * cell['exact']:.1f} ±{50 * (cell['high'] - cell['low']):.1f}{'*' if outside else ''}", outside


def table(suite):
    """The table of a suite and the sentence below it"""
    rows = {}
    for cell in json.loads((ASSETS / "scores" / f"{suite}.json").read_text())["cells"]:
        rows.setdefault(cell["checkpoint"], {})[kind(cell)] = cell
    columns = list(next(iter(rows.values())))
    unit, keys = ("bytes" if suite == "prose" else "tokens"), ("pairs" if suite == "mqar" else "needles")
    titles = [f"{length} {unit}, {n} {keys if n > 1 else keys[:-1]}" for length, n in columns]
    lines = ["| | " + " | ".join(["parameters", "state of a layer", "trained for", *titles]) + " |", "| --- |" + " --- |" * (3 + len(columns))]
    inside = count = 0
    for path, cells in rows.items():
        shipped = Shipped(ASSETS.parent / path)
        results = [result(cells[key], shipped.theirs[key]) for key in columns]
        inside, count = inside + sum(not outside for _, outside in results), count + len(results)
        about = [f"`{Path(path).stem}`", f"{shipped.recipe['parameters']:,}", shipped.state(), f"{shipped.recipe['seconds']:.0f} s"]
        lines.append("| " + " | ".join(about + [text for text, _ in results]) + " |")
    lines += ["", f"In {inside} of {count} cells the score that PyTorch gave after training lies in the interval"
              + ("." if inside == count else "; the others are marked *.")]
    return "\n".join(lines)


def trainings(task):
    """PyTorch's scores of the families that were trained on several seeds: {family: {seed: {cell: exact}}}"""
    found = {}
    for cell in json.loads((ASSETS / "recipes" / "seeds" / f"{task}.json").read_text())["cells"]:
        family, seed = re.fullmatch(rf"{task}-(.*)-seed(\d+)", cell["checkpoint"]).groups()
        found.setdefault(family, {}).setdefault(int(seed), {})[kind(cell)] = cell["exact"]
    for family, seeds in found.items():
        shipped = Shipped(ASSETS / "checkpoints" / f"{task}-{family}.h5")
        seeds[shipped.recipe["seed"]] = shipped.theirs
    return found


def listed(texts):
    """The first cell's, then the others' in parentheses"""
    return f"{texts[0]} ({'; '.join(texts[1:])})"


def points(difference):
    """+43, 0, −23: of shares, in percent"""
    return f"{100 * difference:+.0f}".replace("-", "−") if abs(100 * difference) >= 0.5 else "0"


def mean_with_interval(differences):
    """The mean of differences paired by seed, ± half of its 95 % interval over the seeds"""
    half = T[len(differences) - 1] * statistics.stdev(differences) / math.sqrt(len(differences))
    return f"{points(statistics.mean(differences))} ±{100 * half:.0f}"


def seeds_table(task):
    """Exact answers by seed, then differences paired by seed"""
    found = trainings(task)
    seeds = sorted({seed for each in found.values() for seed in each})
    unit = "pairs" if task == "mqar" else "needles"
    shown = listed([f"{length} tokens, {keys} {unit}" for length, keys in CELLS[task]])
    lines = [f"| {shown} | " + " | ".join(f"seed {seed}" + (", shipped" if seed == 1 else "") for seed in seeds) + " | over seeds |",
             "| --- |" + " --- |" * (len(seeds) + 1)]

    def row(name, by_seed, text, last):
        cells = [listed([text(values) for values in by_seed[seed]]) if seed in by_seed else "–" for seed in seeds]
        return f"| {name} | " + " | ".join(cells) + " | " + listed([last(values) for values in zip(*by_seed.values())]) + " |"

    def scores(family):
        return {seed: [found[family][seed][cell] for cell in CELLS[task]] for seed in sorted(found[family])}

    for family in sorted(found):
        lines.append(row(f"`{family}`", scores(family), lambda x: f"{100 * x:.0f}", lambda x: f"{100 * min(x):.0f} to {100 * max(x):.0f}"))
    for one, other in DIFFERENCES:
        if one in found and other in found:
            a, b = scores(one), scores(other)
            paired = {seed: [x - y for x, y in zip(a[seed], b[seed])] for seed in a if seed in b}
            lines.append(row(f"`{one}` less `{other}`", paired, points, mean_with_interval))
    return "\n".join(lines)


def with_tables(text):
    """`text` with what stands between <!-- scores of SUITE --> or <!-- seeds of TASK --> and <!-- end --> replaced"""
    tables = {"scores": table, "seeds": seeds_table}
    return re.sub(r"(<!-- (scores|seeds) of (\w+) -->\n).*?(<!-- end -->)",
                  lambda match: match[1] + tables[match[2]](match[3]) + "\n" + match[4], text, flags=re.DOTALL)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true", help="write nothing; exit status 1 if a table is not what the scores say")
    arguments = parser.parse_args()
    text = README.read_text()
    if not arguments.check:
        README.write_text(with_tables(text))
        return 0
    if with_tables(text) == text:
        return 0
    print(f"{README}: its tables are not those of scores/*.json: run {Path(__file__).name}", file=sys.stderr)
    return 1


if __name__ == "__main__":
    sys.exit(main())
