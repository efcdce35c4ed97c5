#!/usr/bin/env python3
"""Times this program's tokenizers beside the `tokenizers` package, one thread each, in one run.

    pip install tokenizers
    tests/bench/compare_tokenizers.py --bench build/release/tokenizer_bench --corpus TEXT… [--out tests/bench/results/tokenizers.json]

Measured: loading a tokenizer.json of 250,000 pieces (byte-level BPE, generated), encoding 10 MB of prose with it, and one word of 20,000
letters. tokenizer_bench times this program, which calls what `statescope tokenize` calls; the package is timed in this process.
"""

import argparse
import json
import os
import pathlib
import platform
import shlex
import subprocess
import sys
import tempfile
import time

import measurement

os.environ["TOKENIZERS_PARALLELISM"] = "false"
os.environ["RAYON_NUM_THREADS"] = "1"

PATTERN = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+")

TIMED = {"load_s": "loading tokenizer.json", "encode_whole_s": "encoding as a whole", "encode_lines_s": "encoding line by line",
         "word_s": "a word of 20,000 letters"}


def prose(paths, size):
    """So many bytes of the files, repeated."""
    text = "\n".join(pathlib.Path(path).read_text(encoding="utf-8", errors="ignore") for path in paths)
    repeated = text * (size // max(1, len(text.encode())) + 1)
    return repeated.encode()[:size].decode(errors="ignore")


def byte_alphabet():
    own = [*range(33, 127), *range(161, 173), *range(174, 256)]
    others = [byte for byte in range(256) if byte not in own]
    return {**{byte: chr(byte) for byte in own}, **{byte: chr(256 + i) for i, byte in enumerate(others)}}


def make_tokenizer(path, text, pieces):
    """Byte-level BPE: merges learned from the prose, then merges of letters until there are so many pieces."""
    from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, trainers, Regex
    tokenizer = Tokenizer(models.BPE())
    tokenizer.normalizer = normalizers.NFC()
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.Split(Regex(PATTERN), "isolated"), pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)])
    tokenizer.decoder = decoders.ByteLevel()
    alphabet = sorted(byte_alphabet().values())
    tokenizer.train_from_iterator([text[:4_000_000]], trainers.BpeTrainer(vocab_size=60_000, initial_alphabet=alphabet, show_progress=False))
    made = json.loads(tokenizer.to_str())
    vocab, merges = made["model"]["vocab"], made["model"]["merges"]
    known = list(vocab)
    while len(vocab) < pieces:
        for left in known:
            for right in known[-40:]:
                if left + right not in vocab and len(vocab) < pieces:
                    vocab[left + right] = len(vocab)
                    merges.append([left, right])
    path.write_text(json.dumps(made, ensure_ascii=False), encoding="utf-8")


def best(times, work):
    seconds = []
    for _ in range(times):
        start = time.perf_counter()
        work()
        seconds.append(time.perf_counter() - start)
    return min(seconds)


def measure_package(path, text, word, times):
    from tokenizers import Tokenizer
    load = best(times, lambda: Tokenizer.from_file(str(path)))
    tokenizer = Tokenizer.from_file(str(path))
    lines = text.split("\n")

    def timed(work):
        """Caches begin empty, as in the program."""
        seconds = []
        for _ in range(times):
            one = Tokenizer.from_file(str(path))
            start = time.perf_counter()
            work(one)
            seconds.append(time.perf_counter() - start)
        return min(seconds)

    return {
        "load_s": load,
        "encode_whole_s": timed(lambda one: one.encode(text)),
        "encode_lines_s": timed(lambda one: [one.encode(line) for line in lines]),
        "word_s": timed(lambda one: one.encode(word)),
    }, len(tokenizer.encode(text).ids)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bench", required=True, help="build/release/tokenizer_bench")
    parser.add_argument("--corpus", nargs="+", required=True, help="files of prose")
    parser.add_argument("--megabytes", type=int, default=10)
    parser.add_argument("--pieces", type=int, default=250_000)
    parser.add_argument("--times", type=int, default=3)
    parser.add_argument("--out", help="write the results to this JSON")
    arguments = parser.parse_args()
    try:
        import tokenizers
    except ImportError:
        print("skipped: the tokenizers package is not installed")
        return 0
    text = prose(arguments.corpus, arguments.megabytes * 1_000_000)
    word, x = "", 1
    for _ in range(20_000):
        x = (1664525 * x + 1013904223) % 2**32
        word += "abcdefghijklmnopqrstuvwxyz"[(x >> 16) % 26]
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "tokenizer.json"
        make_tokenizer(path, text, arguments.pieces)
        (pathlib.Path(folder) / "text").write_text(text, encoding="utf-8")
        (pathlib.Path(folder) / "word").write_text(word)
        theirs, count = measure_package(path, text, word, arguments.times)
        ours = json.loads(subprocess.run([arguments.bench, str(path), folder + "/text", folder + "/word", str(arguments.times)],
                                         check=True, capture_output=True, text=True).stdout)
    assert ours.pop("tokens") == count, "the two do not agree"
    rows = [[what, round(theirs[key], 4), round(ours[key], 4), round(theirs[key] / ours[key], 2)] for key, what in TIMED.items()]
    result = measurement.measurement(
        f"Tokenizers beside the tokenizers package {tokenizers.__version__}: {arguments.pieces:,} pieces, {arguments.megabytes} MB of prose ({count:,} tokens)",
        shlex.join(sys.argv), platform.machine(), ["what", "theirs s", "ours s", "theirs / ours"], rows,
        f"One thread each, least of {arguments.times} runs.")
    print(measurement.text_of(result), end="")
    if arguments.out:
        measurement.write(arguments.out, result)
    return 0


if __name__ == "__main__":
    sys.exit(main())
