"""Trains one model: python3 train.py --task niah --family sse-gla-n4k1 --out niah-sse-gla-n4k1

Writes a Hugging Face folder (config.json, model.safetensors, tokenizer.json, provenance/) that `statescope convert` turns into an .h5 file.
On a GPU each training step is one CUDA graph. `--share 0.001` trains for a thousandth of the steps, to try things out.
"""

import argparse
import json
import math
import platform
import random
import re
import shutil
import sys
import time
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import torch
import torch.nn.functional as F
from safetensors.torch import save_file

import tasks
from models import Model
from score import score, score_text
from zoo import make_config


@dataclass
class Phase:
    """A stretch of training: sequences of `length` tokens; each block of steps draws one of `keys` (niah, prose) or `pairs` (mqar)."""

    length: int
    steps: int
    keys: tuple
    language: float = 0.0  # weight of the tokens that are no answers


@dataclass
class Recipe:
    size: str  # of SIZES
    tokens: int  # a step
    lr: float
    phases: list
    queries: int = 0  # questions a sequence at most (niah, prose)
    asked: float = 1.0  # of a sequence's keys; where all are asked, the last answers can be found by elimination
    vocabulary: str = ""
    balance: float = 0.01  # weight of the routing balance loss (spec §11)
    warmup: int = 0  # steps, or a third of a short run; 0: 200, or a tenth of a short run
    router_scale: float = 1.0  # of the routers' initial weights, times the usual
    branch_scale: float = 1.0  # likewise of the low-rank branches that tell the partitions' q and k from the shared ones
    weight_decay: float = 0.05
    dropout: float = 0.0
    bf16: bool = False


RECIPES = {
    "niah": Recipe("niah", 16384, 1.5e-3, [
        # Short and full of needles first, and every token counts: which name a digit belongs to is learned late or never among much filler,
        # by softmax attention not even so without the loss of the other tokens.
        Phase(64, 2000, (2, 3, 4), language=1.0),
        Phase(128, 1200, (4, 5, 6), language=1.0),
        Phase(256, 1500, (6, 12), language=0.05),
        Phase(512, 1800, (8, 16, 24), language=0.05),
        Phase(1024, 3500, (8, 16, 32, 48, 64), language=0.05),
    ], queries=16, asked=0.5, vocabulary="needle-tokenizer.json", balance=0.0003, warmup=1000),  # chosen by search/niah.jsonl
    "mqar": Recipe("mqar", 16384, 3e-3, [
        Phase(64, 1200, (2, 4, 8)),
        Phase(128, 1200, (4, 8, 16)),
        Phase(256, 3600, (8, 16, 32, 64)),
    ], vocabulary="mqar-tokenizer.json", balance=0.0003, warmup=1000),  # chosen by search/mqar.jsonl
    "prose": Recipe("prose", 32768, 2e-3, [
        Phase(256, 1000, (1, 2, 3), language=1.0),
        Phase(512, 1200, (2, 4), language=1.0),
        Phase(1024, 1400, (2, 4, 8), language=1.0),
        Phase(2048, 1000, (2, 4, 8, 16), language=1.0),
    ], queries=4, dropout=0.1, bf16=True),
}


class Tasks:
    """Batches of one task, drawn in blocks of steps on the device."""

    BLOCK = 32

    def __init__(self, task, recipe, seed, device):
        self.task, self.recipe, self.seed, self.device = task, recipe, seed, device
        self.next_example = 0
        self.choices = random.Random(seed)
        self.text = tasks.ProseNeedles(tasks.prose(tasks.TRAINING), device) if task == "prose" else None

    def place(self):
        """How far the drawing is; `go_to` goes on from there."""
        return {"next_example": self.next_example, "choices": self.choices.getstate()}

    def go_to(self, place):
        self.next_example = place["next_example"]
        self.choices.setstate(place["choices"])

    def block(self, phase, steps):
        """ids, labels, is an answer: [steps, B, T]"""
        count = steps * (self.recipe.tokens // phase.length)
        draws = tasks.Draws(self.next_example, count, self.seed, tasks.TRAINING, self.device)
        self.next_example += count
        keys = self.choices.choice(phase.keys)
        queries = min(max(1, int(keys * self.recipe.asked)), self.recipe.queries)
        if self.task == "niah":
            batch = tasks.needles(draws, phase.length, keys=keys, queries=queries)
        elif self.task == "mqar":
            batch = tasks.recall(draws, phase.length, pairs=keys)
        else:
            while queries > 1 and int(self.text.filler(draws, phase.length, keys, queries).min()) < 0:
                queries -= 1  # long names
            batch = self.text(draws, phase.length, keys=keys, queries=queries)
        return [x.unflatten(0, (steps, -1)) for x in (batch.ids, batch.labels(), batch.answer >= 0)]


def loss_of(model, recipe, language, ids, labels, is_answer):
    with torch.autocast(ids.device.type, dtype=torch.bfloat16, enabled=recipe.bf16):
        logits = model(ids)
    each = F.cross_entropy(logits.float().flatten(0, 1), labels.flatten(), reduction="none", ignore_index=-1)
    answer = is_answer.flatten().float()
    answers = (each * answer).sum() / answer.sum()
    rest = (each * (1 - answer)).mean()
    return answers + language * rest + recipe.balance * model.balance(), answers, rest


class Stepper:
    """One training step at one sequence length; on a GPU captured as a graph and replayed."""

    def __init__(self, model, optimizer, recipe, language, batch):
        self.model, self.optimizer, self.recipe, self.language = model, optimizer, recipe, language
        self.batch = [x.clone() for x in batch]
        self.graph = None
        if batch[0].is_cuda:
            self.capture()

    def compute(self):
        loss, answers, rest = loss_of(self.model, self.recipe, self.language, *self.batch)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
        self.optimizer.step()
        self.optimizer.zero_grad(set_to_none=False)
        self.answers, self.rest = answers.detach(), rest.detach()

    @torch.no_grad()
    def rehearse(self, times):
        """Steps that leave no trace but memory that is there: weights are put back, the optimizer's moments too (new ones begin at 0)"""
        held = list(self.model.parameters())
        before = [p.clone() for p in held]
        moments = {p: {name: value.clone() for name, value in self.optimizer.state[p].items()} for p in held}
        for _ in range(times):
            with torch.enable_grad():
                self.compute()
        for p, weights in zip(held, before):
            p.copy_(weights)
            for name, value in self.optimizer.state[p].items():
                value.copy_(moments[p].get(name, torch.zeros_like(value)))

    def capture(self):
        stream = torch.cuda.Stream()
        stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(stream):
            self.rehearse(3)
        torch.cuda.current_stream().wait_stream(stream)
        self.graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(self.graph, stream=stream):
            self.compute()

    def step(self, batch):
        for mine, new in zip(self.batch, batch):
            mine.copy_(new)
        self.graph.replay() if self.graph else self.compute()


def learning_rate(recipe, step, steps):
    """Warm-up, of a short run at most a third, then half a cosine down to a fiftieth"""
    warm = min(recipe.warmup, steps // 3 + 1) if recipe.warmup else min(200, steps // 10 + 1)
    return recipe.lr * min(1.0, (step + 1) / warm) * (0.02 + 0.98 * 0.5 * (1 + math.cos(math.pi * step / steps)))


# Of two axes, but no matrices of a projection: their weights do not decay.
NO_MATRICES = r"embeddings|A_log|lower_bounds|r_k$"


def make_optimizer(model, recipe, device):
    decayed = {n: p.dim() == 2 and not re.search(NO_MATRICES, n) for n, p in model.named_parameters()}
    matrices, others = ([p for n, p in model.named_parameters() if decayed[n] == matrix] for matrix in (True, False))
    groups = [{"params": matrices, "weight_decay": recipe.weight_decay}, {"params": others, "weight_decay": 0.0}]
    on_gpu = {"lr": torch.tensor(recipe.lr, device=device), "fused": True, "capturable": True} if device == "cuda" else {"lr": recipe.lr}
    return torch.optim.AdamW(groups, betas=(0.9, 0.98), **on_gpu)


def set_rate(optimizer, rate):
    for group in optimizer.param_groups:
        if torch.is_tensor(group["lr"]):
            group["lr"].fill_(rate)
        else:
            group["lr"] = rate


def save(model, config, recipe, folder, provenance):
    """The checkpoint as a Hugging Face folder, matrices in bfloat16; appears whole or not at all"""
    draft = folder.with_name(folder.name + ".draft")
    shutil.rmtree(draft, ignore_errors=True)
    (draft / "provenance").mkdir(parents=True)
    (draft / "config.json").write_text(json.dumps(config, indent=1))
    tensors = {name: value.detach().cpu().to(torch.bfloat16 if value.dim() > 1 else torch.float32).contiguous()
               for name, value in model.state_dict().items()}
    save_file(tensors, str(draft / "model.safetensors"), metadata={"format": "pt"})
    if recipe.vocabulary:
        shutil.copy(tasks.TASKS / recipe.vocabulary, draft / "tokenizer.json")
    else:
        (draft / "tokenizer.json").write_text('{"type": "bytes"}')
    for name, value in provenance.items():
        (draft / "provenance" / name).write_text(value if isinstance(value, str) else json.dumps(value, indent=1))
    shutil.rmtree(folder, ignore_errors=True)
    draft.rename(folder)


@torch.no_grad()
def round_weights(model):
    """Matrices become what a checkpoint holds of them, so that scores are the checkpoint's."""
    for p in model.parameters():
        if p.dim() > 1:
            p.copy_(p.to(torch.bfloat16))


def versions(device):
    found = {"python": platform.python_version(), "torch": torch.__version__, "device": platform.machine()}
    if device == "cuda":
        found.update(device=torch.cuda.get_device_name(), cuda=torch.version.cuda)
    return found


class NotFinite(RuntimeError):
    pass


@torch.no_grad()
def scale_initial_weights(model, recipe):
    for name, weight in model.named_parameters():
        if re.search(r"\.attn\.(e_proj|gate)\.weight$", name):
            weight.mul_(recipe.router_scale)
        if re.search(r"\.lora_[qk]_proj\.1\.weight$", name):  # of the two factors the second alone: the product scales as said
            weight.mul_(recipe.branch_scale)


def begin(task, family, seed, device, changes=None, recipe_changes=None):
    """The recipe, the config and the model as it is before the first step"""
    torch.manual_seed(seed)
    torch.set_float32_matmul_precision("high")
    recipe = replace(RECIPES[task], **{name: [Phase(*phase) for phase in value] if name == "phases" else value
                                       for name, value in (recipe_changes or {}).items()})
    config = make_config(family, recipe.size, **(changes or {}))
    model = Model(config, recipe.dropout)
    scale_initial_weights(model, recipe)
    return recipe, config, model.to(device)


def random_states(device):
    return [torch.get_rng_state()] + ([torch.cuda.get_rng_state()] if device == "cuda" else [])


def set_random_states(states):
    torch.set_rng_state(states[0].cpu())
    if len(states) > 1:
        torch.cuda.set_rng_state(states[1].cpu())


def fit(model, recipe, batches, share=1.0, after_step=lambda done: None, tell=lambda phase, done, answers, rest: None,
        at_end=lambda phase: None, state=None, after_block=lambda state: None):
    """All steps of the recipe, or that share of them, from `state` on. `after_step` follows each; `tell` every eighth block and the last of a
    phase, with the losses of its last step; `at_end` each phase; `after_block` gets a function that returns the state. Throws NotFinite."""
    optimizer = make_optimizer(model, recipe, batches.device)
    phases = [(phase, max(1, round(phase.steps * share))) for phase in recipe.phases]
    steps, done = sum(count for _, count in phases), 0
    if state:
        model.load_state_dict(state["model"])
        optimizer.load_state_dict(state["optimizer"])
        batches.go_to(state["batches"])
        set_random_states(state["random"])
        done = state["done"]
    began = 0
    for phase, count in phases:
        began, before = began + count, max(0, done - began)
        if before >= count:
            continue
        stepper = None
        for first in range(before, count, Tasks.BLOCK):
            block = batches.block(phase, min(Tasks.BLOCK, count - first))
            for batch in zip(*block):
                stepper = stepper or Stepper(model, optimizer, recipe, phase.language, batch)
                set_rate(optimizer, learning_rate(recipe, done, steps))
                stepper.step(batch)
                done += 1
                after_step(done)
            if first % (Tasks.BLOCK * 8) == 0 or first + Tasks.BLOCK >= count:
                tell(phase, done, float(stepper.answers), float(stepper.rest))
            after_block(lambda: {"model": model.state_dict(), "optimizer": optimizer.state_dict(), "batches": batches.place(),
                                 "random": random_states(batches.device), "done": done})
        del stepper
        at_end(phase)
    if not all(bool(p.isfinite().all()) for p in model.parameters()):
        raise NotFinite("the weights are not finite")
    round_weights(model)


def state_file(out):
    """Where a training that is not finished keeps its state."""
    return out.with_name(out.name + ".state")


class Unfinished:
    """The state of a training beside its folder-to-be, written once a minute: one that was stopped goes on where it was, to the same numbers."""

    def __init__(self, out, what, device, seconds=60.0):
        self.file, self.what, self.seconds = state_file(out), what, seconds
        self.state, self.log, self.spent, self.written = None, [], 0.0, time.time()
        if self.file.exists():
            found = torch.load(self.file, map_location=device)
            if found["what"] != what:
                raise SystemExit(f"{self.file} is of a training by another recipe, config, seed or share: remove it, or name another --out")
            self.state, self.log, self.spent = found["state"], found["log"], found["spent"]
        self.began = time.time() - self.spent

    def keep(self, state, log):
        if time.time() - self.written < self.seconds:
            return
        draft = self.file.with_name(self.file.name + ".draft")
        torch.save({"what": self.what, "state": state(), "log": log, "spent": time.time() - self.began}, draft)
        draft.replace(self.file)
        self.written = time.time()


def train(task, family, seed, out, device, share=1.0, trajectory=0, changes=None, recipe_changes=None, say=print, keep_every=60.0):
    recipe, config, model = begin(task, family, seed, device, changes, recipe_changes)
    batches = Tasks(task, recipe, seed, device)
    unfinished = Unfinished(out, json.dumps([asdict(recipe), config, seed, share]), device, keep_every)
    steps = sum(max(1, round(phase.steps * share)) for phase in recipe.phases)
    keep = {round(steps * (i + 1) / trajectory) for i in range(trajectory - 1)} if trajectory else set()
    began, log = unfinished.began, unfinished.log or ["step,length,answer_loss,other_loss,seconds"]

    def provenance(scores, done=steps, seconds=0.0):
        made = {"task": task, "family": family, "seed": seed, "split": "training", "recipe": asdict(recipe), "share": share, "steps": done,
                "tokens": done * recipe.tokens, "examples": batches.next_example, "parameters": model.parameters_in_all(),
                "seconds": round(seconds, 1), "versions": versions(device), "changes": {**(changes or {}), **(recipe_changes or {})}}
        return {"recipe.json": made, "scores.json": scores, "log.csv": "\n".join(log) + "\n"}

    def after_step(done):
        if done in keep:
            save(model, config, recipe, out.with_name(f"{out.name}-step{done}"), provenance({}, done, time.time() - began))

    def tell(phase, done, answers, rest):
        log.append(f"{done},{phase.length},{answers:.4f},{rest:.4f},{time.time() - began:.1f}")
        say(f"{task} {family} {log[-1]}")

    fit(model, recipe, batches, share, after_step, tell, state=unfinished.state, after_block=lambda state: unfinished.keep(state, log))
    seconds = time.time() - began
    save(model, config, recipe, out, provenance({}, seconds=seconds))
    return model, config, recipe, lambda scores: provenance(scores, seconds=seconds), seconds


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--task", choices=RECIPES, required=True)
    parser.add_argument("--family", required=True, help="a name of zoo.FAMILIES")
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--share", type=float, default=1.0, help="of the recipe's steps")
    parser.add_argument("--trajectory", type=int, default=0, help="checkpoints to keep along the way, the last included")
    parser.add_argument("--samples", type=int, default=500, help="examples a score")
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--set", action="append", default=[], metavar="KEY=JSON", help="change a key of config.json")
    parser.add_argument("--recipe", action="append", default=[], metavar="KEY=JSON", help="change a number of the recipe")
    arguments = parser.parse_args()

    def changes(given):
        return {key: json.loads(value) for key, value in (item.split("=", 1) for item in given)}

    model, config, recipe, provenance, seconds = train(arguments.task, arguments.family, arguments.seed, arguments.out, arguments.device,
                                                       arguments.share, arguments.trajectory, changes(arguments.set),
                                                       changes(arguments.recipe))
    scores = {"cells": score(model, arguments.task, arguments.samples, arguments.device)}
    if arguments.task == "prose":
        scores["bits_per_byte"] = score_text(model, arguments.device)
    save(model, config, recipe, arguments.out, provenance(scores))
    state_file(arguments.out).unlink(missing_ok=True)
    for cell in scores["cells"]:
        print(cell)
    print(f"seconds of training {seconds:.0f}", {name: value for name, value in scores.items() if name != "cells"})


if __name__ == "__main__":
    sys.exit(main())
