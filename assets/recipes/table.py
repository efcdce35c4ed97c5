"""Writes the tables of ../README.md and the numbers of ../claims.json: python3 table.py, or python3 table.py --check to see whether they are up to date.

Tables of scores are from ../scores/*.json, which `statescope eval --suite NAME --json` wrote; what else a row says is read from the checkpoint: its
config and /provenance. Tables over seeds and claims are PyTorch's scores (trainings.py).
"""

import argparse
import json
import re
import statistics
import sys
from pathlib import Path

import claims
from trainings import ASSETS, Shipped, kind, mean_with_interval, points, shipped, trainings, trainings_in

README = ASSETS / "README.md"

# Of each task the cells shown over seeds, (length, keys): first the one where memories fill up.
CELLS = {"mqar": [(256, 64), (256, 32)], "niah": [(512, 32), (512, 16), (2048, 8)], "prose": [(512, 1), (1024, 4), (2048, 8)]}
DIFFERENCES = [("sse-gla-n4k1", "gla"), ("sse-gla-n4k2", "gla"), ("sse-gla-n8k2", "gla"), ("sse-gla-n4k2", "sse-gla-n4k1"), ("sse-gla-n8k2", "sse-gla-n4k2"),
               ("sse-gdn-n4k1", "gated-deltanet"), ("gated-deltanet", "gla"), ("sla-gla", "gla"), ("sla-gdn", "gated-deltanet"), ("gla", "retnet"),
               ("mamba", "gla"), ("hgrn2", "gla"), ("kda", "gated-deltanet"), ("rwkv7", "gated-deltanet")]


def result(cell, theirs):
    """exact ± half of the interval in percent; * if PyTorch's score is not in the interval"""
    outside = not cell["low"] <= theirs <= cell["high"]
    return f"{100 * cell['exact']:.1f} ±{50 * (cell['high'] - cell['low']):.1f}{'*' if outside else ''}", outside


def title(task, length, keys):
    """512 tokens, 16 needles"""
    unit, key = ("bytes" if task == "prose" else "tokens"), ("pair" if task == "mqar" else "needle")
    return f"{length} {unit}, {keys} {key}{'s' if keys > 1 else ''}"


def table(suite):
    """The table of a suite and the sentence below it"""
    rows = {}
    for cell in json.loads((ASSETS / "scores" / f"{suite}.json").read_text())["cells"]:
        rows.setdefault(cell["checkpoint"], {})[kind(cell)] = cell
    columns = list(next(iter(rows.values())))
    titles = [title(suite, *cell) for cell in columns]
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


def listed(texts):
    """The first cell's, then the others' in parentheses"""
    return f"{texts[0]} ({'; '.join(texts[1:])})"


def spread(shares):
    """The median, the least and the most in percent: "53, 47 to 56"; of two, from the one to the other; of one, itself"""
    if len(shares) == 1:
        return f"{100 * shares[0]:.0f}"
    ends = f"{100 * min(shares):.0f} to {100 * max(shares):.0f}"
    return ends if len(shares) == 2 else f"{100 * statistics.median(shares):.0f}, {ends}"


def seeds_table(task, trained=None):
    """Exact answers by seed, the shipped training's in bold; then differences paired by seed. `trained`: others than those of seeds/"""
    found = trained or trainings(task)
    seeds = sorted({seed for each in found.values() for seed in each})
    shown = listed([title(task, *cell) for cell in CELLS[task]])
    lines = [f"| {shown} | " + " | ".join(f"seed {seed}" for seed in seeds) + " | over seeds: median, least to most |",
             "| --- |" + " --- |" * (len(seeds) + 1)]

    def row(name, by_seed, text, last, bold=None):
        cells = [listed([text(values) for values in by_seed[seed]]) if seed in by_seed else "–" for seed in seeds]
        cells = [f"**{cell}**" if seed == bold else cell for seed, cell in zip(seeds, cells)]
        return f"| {name} | " + " | ".join(cells) + " | " + listed([last(values) for values in zip(*by_seed.values())]) + " |"

    def scores(family):
        return {seed: [found[family][seed][cell] for cell in CELLS[task]] for seed in sorted(found[family])}

    for family in sorted(found):
        bold = None if trained else shipped(task, family).recipe["seed"]
        lines.append(row(f"`{family}`", scores(family), lambda x: f"{100 * x:.0f}", spread, bold))
    lines.append("| **paired by seed, in points** |" + " |" * len(seeds) + " mean ± half of its 95 % interval |")
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
    parser.add_argument("--check", action="store_true", help="write nothing; exit status 1 if a table or a claim's number is not what the scores say")
    parser.add_argument("--seeds", type=Path, metavar="ZOO", help="write nothing; print the tables over seeds of another zoo")
    arguments = parser.parse_args()
    if arguments.seeds:
        for task in CELLS:
            if (arguments.seeds / f"{task}.json").exists():
                print(seeds_table(task, trainings_in(arguments.seeds / f"{task}.json", task)))
        return 0
    stale = False
    for file, renewed in ((README, with_tables), (claims.FILE, claims.with_numbers)):
        text = file.read_text()
        if renewed(text) == text:
            continue
        stale = True
        if arguments.check:
            print(f"{file}: its numbers are not those of the scores: run {Path(__file__).name}", file=sys.stderr)
        else:
            file.write_text(renewed(text))
    return 1 if stale and arguments.check else 0


if __name__ == "__main__":
    sys.exit(main())
