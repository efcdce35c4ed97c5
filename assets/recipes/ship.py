"""Ships the median seed of each family: python3 ship.py --zoo zoo --task mqar --statescope ../../build/release/statescope

Of each family's trainings in the zoo, the one whose mean score over the task's cells is the median goes into ../checkpoints (of an even number
the better of the two in the middle), with its earlier steps where the zoo kept them; of some families every seed does. What was trained once,
to be looked at and not compared, goes with them. Writes the scores of all trainings to seeds/, those of `statescope eval` to ../scores and what
PyTorch computes for the shipped to ../../tests/golden/shipped. `table.py` then writes the tables.
"""

import argparse
import shutil
import statistics
import subprocess
import sys
from pathlib import Path

from reference import write_references
from trainings import ASSETS, median_seed
from zoo import FAMILIES, scores_of, write_scores

# Of every seed, for the lesson on luck
EVERY_SEED = {"mqar": ("gla", "sse-gla-n4k1")}

# Of the steps that the zoo kept those that ship, where not all do: the models of a task and its steps take room
STEPS = {"niah": (1667, 5000, 8333)}

# Trained once, under a changed recipe; zoo.py says how
LOOKED_AT = {"niah": ("sse-gla-n4k1-collapsed",)}

REPOSITORY = ASSETS.parent


def chosen(zoo, task):
    """{family: the folder of its median seed}, and of what is only looked at the one"""
    found = {}
    for family in FAMILIES:
        folders = trained(zoo, task, family)
        if folders:
            means = {seed: statistics.mean(cell["exact"] for cell in scores_of(folder)) for seed, folder in folders.items()}
            found[family] = folders[median_seed(means)]
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


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--zoo", type=Path, required=True)
    parser.add_argument("--task", choices=["niah", "mqar", "prose"], required=True)
    parser.add_argument("--statescope", type=Path, required=True, help="the program")
    arguments = parser.parse_args()
    task, statescope = arguments.task, arguments.statescope.resolve()

    found = chosen(arguments.zoo, task)
    if not found:
        parser.error(f"{arguments.zoo} has no training of {task}")
    write_scores(arguments.zoo, task, ASSETS / "recipes" / "seeds")
    checkpoints = ASSETS / "checkpoints"
    for earlier in [*(checkpoints / "trajectories").glob(f"{task}-*.h5"), *(checkpoints / "seeds").glob(f"{task}-*.h5")]:
        earlier.unlink()
    for family in EVERY_SEED.get(task, ()):
        for seed, folder in trained(arguments.zoo, task, family).items():
            convert(statescope, folder, checkpoints / "seeds" / f"{task}-{family}-seed{seed}.h5")
    for family, folder in found.items():
        name = f"{task}-{family}"
        print(f"{name}: {folder.name}", flush=True)
        convert(statescope, folder, checkpoints / f"{name}.h5")
        for step, earlier in earlier_steps(folder, task).items():
            convert(statescope, earlier, checkpoints / "trajectories" / f"{name}-step{step}.h5")
        golden = REPOSITORY / "tests" / "golden" / "shipped" / name
        shutil.rmtree(golden, ignore_errors=True)
        write_references(folder, golden)
    scores = ASSETS / "scores" / f"{task}.json"
    shipped = [f"assets/checkpoints/{file.name}" for file in sorted(checkpoints.glob(f"{task}-*.h5"))]
    subprocess.run([statescope, "eval", *shipped, "--suite", task, "--json", scores, "--force"], check=True, cwd=REPOSITORY)


if __name__ == "__main__":
    sys.exit(main())
