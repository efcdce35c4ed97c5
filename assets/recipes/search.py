"""Looks for a recipe: python3 search.py --out search.jsonl --try base --try warmup=1000 --try "warmup=1000 router=0.5"

Each --try is the shipped recipe with some options changed; every family is trained under it on every seed, `--side-by-side` trainings on each GPU.
The file gets one JSON line a training. What it has already is not trained again, so a search that was stopped goes on where it was.
`--choose` trains nothing: it reads the file and says which recipe is best for all families alike, by the median validation loss over the seeds.
Scores are written down but never looked at there.
"""

import argparse
import json
import multiprocessing
import os
import statistics
import sys
import time
from concurrent.futures import FIRST_COMPLETED, ProcessPoolExecutor, wait
from dataclasses import asdict, replace
from pathlib import Path

import torch

from score import score
from train import RECIPES, NotFinite, Phase, Tasks, begin, fit, loss_of, versions
from zoo import FAMILIES

OPTIONS = {
    "steps": "times the recipe's, in every phase",
    "tokens": "tokens a step",
    "lr": "the largest learning rate",
    "warmup": "steps until it is reached",
    "router": "the routers' initial weights, times the usual",
    "branch": "likewise of the low-rank branches",
    "balance": "weight of the routing balance loss",
    "keys": "silu or softmax, of SSE's keys",
    "conv": "before or after: where SSE's sparse branch leaves, of the convolution",
    "language": "weight of the tokens that are no answers, in every phase",
}
CHOICES = {"keys": ("silu", "softmax"), "conv": ("after", "before")}
OF_ROUTED = {"sse": {"router", "branch", "balance", "keys", "conv"}, "mom": {"router", "balance"}}  # by model_type: what others have not
RECIPE_KEYS = {"tokens": "tokens", "lr": "lr", "warmup": "warmup", "router": "router_scale", "branch": "branch_scale", "balance": "balance"}
JUDGED = ["transformer", "gla", "sse-gla-n4k1", "gated-deltanet", "sse-gdn-n4k1"]  # a recipe is chosen for: one of each kind of memory
FIRST_SEED = 11  # those below are counted, and never chosen by
VALIDATION_SEED = 0  # of the training split; nothing is trained on it
LEAST_SEEDS = 5
ON_THE_WAY = 64  # examples of each number of keys for a point of a curve


def options_in(text):
    """"warmup=1000 keys=softmax" → {"warmup": 1000, "keys": "softmax"}; "base": nothing is changed"""
    options = {}
    for item in text.replace("base", "", 1).split():
        name, _, value = item.partition("=")
        if name not in OPTIONS:
            raise ValueError(f"there is no option {name!r}: there are {', '.join(OPTIONS)}")
        if name in CHOICES:
            if value not in CHOICES[name]:
                raise ValueError(f"{name} is {' or '.join(CHOICES[name])}, not {value!r}")
            options[name] = value
        else:
            options[name] = int(value) if name in ("tokens", "warmup") else float(value)
    return options


def text_of(options):
    return " ".join(f"{name}={value}" for name, value in sorted(options.items())) or "base"


def effective(family, options):
    """Those that change anything in this family: a training under the others is the same training."""
    kind = FAMILIES[family]["model_type"]
    others = set.union(*OF_ROUTED.values()) - OF_ROUTED.get(kind, set())
    return {name: value for name, value in options.items() if name not in others}


def validation_batches(task, phase, samples, device):
    """As many examples of each number of keys that the phase has"""
    batches = Tasks(task, replace(RECIPES[task], tokens=samples * phase.length), VALIDATION_SEED, device)
    return [[x[0] for x in batches.block(Phase(phase.length, 1, (keys,)), 1)] for keys in phase.keys]


@torch.no_grad()
def validation_loss(model, recipe, batches):
    """−ln p of an answer's token, mean over the batches; the sum of the layers' balance losses on the last of them"""
    model.eval()
    losses = [float(loss_of(model, recipe, 0.0, *batch)[1]) for batch in batches]
    balance = float(model.balance())
    model.train()
    return statistics.mean(losses), balance


def training(task, family, options, seed, samples):
    """One training, as a record of the file. `curve`: step, length, validation loss and balance on the last phase's examples; `phases`: the
    validation loss on each phase's own examples at its end; `validation`: of the model as it would ship, null where its weights are infinite."""
    device = "cuda" if torch.cuda.is_available() else "cpu"
    changes = {"use_k_softmax": options["keys"] == "softmax"} if "keys" in options else {}
    if "conv" in options:
        changes["sparse_branch_after_conv"] = options["conv"] == "after"
    recipe, _, model = begin(task, family, seed, device, changes,
                             {key: options[name] for name, key in RECIPE_KEYS.items() if name in options})
    if "language" in options:
        recipe = replace(recipe, phases=[replace(phase, language=options["language"]) for phase in recipe.phases])
    final = recipe.phases[-1]
    few = validation_batches(task, final, min(samples, ON_THE_WAY), device)
    began, curve, phases = time.time(), [], []

    def tell(phase, done, answers, rest):
        loss, balance = validation_loss(model, recipe, few)
        curve.append([done, phase.length, round(loss, 4), round(balance, 4)])

    def at_end(phase):
        own, _ = validation_loss(model, recipe, validation_batches(task, phase, samples, device))
        phases.append(round(own, 4))

    record = {"task": task, "family": family, "options": options, "seed": seed, "base": base_recipe(task), "validation": None, "curve": curve,
              "phases": phases, "scores": [], "versions": versions(device)}
    try:
        fit(model, recipe, Tasks(task, recipe, seed, device), options.get("steps", 1.0), tell=tell, at_end=at_end)
        record["seconds"] = round(time.time() - began, 1)
        record["validation"] = validation_loss(model, recipe, validation_batches(task, final, samples, device))[0]
        record["scores"] = score(model, task, samples, device)
    except NotFinite:
        record["seconds"] = round(time.time() - began, 1)
    return record


def key_of(task, family, options, seed):
    return task, family, text_of(options), seed


def base_recipe(task):
    """What the options change, as JSON has it"""
    return json.loads(json.dumps(asdict(RECIPES[task])))


def records_in(path, task, more):
    """Those of the task. Throws ValueError where their recipes differ, or are not the one that `more` trainings would change."""
    records = [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []
    records = [record for record in records if record["task"] == task]
    bases = [record["base"] for record in records] + ([base_recipe(task)] if more else [])
    if any(base != bases[0] for base in bases):
        raise ValueError(f"{path}: the recipe of {task} has changed since; begin a new file")
    return records


def take_device(device):
    os.environ["CUDA_VISIBLE_DEVICES"] = str(device)


def search(wanted, path, devices, side_by_side, samples, seconds):
    """Trains what is wanted, as long as there is time for one more: the last training of a worker says how long one takes."""
    context = multiprocessing.get_context("spawn")
    workers = [ProcessPoolExecutor(1, context, take_device, (device,)) for _ in range(side_by_side) for device in range(devices)]
    began, took, running = time.time(), [0.0] * len(workers), {}
    with open(path, "a") as file:
        while True:
            for worker, pool in enumerate(workers):
                if wanted and worker not in running and time.time() - began + took[worker] < seconds:
                    running[worker] = pool.submit(training, *wanted.pop(0), samples), time.time()
            if not running:
                break
            wait([future for future, _ in running.values()], return_when=FIRST_COMPLETED)
            for worker, (future, start) in list(running.items()):
                if not future.done():
                    continue
                del running[worker]
                took[worker] = time.time() - start
                record = future.result()
                file.write(json.dumps(record) + "\n")
                file.flush()
                print(f"{time.time() - began:5.0f} s  {record['family']} {text_of(record['options'])}, seed {record['seed']}: validation "
                      f"{record['validation'] or float('inf'):.4f}, {len(wanted)} to come", flush=True)
    for pool in workers:
        pool.shutdown()
    return len(wanted)


def medians(records, families):
    """{recipe: {family: validation losses by seed}} of all recipes in the file; one that changes nothing in a family has the other's trainings"""
    found = {text_of(record["options"]): record["options"] for record in records}
    table = {}
    for text, options in found.items():
        table[text] = {family: sorted(float("inf") if record["validation"] is None else record["validation"] for record in records
                                      if record["family"] == family and record["options"] == effective(family, options))
                       for family in families}
    return table


def choose(records):
    """Prints every recipe's losses; the chosen one has the least mean over the families of the median over the seeds."""
    families = sorted({record["family"] for record in records})
    table = medians(records, families)
    complete = {text: statistics.mean(statistics.median(losses) for losses in row.values())
                for text, row in table.items() if all(len(losses) >= LEAST_SEEDS for losses in row.values())}
    if not records:
        print("no training yet", file=sys.stderr)
        return 1
    print(f"validation loss: median (least to most) over the seeds of {', '.join(families)}; their mean")
    for text, row in sorted(table.items(), key=lambda item: complete.get(item[0], float("inf"))):
        cells = [f"{statistics.median(losses):.4f} ({losses[0]:.4f} to {losses[-1]:.4f}; {len(losses)})" if losses else "–"
                 for losses in row.values()]
        print(f"{text}: {', '.join(cells)}; {complete[text]:.4f}" if text in complete else f"{text}: {', '.join(cells)}; not complete")
    if not complete:
        print(f"no recipe has {LEAST_SEEDS} seeds of every family yet", file=sys.stderr)
        return 1
    print(f"chosen: {min(complete, key=complete.get)}")
    return 0


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter,
                                     epilog="options of --try:\n" + "\n".join(f"  {name:10}{what}" for name, what in OPTIONS.items()))
    parser.add_argument("--out", type=Path, required=True, help="the file of trainings")
    parser.add_argument("--task", choices=["mqar", "niah"], default="mqar")
    parser.add_argument("--try", dest="tries", action="append", default=[], metavar="OPTIONS")
    parser.add_argument("--families", nargs="+", default=JUDGED, choices=list(FAMILIES))
    parser.add_argument("--seeds", nargs="+", type=int, default=list(range(FIRST_SEED, FIRST_SEED + LEAST_SEEDS)))
    parser.add_argument("--devices", type=int, default=1, help="GPUs")
    parser.add_argument("--side-by-side", type=int, default=1, help="trainings a GPU: a gain only under CUDA's Multi-Process Service")
    parser.add_argument("--samples", type=int, default=500, help="examples a score")
    parser.add_argument("--seconds", type=float, default=float("inf"), help="no training begins that would end later")
    parser.add_argument("--choose", action="store_true", help="train nothing, say which recipe is best")
    arguments = parser.parse_args()
    try:
        records = records_in(arguments.out, arguments.task, more=not arguments.choose)
        tries = [options_in(text) for text in arguments.tries]
    except ValueError as error:
        parser.error(str(error))
    if arguments.choose:
        return choose(records)
    if not tries:
        parser.error("nothing to try: --try base, or --try with options")
    if min(arguments.seeds) < FIRST_SEED:
        parser.error(f"a search takes seeds from {FIRST_SEED} on: those below are counted afterwards")
    done = {key_of(*(record[name] for name in ("task", "family", "options", "seed"))) for record in records}
    wanted = {}
    for options in tries:
        for seed in arguments.seeds:
            for family in arguments.families:
                job = arguments.task, family, effective(family, options), seed
                if key_of(*job) not in done:
                    wanted.setdefault(key_of(*job), job)
    left = search(list(wanted.values()), arguments.out, arguments.devices, arguments.side_by_side, arguments.samples, arguments.seconds)
    return 0 if left == 0 else 1


if __name__ == "__main__":
    sys.exit(main())
