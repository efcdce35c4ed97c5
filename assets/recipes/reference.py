"""What PyTorch computes for a checkpoint: python3 reference.py --out ../../tests/golden/shipped FOLDER…

Writes OUT/<name of the folder>/io.safetensors with, for the evaluation examples p0, p1: ids [T], positions [A] after which an answer's token
is predicted, logits [A, V] there, argmax [T], residual_last [L + 1, D], which is the residual stream at the last token before each block and
after the last. float32 on the CPU.
"""

import argparse
import json
from pathlib import Path

import torch
from safetensors.torch import load_file, save_file

import score
import tasks
from models import Model

# Example i is of the i-th cell.
CELLS = {
    "niah": [{"length": 256, "needles": 4}, {"length": 512, "needles": 16}],
    "mqar": [{"length": 256, "pairs": 16}, {"length": 256, "pairs": 16}],
    "prose": [{"length": 512, "needles": 1}, {"length": 512, "needles": 1}],
}


def load(folder):
    """The model of a Hugging Face folder, in float32"""
    model = Model(json.loads((folder / "config.json").read_text()))
    model.load_state_dict({name: tensor.float() for name, tensor in load_file(folder / "model.safetensors").items()})
    return model.eval()


@torch.no_grad()
def reference(model, ids, positions):
    stack = getattr(model, model.body)
    residuals = []
    hooks = [layer.register_forward_pre_hook(lambda module, inputs: residuals.append(inputs[0][0, -1])) for layer in stack["layers"]]
    hooks.append(stack[model.norm].register_forward_pre_hook(lambda module, inputs: residuals.append(inputs[0][0, -1])))
    logits = model(ids[None])[0].float()
    for hook in hooks:
        hook.remove()
    return {"ids": ids.int(), "positions": positions.int(), "logits": logits[positions], "argmax": logits.argmax(-1).int(),
            "residual_last": torch.stack(residuals)}


def references(folder):
    model = load(folder)
    task = json.loads((folder / "provenance/recipe.json").read_text())["task"]
    text = tasks.ProseNeedles(tasks.prose(tasks.EVALUATION)) if task == "prose" else None
    tensors = {}
    for i, cell in enumerate(CELLS[task]):
        batch = score.batch_of(task, cell, i, 1, "cpu", text)
        for name, tensor in reference(model, batch.ids[0], (batch.answer[0] >= 0).nonzero()[:, 0]).items():
            tensors[f"p{i}.{name}"] = tensor.contiguous()
    return tensors


def write_references(folder, place):
    place.mkdir(parents=True, exist_ok=True)
    save_file(references(folder), place / "io.safetensors")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folders", nargs="+", type=Path)
    parser.add_argument("--out", type=Path, required=True)
    arguments = parser.parse_args()
    for folder in arguments.folders:
        write_references(folder, arguments.out / folder.name)


if __name__ == "__main__":
    main()
