#!/usr/bin/env python3
"""How the program bears hostile inputs: damages files of every kind that it reads, and its options, runs it on each, and counts.

    tests/fuzz/trial/trial.py STATESCOPE [--inputs 10000] [--only KIND[:NUMBER]] [--keep FOLDER] [-o tests/bench/results/hostile_inputs.json]

Each input is a process of its own. A run is faulty where a signal ends it, where it takes longer than 20 s or more than 2 GB, where it says more than two
lines beside its notes, or bytes that are no clean text, and where it fails and leaves a file, or leaves one half-written. Faulty runs are told, and
their inputs kept; exit status 1. An input is always the same for its KIND, NUMBER and --seed. Needs h5py."""

import argparse
import collections
import os
import pathlib
import random
import resource
import shlex
import shutil
import subprocess
import sys
import tempfile
import threading
import time
import unicodedata

ROOT = pathlib.Path(__file__).resolve().parents[3]
sys.path.insert(0, str(ROOT / "tests/bench"))
from measurement import measurement, write  # noqa: E402

from inputs import KINDS, Seeds, read_options  # noqa: E402

SECONDS, MEGABYTES, LINES = 20, 2048, 2
DIRECTIONS = "\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069"  # they turn what follows around
FAULTS = ("signals", "over 20 s", "over 2 GB", "over two lines", "no clean text", "partial files")


class Run:
    def __init__(self, program, words, folder):
        self.words = [os.fsencode(word) for word in map(lambda w: w if isinstance(w, bytes) else str(w), words)]
        before = set(os.listdir(folder))
        environment = {
            "PATH": os.environ["PATH"],
            "HOME": str(folder),
            "QT_QPA_PLATFORM": "offscreen",
            "STATESCOPE_NO_SETTINGS": "1",
            "LC_ALL": "C.UTF-8",
        }
        given = folder / "stdin"
        start = time.monotonic()
        with open(given if given.exists() else os.devnull, "rb") as stdin, tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
            process = subprocess.Popen(
                [program, *self.words],
                stdin=stdin,
                stdout=out,
                stderr=err,
                cwd=folder,
                env=environment,
                start_new_session=True,
                preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_CORE, (0, 0)),
            )
            late = threading.Timer(SECONDS, process.kill)
            late.start()
            _, status, used = os.wait4(process.pid, 0)
            late.cancel()
            process.returncode = self.status = os.waitstatus_to_exitcode(status)
            self.seconds, self.megabytes = time.monotonic() - start, used.ru_maxrss / 1024
            err.seek(0)
            self.errors = err.read()
        self.left = sorted(set(os.listdir(folder)) - before)
        self.faults = list(self.find_faults(folder))

    def find_faults(self, folder):
        if self.seconds >= SECONDS:
            yield "over 20 s"
        elif self.status < 0 or self.status >= 128:
            yield "signals"
        if self.megabytes > MEGABYTES:
            yield "over 2 GB"
        said = [line for line in self.errors.split(b"\n") if line and not line.startswith(b"note: ")]
        of_each = b"inspect" in self.words  # a message for each checkpoint; and it tells of those that it can read
        if self.status != 0 and not of_each and len(said) > LINES:
            yield "over two lines"
        try:
            clean = all(c in "\n\t" or (unicodedata.category(c) != "Cc" and c not in DIRECTIONS) for c in self.errors.decode())
        except UnicodeDecodeError:
            clean = False
        if not clean:
            yield "no clean text"
        made = [name for name in self.left if name != "hit" and not of_each]
        halves = [str(path) for path in folder.rglob("*") if ".part" in path.name]
        if (
            halves
            or "hit" in self.left
            or (self.status not in (0, 1) and made)
            or (self.status == 1 and [name for name in made if name not in ("made",)])
        ):
            yield "partial files"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program")
    parser.add_argument("--inputs", type=int, default=10000)
    parser.add_argument("--seed", default="1")
    parser.add_argument("--only", help="a kind, or one input of it: configs:37")
    parser.add_argument("--keep", type=pathlib.Path, help="where the inputs of faulty runs go")
    parser.add_argument("-o", "--output", help="the counts, as JSON")
    arguments = parser.parse_args()
    program = str(pathlib.Path(shutil.which(arguments.program)).resolve())
    read_options(program)
    only, _, number = (arguments.only or "").partition(":")
    kinds = {name: kind for name, kind in KINDS.items() if not only or name.startswith(only)}
    weights = sum(weight for _, weight in KINDS.values())
    rows, faulty = [], 0
    with tempfile.TemporaryDirectory(prefix="statescope-trial-") as work:
        seeds_at = pathlib.Path(work) / "seeds"
        seeds_at.mkdir()
        seeds = Seeds(program, seeds_at)
        for name, (make, weight) in kinds.items():
            counted, slowest, largest = collections.Counter(), 0.0, 0.0
            numbers = [int(number)] if number else range(-(-arguments.inputs * weight // weights))
            for i in numbers:
                at = pathlib.Path(work) / "run"
                at.mkdir()
                run = Run(program, make(random.Random(f"{arguments.seed}/{name}/{i}"), seeds, at), at)
                counted[{0: "accepted", 1: "exit 1", 2: "exit 2"}.get(run.status, "other")] += 1
                counted.update(run.faults)
                slowest, largest = max(slowest, run.seconds), max(largest, run.megabytes)
                if run.faults or number:
                    faulty += bool(run.faults)
                    print(
                        f"{name}:{i}: {', '.join(run.faults) or 'no fault'}; status {run.status}, {run.seconds:.1f} s, {run.megabytes:.0f} MB, left {run.left}\n"
                        f"  {shlex.join(os.fsdecode(word) for word in run.words)!a}\n  {run.errors[:500]!r}",
                        flush=True,
                    )
                    if arguments.keep:
                        shutil.copytree(at, arguments.keep / f"{name.replace(' ', '_').replace('/', '_')}-{i}", symlinks=True, dirs_exist_ok=True)
                shutil.rmtree(at)
            rows.append(
                [name, len(numbers), *(counted[outcome] for outcome in ("accepted", "exit 1", "exit 2", *FAULTS)), round(slowest, 1), round(largest)]
            )
            print(rows[-1], flush=True)
    if not rows:
        parser.error(f"there is no kind {only}: there are {', '.join(KINDS)}")
    total = ["all", *(sum(column) for column in list(zip(*rows))[1:-2]), max(row[-2] for row in rows), max(row[-1] for row in rows)]
    print(total)
    if arguments.output:
        columns = ["input", "inputs", "accepted", "exit 1", "exit 2", *FAULTS, "slowest s", "most MB"]
        write(
            arguments.output,
            measurement(
                "Hostile inputs, each a run of the installed program",
                f"tests/fuzz/trial/trial.py statescope --inputs {arguments.inputs}",
                "two cores of a Xeon",
                columns,
                [*rows, total],
                f"Seed {arguments.seed}. Accepted: the damage did no harm, or was told in a note. Exit 1: told as damaged. Exit 2: told as wrong use",
            ),
        )
    return 1 if faulty else 0


if __name__ == "__main__":
    sys.exit(main())
