#!/usr/bin/env python3
"""Whether what became of a needle tells a right answer from a wrong one: areas under the ROC curve within a model, over the needle models
that ship (0.5: it tells nothing).

    tests/clinic/needle_verdicts.py STATESCOPE ASSETS [--examples 200] [-o tests/clinic/needle_verdicts.json]

Each of the examples, of 512 words with 16 and with 32 needles, is answered (`statescope run`) and followed (`statescope needle`). Takes
about half a second of a processor for each."""
import argparse, json, pathlib, statistics, subprocess, tempfile

MEASURES = {
    "clear": lambda d: d["verdict"]["clear"],
    "clear, largest over layers": lambda d: max(layer["clear"] for layer in d["layers"] if layer["heads"]),
    "clear, largest over heads": lambda d: max(head["clear"] for layer in d["layers"] for head in layer["heads"]),
    "read share": lambda d: (d["verdict"]["read"] or {"share": 0})["share"],
}
LEAST = 10  # right and wrong answers of a model


def auc(of_right, of_wrong):
    """The probability that a right answer's number is the larger one; ties count half"""
    wins = sum((a > b) + 0.5 * (a == b) for a in of_right for b in of_wrong)
    return wins / (len(of_right) * len(of_wrong))


def asked(statescope, command, checkpoint, prompt, folder):
    made = folder / f"{command}.json"
    subprocess.run([statescope, command, checkpoint, "--prompt", prompt, "--json", made, "--force", *(["--heads", "1000"] if command == "needle" else [])],
                   check=True, capture_output=True)
    return json.loads(made.read_text())


def answers_of(statescope, checkpoint, examples, folder):
    """[(whether all is right, whether the first token is, {measure: number})]"""
    answers = []
    for example in examples:
        prompt = folder / "prompt.jsonl"
        prompt.write_text(example)
        run, needle = (asked(statescope, command, checkpoint, prompt, folder) for command in ("run", "needle"))
        first = run["text"].split()[:1] == run["expected"].split()[:1]
        answers.append((run["correct"], first, {name: measure(needle) for name, measure in MEASURES.items()}))
    return answers


def areas(answers, right):
    """{measure: area}, or none where too few answers are right or wrong"""
    of_right, of_wrong = ([numbers for *flags, numbers in answers if flags[right] == wanted] for wanted in (True, False))
    if min(len(of_right), len(of_wrong)) < LEAST:
        return None
    return {name: auc([n[name] for n in of_right], [n[name] for n in of_wrong]) for name in MEASURES}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("statescope")
    parser.add_argument("assets", type=pathlib.Path)
    parser.add_argument("--examples", type=int, default=200)
    parser.add_argument("-o", "--output", type=pathlib.Path)
    arguments = parser.parse_args()
    models, seen = {}, {"answers": 0, "right": 0}
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        examples = []
        for needles in (16, 32):
            drawn = subprocess.run([arguments.statescope, "dataset", "niah", "--length", "512", "--needles", str(needles), "--seed", "7", "--samples",
                                    str(arguments.examples), "-o", "-"], check=True, capture_output=True, text=True)
            examples += drawn.stdout.splitlines()
        for checkpoint in sorted((arguments.assets / "checkpoints/niah").glob("*.h5")):
            if checkpoint.stem in ("niah-transformer", "niah-sse-gla-n4k1-collapsed"):  # no memory; trained to be ill
                continue
            answers = answers_of(arguments.statescope, checkpoint, examples, folder)
            found = {"all": areas(answers, 0), "first token": areas(answers, 1)}
            if not found["all"]:
                continue
            models[checkpoint.stem] = found
            seen["answers"] += len(answers)
            seen["right"] += sum(right for right, *_ in answers)
            print(checkpoint.stem, {name: round(area, 2) for name, area in found["all"].items()}, flush=True)
    means = {right: {name: round(statistics.mean(found[right][name] for found in models.values() if found[right]), 3) for name in MEASURES}
             for right in ("all", "first token")}
    result = {"examples": len(examples), **seen, "mean": means,
              "models": {model: {right: found[right] and {name: round(area, 3) for name, area in found[right].items()} for right in found}
                         for model, found in models.items()}}
    text = json.dumps(result, indent=1) + "\n"
    arguments.output.write_text(text) if arguments.output else print(text)


if __name__ == "__main__":
    main()
