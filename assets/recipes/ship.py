"""Ships the median seed of each family: python3 ship.py --zoo zoo --task mqar --statescope ../../build/release/statescope

Of each family's trainings in the zoo, the one whose mean score over the task's cells is the median goes into ../checkpoints (of an even number
the better of the two in the middle), with its earlier steps where the zoo kept them; of some families every seed does. What was trained once,
to be looked at and not compared, goes with them. Writes the scores of all trainings to seeds/, those of `statescope eval` to ../scores and what
PyTorch computes for the shipped to ../../tests/golden/shipped. `table.py` then writes the tables. With `--only`, of these families alone: the
zoo then needs no training whose scores lie in seeds/, but for the one that is to ship anew.
"""

import argparse
import json
import shutil
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

from reference import write_references
from trainings import ASSETS, median_seed, shipped, trainings_in
from zoo import FAMILIES, cells_of, write_scores

# Of every seed, for the lesson on luck
EVERY_SEED = {"mqar": ("gla", "sse-gla-n4k1")}

# Of the steps that the zoo kept those that ship, where not all do: the models of a task and its steps take room
STEPS = {"niah": (1667, 8333)}

# Trained once, under a changed recipe; zoo.py says how
LOOKED_AT = {"niah": ("sse-gla-n4k1-collapsed",)}

REPOSITORY = ASSETS.parent


def chosen(zoo, task, families, scores):
    """{family: the folder of its median seed}, and of what is only looked at the one; not of a family whose median seed ships already"""
    found = {}
    for family, seeds in trainings_in(scores, task).items():
        if family in families:
            seed = median_seed({seed: statistics.mean(cells.values()) for seed, cells in seeds.items()})
            folders = trained(zoo, task, family)
            if seed in folders:
                found[family] = folders[seed]
            elif shipped(task, family).recipe["seed"] != seed:
                raise SystemExit(f"{task}-{family}: the median is seed {seed}, which {zoo} does not have")
    once = {name: zoo / f"{task}-{name}" for name in LOOKED_AT.get(task, ())}
    return found | {name: folder for name, folder in once.items() if folder.is_dir()}


def trained(zoo, task, family):
    """{seed: folder}"""
    folders = {int(folder.name.rpartition("-seed")[2]): folder for folder in zoo.glob(f"{task}-{family}-seed[0-9]") if folder.is_dir()}
    first = zoo / f"{task}-{family}"
    return {1: first, **folders} if first.is_dir() else folders


def earlier_steps(folder, task):
    """{step: folder} of a training, of those that ship"""
    kept = {int(each.name.rpartition("-step")[2]): each for each in sorted(folder.parent.glob(f"{folder.name}-step*")) if each.is_dir()}
    return {step: each for step, each in kept.items() if step in STEPS.get(task, kept)}


def convert(statescope, folder, checkpoint):
    checkpoint.parent.mkdir(exist_ok=True)
    checkpoint.unlink(missing_ok=True)
    subprocess.run([statescope, "convert", folder, checkpoint], check=True)


def in_place_of(file, cells):
    """A file's scores, those of the same trainings replaced, in the order of the families"""
    new = {cell["checkpoint"] for cell in cells}
    kept = [cell for cell in json.loads(file.read_text())["cells"] if cell["checkpoint"] not in new] if file.exists() else []

    def place(cell):
        family, _, seed = cell["checkpoint"].partition("-")[2].partition("-seed")
        return list(FAMILIES).index(family), int(seed)

    return sorted([*kept, *cells], key=place)


def score_shipped(statescope, task, names, keep):
    """The scores of `statescope eval` of these models. `keep`: the file's other ones stay."""
    file = ASSETS / "scores" / f"{task}.json"
    checkpoints = [f"assets/checkpoints/{task}/{task}-{name}.h5" for name in sorted(names)]
    with tempfile.TemporaryDirectory() as folder:
        made = Path(folder) / file.name
        subprocess.run([statescope, "eval", *checkpoints, "--suite", task, "--json", made], check=True, cwd=REPOSITORY)
        scores = json.loads(made.read_text())
    kept = [cell for cell in json.loads(file.read_text())["cells"] if cell["checkpoint"] not in checkpoints] if keep else []
    scores["cells"] = sorted([*kept, *scores["cells"]], key=lambda cell: cell["checkpoint"])
    file.write_text(json.dumps(scores, indent=1, ensure_ascii=False) + "\n")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--zoo", type=Path, required=True)
    parser.add_argument("--task", choices=["niah", "mqar", "prose"], required=True)
    parser.add_argument("--only", nargs="+", choices=list(FAMILIES), metavar="FAMILY", help="names of zoo.FAMILIES")
    parser.add_argument("--statescope", type=Path, required=True, help="the program")
    arguments = parser.parse_args()
    zoo, task, statescope, families = arguments.zoo, arguments.task, arguments.statescope.resolve(), arguments.only or list(FAMILIES)

    cells = [cell for family in families for cell in cells_of(zoo, task, family)]
    if not cells:
        parser.error(f"{zoo} has no training of {task}")
    seeds = ASSETS / "recipes" / "seeds" / f"{task}.json"
    write_scores(in_place_of(seeds, cells) if arguments.only else cells, seeds)
    found = chosen(zoo, task, families, seeds)
    checkpoints = ASSETS / "checkpoints"
    for family in [family for family in EVERY_SEED.get(task, ()) if family in families]:
        for seed, folder in trained(zoo, task, family).items():
            convert(statescope, folder, checkpoints / "seeds" / f"{task}-{family}-seed{seed}.h5")
    for family, folder in found.items():
        name = f"{task}-{family}"
        print(f"{name}: {folder.name}", flush=True)
        convert(statescope, folder, checkpoints / task / f"{name}.h5")
        for earlier in (checkpoints / "trajectories").glob(f"{name}-step*.h5"):
            earlier.unlink()
        for step, earlier in earlier_steps(folder, task).items():
            convert(statescope, earlier, checkpoints / "trajectories" / f"{name}-step{step}.h5")
        golden = REPOSITORY / "tests" / "golden" / "shipped" / name
        shutil.rmtree(golden, ignore_errors=True)
        write_references(folder, golden)
    if found:
        score_shipped(statescope, task, found, keep=bool(arguments.only))


if __name__ == "__main__":
    sys.exit(main())
