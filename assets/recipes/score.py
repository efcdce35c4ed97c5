"""Scores as `statescope eval` counts them: the examples 0 … samples − 1 of evaluation seed 1 of every cell in assets/tasks/scores.json.

An answer is exact if each of its tokens is the most probable one, the right tokens before it given: the same as if generated greedily."""

import json
import math

import torch
import torch.nn.functional as F

import tasks

CELLS = json.loads((tasks.TASKS / "scores.json").read_text())
SEED = 1


def batch_of(task, cell, first, count, device, text=None):
    draws = tasks.Draws(first, count, SEED, tasks.EVALUATION, device)
    if task == "mqar":
        return tasks.recall(draws, cell["length"], pairs=cell["pairs"])
    if task == "niah":
        return tasks.needles(draws, cell["length"], keys=cell["needles"])
    return text(draws, cell["length"], keys=cell["needles"])


def interval(fractions, one_question_each):
    """95 %: Wilson's where every example has one question or all are equal, else mean ± 1.96 sd/√n over the examples"""
    n, p = len(fractions), float(fractions.mean())
    if one_question_each or bool((fractions == fractions[0]).all()):
        z = 1.959963984540054
        middle, half = (p + z * z / (2 * n)) / (1 + z * z / n), z * math.sqrt(p * (1 - p) / n + z * z / (4 * n * n)) / (1 + z * z / n)
    else:
        middle, half = p, 1.96 * float(fractions.std()) / math.sqrt(n)
    return p, max(0.0, middle - half), min(1.0, middle + half)


@torch.no_grad()
def score(model, task, samples, device, most_tokens=65536):
    """One record a cell: exact (with its interval), right by place in the answer, mean negative log likelihood of an answer's token"""
    precision = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision("highest")
    model.eval()
    text = tasks.ProseNeedles(tasks.prose(tasks.EVALUATION), device) if task == "prose" else None
    records = []
    for cell in CELLS[task]:
        exact, places, nll = [], [], []
        size = max(1, most_tokens // cell["length"])
        for first in range(0, samples, size):
            batch = batch_of(task, cell, first, min(size, samples - first), device, text)
            asked = batch.answer >= 0
            logits = model(batch.ids)[asked].float().view(len(asked), -1, model.config["vocab_size"])
            expected = batch.answer[asked].view(len(asked), -1)
            right = logits.argmax(-1) == expected
            nll.append(F.cross_entropy(logits.flatten(0, 1), expected.flatten(), reduction="none"))
            places.append(right)
            # An example's questions are one token each (mqar), or it has one question of several tokens.
            exact.append(right.float().mean(1) if task == "mqar" else right.all(1).float())
        p, low, high = interval(torch.cat(exact).cpu(), one_question_each=task != "mqar")
        by_place = torch.cat(places).float().mean(0).cpu().tolist() if task != "mqar" else [p]
        records.append({**cell, "samples": samples, "exact": p, "low": low, "high": high, "tokens": by_place,
                        "nll": float(torch.cat(nll).mean())})
    model.train()
    torch.set_float32_matmul_precision(precision)
    return records


@torch.no_grad()
def score_text(model, device, length=1024, windows=128):
    """Bits per byte of held-out prose, in windows that know nothing of what came before"""
    text = torch.tensor(list(tasks.prose(tasks.EVALUATION)), device=device)
    count = len(text) // length
    chosen = torch.arange(windows, device=device) * count // windows
    ids = text[chosen[:, None] * length + torch.arange(length, device=device)]
    model.eval()
    nll = [F.cross_entropy(model(x)[:, :-1].float().flatten(0, 1), x[:, 1:].flatten(), reduction="sum") for x in ids.split(16)]
    model.train()
    return float(torch.stack(nll).sum()) / (windows * (length - 1)) / math.log(2)
