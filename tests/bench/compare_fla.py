#!/usr/bin/env python3
"""Statescope's memories beside flash-linear-attention's, on one device in one run: times and ratios.

    tests/bench/compare_fla.py --bench build/cuda/device_bench [--lengths 512,8192] [--json FILE]

The shapes are H = 8, D = 128, one sequence. The library gets bfloat16 q, k, v. Ours runs as a program of its own (device_bench, which says
what its times mean), before and after the library; the slower of the two is compared.
    device   many calls after each other, none waiting for the host: the library's replayed from a CUDA graph
    alone    one call. The library's by device events around it, launches included; ours by the host's clock, the wait included
    host     until our call returns
Every call meets operands that are in no cache. flash-linear-attention is installed by whoever wants the comparison; it is no part of this."""
import argparse
import json
import pathlib
import shlex
import statistics
import subprocess
import sys

import measurement

HEADS, WIDTH = 8, 128
LENGTHS = [512, 1024, 2048, 4096, 8192, 16384, 32768, 65536, 131072]
REPEATS = 21
LARGER_THAN_CACHES = 256 << 20
COLUMNS = ["memory", "tokens", "operands", "theirs", "ours", "theirs alone", "ours alone", "our call returns"]
KERNELS = {"decayed_outer_product": "chunk_gla", "gated_delta_rule": "chunk_gated_delta_rule", "gated_delta_rule_by_channel": "chunk_kda"}


def fail(why):
    sys.exit(f"compare_fla: {why}")


def library():
    try:
        import torch
    except ImportError:
        fail("needs PyTorch and flash-linear-attention: pip install torch flash-linear-attention")
    if not torch.cuda.is_available():
        fail("there is no CUDA device here")
    try:
        from fla.ops.gated_delta_rule import chunk_gated_delta_rule
        from fla.ops.gla import chunk_gla
        from fla.ops.kda import chunk_kda
    except ImportError as error:
        fail(f"flash-linear-attention is missing ({error}): pip install flash-linear-attention")
    return torch, {"chunk_gla": chunk_gla, "chunk_gated_delta_rule": chunk_gated_delta_rule, "chunk_kda": chunk_kda}


def ours(bench, device, operands, lengths, only):
    """{(kernel, length): times} of one run of device_bench, and its device."""
    command = [bench, "--device", f"cuda:{device}", "--precision", "bfloat16", "--operands", operands, "--lengths", ",".join(map(str, lengths)),
               "--only", only]
    try:
        run = subprocess.run(command, capture_output=True, text=True)
    except OSError as error:
        fail(f"{bench}: {error.strerror}; build it with cmake --build --preset cuda")
    if run.returncode != 0:
        return None, run.stderr.strip()
    first, *rest = map(json.loads, run.stdout.splitlines())
    return {(line["kernel"], line["length"]): line for line in rest}, first["device"]


class Library:
    def __init__(self, torch, functions, device):
        self.torch, self.functions = torch, functions
        self.device = torch.device("cuda", device)
        torch.cuda.set_device(self.device)

    def operands(self, name, length):
        torch = self.torch
        rows = lambda: torch.rand(1, length, HEADS, WIDTH, device=self.device, dtype=torch.bfloat16) * 2 - 1
        unit = lambda: torch.nn.functional.normalize(rows(), dim=-1)
        if name == "chunk_gla":
            return {"q": rows(), "k": unit(), "v": rows(), "g": -0.1 * torch.rand_like(rows())}
        per_head = lambda: torch.rand(1, length, HEADS, device=self.device)
        decay = torch.rand(1, length, HEADS, WIDTH, device=self.device) if name == "chunk_kda" else per_head()
        return {"q": unit(), "k": unit(), "v": rows(), "g": -0.1 * decay, "beta": per_head().to(torch.bfloat16)}

    def event_ms(self, work):
        begin, end = (self.torch.cuda.Event(enable_timing=True) for _ in range(2))
        begin.record()
        work()
        end.record()
        end.synchronize()
        return begin.elapsed_time(end)

    def graph_of(self, work):
        """Replays the calls without the host; None where the library cannot be captured."""
        torch = self.torch
        graph = torch.cuda.CUDAGraph()
        try:
            with torch.cuda.graph(graph):
                work()
        except RuntimeError as error:
            print(f"not captured: {error}".splitlines()[0], file=sys.stderr)
            torch.cuda.synchronize()
            return None
        return graph.replay

    def measure(self, name, length):
        torch, function = self.torch, self.functions[name]
        call = lambda operands: function(**operands, output_final_state=True)
        first = self.operands(name, length)
        one = sum(x.numel() * x.element_size() for x in first.values())
        sets = [first] + [self.operands(name, length) for _ in range(min(63, LARGER_THAN_CACHES // one))]
        with torch.no_grad():
            for operands in (sets * 3)[:max(3, len(sets))]:  # chooses its kernels' configurations, warms up
                call(operands)
            torch.cuda.synchronize()
            clear = torch.empty(LARGER_THAN_CACHES, dtype=torch.uint8, device=self.device)
            alone = []
            for i in range(REPEATS):
                clear.zero_()
                alone.append(self.event_ms(lambda: call(sets[i % len(sets)])))
            replay = self.graph_of(lambda: [call(operands) for operands in sets])
            device = None
            if replay:
                replay()
                device = statistics.median(self.event_ms(replay) for _ in range(REPEATS)) / len(sets)
        del replay, sets
        torch.cuda.empty_cache()
        return {"ms": device, "alone_ms": statistics.median(alone)}


def ratio(theirs, our):
    return f"{theirs / our:6.2f}" if theirs and our else "     –"


def number(ms):
    return f"{ms:9.4f}" if ms else "        –"


def table(theirs, runs):
    """`runs`: {operands in memory: [before, after]}"""
    rows = []
    for operands, both in runs.items():
        print(f"\n{operands} operands\n{'':24}{'':>8}  {'device ms':^28}  {'alone ms':^28}  {'host ms':>9}")
        print(f"{'kernel':24}{'length':>8}  {'theirs':>9} {'ours':>9} {'ratio':>6}    {'theirs':>9} {'ours':>9} {'ratio':>6}  {'ours':>9}")
        for kernel, length in both[0]:
            our = {key: max(run[kernel, length][key] for run in both) for key in ("ms", "alone_ms", "call_ms")}
            their = theirs.get((kernel, length), {"ms": None, "alone_ms": None})
            rows.append([kernel, length, operands, their["ms"], our["ms"], their["alone_ms"], our["alone_ms"], our["call_ms"]])
            print(f"{kernel:24}{length:8}  {number(their['ms'])} {number(our['ms'])} {ratio(their['ms'], our['ms'])}    "
                  f"{number(their['alone_ms'])} {number(our['alone_ms'])} {ratio(their['alone_ms'], our['alone_ms'])}  {number(our['call_ms'])}")
    return rows


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    root = pathlib.Path(__file__).resolve().parents[2]
    parser.add_argument("--bench", default=str(root / "build/cuda/device_bench"), help="ours (default: %(default)s)")
    parser.add_argument("--lengths", type=lambda text: [int(word) for word in text.split(",")], default=LENGTHS)
    parser.add_argument("--only", default="", help="kernels with this in their name")
    parser.add_argument("--device", type=int, default=0, help="number of the GPU")
    parser.add_argument("--json", help="write all times to this file")
    arguments = parser.parse_args()
    torch, functions = library()

    before, device = {}, None
    for operands in ("float32", "bfloat16"):
        found, said = ours(arguments.bench, arguments.device, operands, arguments.lengths, arguments.only)
        if found is None and operands == "float32":
            fail(said)
        if found is None:
            print(f"without {operands} operands: {said}", file=sys.stderr)
        else:
            before[operands], device = found, said
    fla = Library(torch, functions, arguments.device)
    theirs = {(kernel, length): fla.measure(name, length) for kernel, name in KERNELS.items() if arguments.only in kernel
              for length in arguments.lengths}
    torch.cuda.empty_cache()
    after = {operands: ours(arguments.bench, arguments.device, operands, arguments.lengths, arguments.only)[0] for operands in before}
    if None in after.values():
        fail("the second run of device_bench failed")

    print(f"ours: {device}; theirs: torch {torch.__version__} on {torch.cuda.get_device_name(arguments.device)}; ratio: theirs / ours")
    rows = table(theirs, {operands: [before[operands], after[operands]] for operands in before})
    if arguments.json:
        measurement.write(arguments.json, measurement.measurement(
            f"Memories beside flash-linear-attention, ms, H = {HEADS}, D = {WIDTH}", shlex.join(sys.argv), device, COLUMNS, rows,
            f"Theirs: torch {torch.__version__}. Ours is the slower of a run before and one after."))


if __name__ == "__main__":
    main()
