#!/usr/bin/env python3
"""Time from starting the window to its first picture of a model's state, read from the memory of a virtual display (Xvfb).

    tests/bench/first_picture.py CHECKPOINT [--program build/release/statescope] [--runs 5] [--out RESULTS.json] [options of the window]

The screen is looked at every 10 ms. The first picture is there when the stage (all but the sides, header and text) has colours, which only a
state that is drawn brings; the moment when the screen comes to rest is told as well. Nothing plays by itself. The files are read once before, so that they are in memory. Needs Xvfb and numpy."""

import argparse
import mmap
import os
import pathlib
import platform
import shlex
import statistics
import struct
import subprocess
import sys
import tempfile
import time

import numpy as np

import measurement

DISPLAY, WIDTH, HEIGHT = ":96", 1280, 720
STAGE = slice(int(0.12 * HEIGHT), int(0.7 * HEIGHT)), slice(int(0.02 * WIDTH), int(0.68 * WIDTH))
REST_S, LIMIT_S = 3, 60


def screen_of(memory):
    header, colours = struct.unpack_from(">I", memory, 0)[0], struct.unpack_from(">I", memory, 76)[0]
    return np.frombuffer(memory, np.uint32, WIDTH * HEIGHT, header + 12 * colours).reshape(HEIGHT, WIDTH)


def watch(screen, begin):
    """Pictures of the stage, each with the time at which it was first seen, until they stay the same."""
    seen = [(0.0, screen[STAGE].copy())]
    changed = begin
    while time.monotonic() - changed < REST_S or len(seen) < 3:
        if time.monotonic() - begin > LIMIT_S:
            raise SystemExit("the screen does not come to rest")
        now = screen[STAGE].copy()
        if not np.array_equal(now, seen[-1][1]):
            changed = time.monotonic()
            seen.append((changed - begin, now))
        time.sleep(0.01)
    return seen


def is_drawn(picture):
    """Colours: an empty stage has greys alone, a state has its map and curves."""
    channels = np.stack([picture >> shift & 255 for shift in (0, 8, 16)]).astype(int)
    return np.count_nonzero(np.ptp(channels, axis=0) > 60) > 0.003 * picture.size


def first_drawn(seen):
    return next((moment for moment, picture in seen if is_drawn(picture)), seen[-1][0])


def measure(command, memory):
    environment = os.environ | {"DISPLAY": DISPLAY, "QT_QPA_PLATFORM": "xcb", "STATESCOPE_NO_SETTINGS": "1"}
    begin = time.monotonic()
    program = subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        seen = watch(screen_of(memory), begin)
    finally:
        program.terminate()
        program.wait()
    return first_drawn(seen), seen[-1][0]


def read_once(checkpoint):
    for file in checkpoint.rglob("*") if checkpoint.is_dir() else [checkpoint]:
        if file.is_file():
            with open(file, "rb") as opened:
                while opened.read(1 << 24):
                    pass


def measured(command, runs):
    with tempfile.TemporaryDirectory() as folder:
        server = subprocess.Popen(["Xvfb", DISPLAY, "-screen", "0", f"{WIDTH}x{HEIGHT}x24", "-fbdir", folder], stderr=subprocess.DEVNULL)
        path = pathlib.Path(folder) / "Xvfb_screen0"
        try:
            while not path.exists():
                time.sleep(0.05)
            time.sleep(0.5)
            with open(path, "rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as memory:
                return [measure(command, memory) for _ in range(runs)]
        finally:
            server.terminate()
            server.wait()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("checkpoint", type=pathlib.Path)
    parser.add_argument("--program", default="build/release/statescope")
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--out", type=pathlib.Path, help="write the results to this JSON")
    arguments, others = parser.parse_known_args()
    read_once(arguments.checkpoint)
    command = [arguments.program, "--no-autoplay", "--open", str(arguments.checkpoint), *others]
    times = measured(command, arguments.runs)
    first, rest = zip(*times)
    row = [" ".join(others), [round(t, 3) for t in first], round(statistics.median(first), 3), round(statistics.median(rest), 3)]
    result = measurement.measurement(
        f"From the start to the first picture of a model's state: {arguments.checkpoint.name}", shlex.join(sys.argv),
        f"{os.cpu_count()} cores, {platform.machine()}", ["options", "first picture s", "median s", "at rest s"], [row],
        f"Load average {os.getloadavg()[0]:.1f}.")
    print(measurement.text_of(result), end="")
    if arguments.out:
        measurement.write(arguments.out, result)


if __name__ == "__main__":
    main()
