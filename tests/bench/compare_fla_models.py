#!/usr/bin/env python3
"""Statescope's whole models beside flash-linear-attention's, on one device in one run: times and ratios.

    tests/bench/compare_fla_models.py --bench build/cuda/model_bench [--prefill 8192,32768]

Both have random bfloat16 weights and the library's own configurations of 1.3 billion parameters. Reading a prompt fills the states and
makes the last position's logits, a token makes its own. The library's token is replayed from a CUDA graph; ours is as anybody calls it.
Ours runs as a program of its own (model_bench), before and after the library; the slower of the two is compared. Medians, by the host's
clock."""
import argparse
import json
import pathlib
import shlex
import statistics
import subprocess
import sys
import time

import measurement
from compare_fla import fail, number, ratio

HERE = pathlib.Path(__file__).resolve().parent
REPEATS = 21
MODELS = {"gla_1.3b": ("GLAConfig", "GLAForCausalLM"), "gated_deltanet_1.3b": ("GatedDeltaNetConfig", "GatedDeltaNetForCausalLM")}


def ours(bench, device, name, lengths):
    """{what: ms} of one run of model_bench, where "decode" is one token."""
    command = [bench, str(HERE / f"{name}.json"), "--device", f"cuda:{device}", "--precision", "bfloat16", "--json", "--logits",
               "--prefill", ",".join(map(str, lengths)), "--runs", str(REPEATS)]
    try:
        run = subprocess.run(command, capture_output=True, text=True)
    except OSError as error:
        fail(f"{bench}: {error.strerror}; build it with cmake --build --preset cuda --target model_bench")
    if run.returncode != 0:
        fail(run.stderr.strip())
    lines = map(json.loads, run.stdout.splitlines())
    return {line["tokens"] if line["what"] == "prefill" else "decode": line["ms"] for line in lines}


class Library:
    def __init__(self, torch, name, device):
        from fla import models
        config, model = (getattr(models, of) for of in MODELS[name])
        self.torch = torch
        with torch.device("cuda", device):
            self.model = model(config()).to(torch.bfloat16).eval()

    def median_ms(self, work, repeats=REPEATS):
        for _ in range(3):  # chooses its kernels' configurations, warms up
            work()
        self.torch.cuda.synchronize()
        times = []
        for _ in range(repeats):
            begin = time.perf_counter()
            work()
            self.torch.cuda.synchronize()
            times.append(1e3 * (time.perf_counter() - begin))
        return statistics.median(times)

    def ids(self, length):
        return (self.torch.arange(length, device="cuda") * 7919 % self.model.config.vocab_size)[None]

    def prefill_ms(self, length):
        ids = self.ids(length)
        return self.median_ms(lambda: self.model(ids, use_cache=True, logits_to_keep=1).logits.float().cpu())

    def decode_ms(self):
        """None where the library's step cannot be captured."""
        torch, token = self.torch, self.ids(1)
        cache = self.model(self.ids(64), use_cache=True, logits_to_keep=1).past_key_values
        step = lambda: self.model(token, past_key_values=cache, use_cache=True, logits_to_keep=1)
        self.median_ms(step, 1)
        graph = torch.cuda.CUDAGraph()
        try:
            with torch.cuda.graph(graph):
                step()
        except RuntimeError as error:
            print(f"not captured: {error}".splitlines()[0])
            torch.cuda.synchronize()
            return None
        tokens = 20
        return self.median_ms(lambda: [graph.replay() for _ in range(tokens)]) / tokens


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bench", default=str(HERE.parents[1] / "build/cuda/model_bench"), help="ours (default: %(default)s)")
    parser.add_argument("--models", type=lambda text: text.split(","), default=list(MODELS), help="default: %(default)s")
    parser.add_argument("--prefill", type=lambda text: [int(word) for word in text.split(",")], default=[8192, 32768], help="lengths of prompts")
    parser.add_argument("--device", type=int, default=0, help="number of the GPU")
    parser.add_argument("--json", help="write the times to this file")
    arguments = parser.parse_args()
    rows = []
    for name in arguments.models:
        if name not in MODELS:
            fail(f"no model {name}; there are {', '.join(MODELS)}")
    try:
        import fla
        import torch
    except ImportError as error:
        fail(f"needs PyTorch, transformers and flash-linear-attention ({error}): pip install torch flash-linear-attention")
    if not torch.cuda.is_available():
        fail("there is no CUDA device here")
    torch.cuda.set_device(arguments.device)
    print(f"{torch.cuda.get_device_name()}, torch {torch.__version__}, flash-linear-attention {fla.__version__}; ms, ratio: theirs / ours")
    for name in arguments.models:
        before = ours(arguments.bench, arguments.device, name, arguments.prefill)
        with torch.inference_mode():
            library = Library(torch, name, arguments.device)
            theirs = {length: library.prefill_ms(length) for length in arguments.prefill}
            theirs["decode"] = library.decode_ms()
        del library
        torch.cuda.empty_cache()
        after = ours(arguments.bench, arguments.device, name, arguments.prefill)
        for what, their in theirs.items():
            our = max(before[what], after[what])
            said = "decode" if what == "decode" else f"prefill {what}"
            rows.append([name, said, their, our, their and round(their / our, 2)])
            print(f"{name:22}{said:16}{number(their)} {number(our)} {ratio(their, our)}   (ours before and after: {before[what]:.4f}, {after[what]:.4f})")
    if arguments.json:
        measurement.write(arguments.json, measurement.measurement(
            f"Whole models beside flash-linear-attention {fla.__version__}, random bfloat16 weights", shlex.join(sys.argv), torch.cuda.get_device_name(),
            ["model", "what", "theirs ms", "ours ms", "theirs / ours"], rows, "Host's clock; ours is the slower of a run before and one after."))


if __name__ == "__main__":
    main()
