#!/usr/bin/env python3
"""Statescope's prefill and decoding on the CPU beside PyTorch's in bfloat16, in one run: times, CPU time and ratios.

    tests/bench/compare_torch_cpu.py FOLDER [-o RESULTS.json] [--tokens 512] [--decode 32] [--runs 5] [--threads 2]

FOLDER is a Qwen3.5 checkpoint (tests/bench/make_qwen.py makes one). Needs torch and transformers ≥ 5. By turns, each run of one behind that
of the other: prefill fills the states and makes the last position's logits, decoding reads one token after another, each with its logits.
Beside the time by the clock stands the CPU time of all threads, which other work on the machine disturbs less; PyTorch's threads are told
not to spin while they wait, so that it counts work alone. Medians; a ratio is theirs / ours."""
import argparse
import json
import os
import pathlib
import platform
import resource
import statistics
import shlex
import subprocess
import sys
import time

import measurement

os.environ["GOMP_SPINCOUNT"] = "0"  # before torch is loaded
os.environ["OMP_WAIT_POLICY"] = "passive"

COLUMNS = ["what", "precision", "theirs s", "ours s", "theirs / ours", "theirs CPU s", "ours CPU s", "CPU theirs / ours"]


def clock():
    used = resource.getrusage(resource.RUSAGE_SELF)
    return time.perf_counter(), used.ru_utime + used.ru_stime


def measured(work):
    """(seconds, CPU seconds)"""
    begin = clock()
    work()
    return tuple(end - start for start, end in zip(begin, clock()))


class Torch:
    def __init__(self, folder, threads):
        import torch
        import transformers
        torch.set_num_threads(threads)
        torch.set_grad_enabled(False)
        self.torch = torch
        self.version = f"PyTorch {torch.__version__}, Transformers {transformers.__version__}"
        config = transformers.AutoConfig.from_pretrained(folder)
        kind = transformers.AutoModelForCausalLM if not hasattr(config, "vision_config") else transformers.AutoModelForImageTextToText
        self.model = kind.from_pretrained(folder, dtype=torch.bfloat16).eval()
        self.vocab = config.get_text_config().vocab_size

    def ids(self, begin, count):
        return (self.torch.arange(begin, begin + count) * 7919 % self.vocab)[None]

    def prefill(self, tokens):
        return self.model(input_ids=self.ids(0, tokens), use_cache=True, logits_to_keep=1)

    def times(self, tokens, decode):
        """{what: (seconds, CPU seconds)}; of decoding, a token's."""
        prefill = measured(lambda: self.prefill(tokens))
        cache = self.prefill(1).past_key_values

        def steps():
            for t in range(decode):
                self.model(input_ids=self.ids(t + 1, 1), past_key_values=cache, use_cache=True)

        return {"prefill": prefill, "decode": tuple(part / decode for part in measured(steps))}


class Statescope:
    def __init__(self, bench, folder, threads):
        self.command = [bench, str(folder), "--threads", str(threads), "--logits", "--json", "--runs", "1"]

    def times(self, precision, tokens, decode):
        command = self.command + ["--precision", precision, "--prefill", str(tokens), "--tokens", str(decode)]
        run = subprocess.run(command, capture_output=True, text=True)
        if run.returncode != 0:
            sys.exit(f"compare_torch_cpu.py: {run.stderr.strip()}")
        lines = map(json.loads, run.stdout.splitlines())
        return {line["what"]: (line["ms"] / 1e3, line["cpu_ms"] / 1e3) for line in lines}


def processor():
    for line in pathlib.Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.split(":")[1].strip()
    return platform.machine()


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("-o", "--output", type=pathlib.Path)
    parser.add_argument("--bench", default="build/release/model_bench")
    parser.add_argument("--tokens", type=int, default=512)
    parser.add_argument("--decode", type=int, default=32)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--threads", type=int, default=2)
    options = parser.parse_args()
    torch, ours = Torch(options.folder, options.threads), Statescope(options.bench, options.folder, options.threads)
    turns = {"torch": lambda: torch.times(options.tokens, options.decode),
             "float32": lambda: ours.times("float32", options.tokens, options.decode),
             "bfloat16": lambda: ours.times("bfloat16", options.tokens, options.decode)}
    torch.times(options.tokens, 2)  # warms up
    seen = {name: [] for name in turns}
    for _ in range(options.runs):
        for name, turn in turns.items():
            seen[name].append(turn())
    rows = []
    for what, told in (("prefill", f"prefill of {options.tokens} tokens"), ("decode", "a token")):
        for precision in ("float32", "bfloat16"):
            row = [told, precision]
            for i in range(2):
                theirs, mine = (statistics.median(run[what][i] for run in seen[name]) for name in ("torch", precision))
                row += [round(theirs, 5), round(mine, 5), round(theirs / mine, 3)]
            rows.append(row)
    result = measurement.measurement(
        f"Prefill and decoding of {options.folder.name} beside {torch.version} in bfloat16", shlex.join(sys.argv),
        f"{processor()}, {options.threads} threads", COLUMNS, rows,
        f"Medians of {options.runs} runs, by turns; load average {os.getloadavg()[0]:.2f}.")
    print(measurement.text_of(result), end="")
    if options.output:
        measurement.write(options.output, result)


if __name__ == "__main__":
    main()
