"""The kinds of hostile input: each function makes the files of one in a folder, and says the words of the command line that reads them."""

import collections
import json
import pathlib
import shutil
import subprocess

from damage import changed_json, damaged

ROOT = pathlib.Path(__file__).resolve().parents[3]
GOLDEN, ASSETS, CORPUS = ROOT / "tests/golden", ROOT / "assets", ROOT / "tests/fuzz/corpus"

BAD_TEXTS = [
    "",
    " ",
    "\n",
    "-",
    "--",
    ".",
    "..",
    "/",
    "/dev/zero",
    "/dev/null",
    "/proc/self/mem",
    "nan",
    "inf",
    "-inf",
    "1e400",
    "-1",
    "0",
    "1",
    "2",
    "0x10",
    "1,2",
    "1..2",
    "9223372036854775807",
    "9223372036854775808",
    "-9223372036854775809",
    "1e20",
    "0.5",
    "%s%n",
    "{}",
    "{0}",
    "[]",
    '{"a": 1}',
    "null",
    "true",
    "\x1b[31mred",
    "a\tb",
    "\u202e",
    "\u00e4\u4e2d\U0001f600",
    "a" * 5000,
    "../" * 40 + "etc/passwd",
    "http://127.0.0.1:9/x",
    "file:a",
    "a.h5",
    "a/b/c",
    "out.pdf",
    "$(touch hit)",
    "`touch hit`",
    "; touch hit",
    "-o",
    "--force",
    "zero partition 1 at 2",
    "scale",
]


class Seeds:
    """What is damaged: small, whole files, made once."""

    def __init__(self, program, folder):
        self.program, self.folder = program, folder
        self.ids = folder / "ids.txt"
        self.ids.write_text("1 2 3 4 5 6 7 8")
        self.models = sorted(
            path for path in (GOLDEN / "models").iterdir() if (path / "config.json").exists() and (path / "model.safetensors").exists()
        )
        self.small = [path for path in self.models if sum(file.stat().st_size for file in path.iterdir()) < 600_000]
        for name in ("gla", "sse_gla_n4k1", "gated_deltanet", "mamba"):
            self.make("convert", GOLDEN / "models" / name, folder / f"{name}.h5")
        gla = folder / "gla.h5"
        self.make("run", gla, "--ids", self.ids, "--generate", "3", "--session", folder / "run.scope")
        self.make("run", gla, "--ids", self.ids, "--generate", "0", "--dump", folder / "dump.h5")
        for ending in ("pdf", "svg", "png"):
            self.make("figure", "state", gla, "--ids", self.ids, "--generate", "0", "-o", folder / f"state.{ending}", "--dpi", "60")
        self.make(
            "eval",
            ASSETS / "checkpoints/niah/niah-gla.h5",
            "--task",
            "niah",
            "--length",
            "64,128",
            "--needles",
            "2,4",
            "--samples",
            "4",
            "--json",
            folder / "scores.json",
        )
        self.make("dataset", "niah", "--length", "64", "--needles", "2", "--samples", "2", "-o", folder / "niah.jsonl")

    def make(self, *words):
        subprocess.run([self.program, *map(str, words)], check=True, capture_output=True, cwd=self.folder)


def files_of(folder):
    return [
        path
        for path in sorted(folder.iterdir())
        if path.is_file() and path.name not in ("io.safetensors", "check.json", "meta.json", "cases.jsonl", "decode.jsonl")
    ]


def copied(folder, to, but=None, data=b""):
    to.mkdir()
    for path in files_of(folder):
        (to / path.name).write_bytes(data) if path.name == but else shutil.copy(path, to / path.name)


def checkpoint(chance, seeds, at):
    """An .h5 file."""
    source = seeds.folder / (chance.choice(("gla", "sse_gla_n4k1", "gated_deltanet", "mamba")) + ".h5")
    (at / "in.h5").write_bytes(damaged(chance, source.read_bytes()))
    return chance.choice(
        (
            ["model", "in.h5"],
            ["run", "in.h5", "--ids", seeds.ids, "--generate", "2"],
            ["convert", "in.h5", "out"],
            ["run", "in.h5", "--ids", seeds.ids, "--generate", "1", "--dump", "out.h5"],
        )
    )


def edited_checkpoint(chance, seeds, at):
    """An .h5 file that is whole, with an attribute, a tensor or its config exchanged."""
    import h5py
    import numpy as np

    shutil.copy(seeds.folder / (chance.choice(("gla", "sse_gla_n4k1", "gated_deltanet", "mamba")) + ".h5"), at / "in.h5")
    with h5py.File(at / "in.h5", "r+") as file:
        name = chance.choice(sorted(file["tensors"]))
        what = chance.randrange(7)
        if what == 0:
            file.attrs["config"] = changed_json(
                chance, file.attrs["config"].encode() if isinstance(file.attrs["config"], str) else bytes(file.attrs["config"])
            ).decode()
        elif what == 1:
            key = chance.choice(sorted(file.attrs))
            del file.attrs[key]
            file.attrs[key] = chance.choice((1, -1.5, "", "x" * 3000, np.zeros((2, 2)), b"\xff\xfe", np.array([], dtype="f4")))
        elif what == 2:
            values = file["tensors"][name][()].astype("f4")
            values.flat[chance.randrange(values.size)] = chance.choice((np.nan, np.inf, -np.inf, 3e38, -3e38))
            del file["tensors"][name]
            file["tensors"][name] = values
        else:
            shape = file["tensors"][name].shape
            del file["tensors"][name]
            if what == 3:
                file["tensors"][name] = np.zeros(chance.choice(((), (0,), (1,), shape + (1,), shape[::-1], tuple(n + 1 for n in shape))), "f4")
            elif what == 4:
                file["tensors"][name] = np.zeros(shape, chance.choice(("i4", "u1", "f8", "f2", "S3", "complex64", "bool")))
            elif what == 5:
                file["tensors"][name] = h5py.SoftLink(chance.choice(("/tensors", "/nothing", f"/tensors/{name}")))
            else:
                file["tensors"].create_group(name)
    return chance.choice(
        (
            ["model", "in.h5"],
            ["run", "in.h5", "--ids", seeds.ids, "--generate", "2"],
            ["convert", "in.h5", "out"],
            ["inspect", "in.h5", "--ids", seeds.ids],
        )
    )


def config(chance, seeds, at):
    """The config.json of a folder."""
    source = chance.choice(seeds.small)
    copied(source, at / "in", "config.json", damaged(chance, (source / "config.json").read_bytes(), True))
    return chance.choice((["model", "in"], ["run", "in", "--ids", seeds.ids, "--generate", "1"], ["convert", "in", "out.h5"]))


def safetensors(chance, seeds, at):
    """A file of tensors of a folder, or its header."""
    source = chance.choice(seeds.small)
    data = (source / "model.safetensors").read_bytes()
    length = int.from_bytes(data[:8], "little")
    if chance.random() < 0.5:
        header = changed_json(chance, data[8 : 8 + length])
        data = chance.choice((len(header), len(header), length)).to_bytes(8, "little") + header + data[8 + length :]
    else:
        data = damaged(chance, data)
    copied(source, at / "in", "model.safetensors", data)
    return chance.choice((["model", "in"], ["run", "in", "--ids", seeds.ids, "--generate", "1"], ["convert", "in", "out.h5"]))


def index(chance, seeds, at):
    """A folder whose tensors are shared out over files, by an index."""
    source = chance.choice(seeds.small)
    copied(source, at / "in")
    (at / "in/model.safetensors").rename(at / "in/model-00001-of-00001.safetensors")
    data = (at / "in/model-00001-of-00001.safetensors").read_bytes()
    names = [name for name in json.loads(data[8 : 8 + int.from_bytes(data[:8], "little")]) if name != "__metadata__"]
    whole = {"metadata": {"total_size": len(data)}, "weight_map": {name: "model-00001-of-00001.safetensors" for name in names}}
    (at / "in/model.safetensors.index.json").write_bytes(damaged(chance, json.dumps(whole).encode(), True))
    return chance.choice((["model", "in"], ["convert", "in", "out.h5"]))


def tokenizer(chance, seeds, at):
    """A vocabulary of every kind."""
    source = chance.choice(sorted(path for path in (GOLDEN / "tokenizers").iterdir() if path.is_dir()))
    path = chance.choice(files_of(source))
    copied(source, at / "in", path.name, damaged(chance, path.read_bytes(), path.suffix == ".json"))
    return ["tokenize", "in", "--text", chance.choice(("The memory of 4177", "\u00e4\u4e2d\U0001f600 <s> </s>", "a" * 3000, "", "\x1b[31m"))]


def chat(chance, seeds, at):
    """A chat template, or what goes into one."""
    source = chance.choice(
        [
            path
            for path in sorted((GOLDEN / "chat").rglob("*"))
            if path.suffix in (".json", ".jinja") and path.name != "cases.jsonl" and path.stat().st_size < 200_000
        ]
    )
    (at / "in").mkdir()
    name = source.name if source.name in ("tokenizer_config.json", "chat_template.jinja", "chat_template.json") else "chat_template.jinja"
    (at / "in" / name).write_bytes(damaged(chance, source.read_bytes(), source.suffix == ".json"))
    line = json.dumps({"messages": [{"role": "user", "content": "What is left?"}], "add_generation_prompt": True}).encode()
    (at / "stdin").write_bytes(line if chance.random() < 0.5 else damaged(chance, line, True))
    return ["chat", "in"]


def session(chance, seeds, at):
    """A recorded run: its session or its recording."""
    shutil.copy(seeds.folder / "gla.h5", at / "gla.h5")
    hurt = chance.choice(("run.scope", "run.scope.recording"))
    for name in ("run.scope", "run.scope.recording"):
        data = (seeds.folder / name).read_bytes()
        (at / name).write_bytes(damaged(chance, data, name == "run.scope") if name == hurt else data)
    return chance.choice(
        (
            ["run", "--session", "run.scope", "--generate", "1"],
            ["run", "--session", "run.scope", "--generate", "0", "--do", "zero state at 2"],
            ["run", "--session", "run.scope", "--generate", "0", "--branch", "0"],
            ["--screenshot", "out.png", "--size", "900x600", "run.scope"],
        )
    )


def spec(chance, seeds, at):
    """The spec of a figure, a film or a page."""
    shipped = [ASSETS / f"figures/{name}.json" for name in ("entropy", "mqar", "recall", "luck", "speed")]
    source = chance.choice(shipped + [path for path in sorted((CORPUS / "figure").iterdir()) if path.name != "grid"])  # that takes minutes
    whole = {
        "size": "double",
        "panels": [
            {
                "view": chance.choice(("state", "decay", "writes", "similarity", "spectrum", "timeline")),
                "checkpoint": "gla.h5",
                "prompt": {"ids": [1, 2, 3, 4]},
                "generate": 0,
                "layer": 0,
                "head": 1,
            }
        ],
    }
    shutil.copy(seeds.folder / "gla.h5", at / "gla.h5")
    is_own = chance.random() < 0.8
    data = json.dumps(whole).encode() if is_own else source.read_bytes()
    (at / "in.json").write_bytes(damaged(chance, data, True))
    ways = [["figure", "--spec", "in.json", "-o", "out.svg"], ["figure", "--spec", "in.json", "-o", "out.pdf", "--caption", "out.txt", "--data", "out.csv"]]
    return chance.choice([*ways, ["page", "in.json", "-o", "out.html"]] if is_own else ways)  # a page of a shipped spec takes minutes


def figure(chance, seeds, at):
    """A figure from which another is made."""
    ending = chance.choice(("pdf", "svg", "png"))
    (at / f"in.{ending}").write_bytes(damaged(chance, (seeds.folder / f"state.{ending}").read_bytes()))
    shutil.copy(seeds.folder / "gla.h5", at / "gla.h5")
    return ["figure", "--from", f"in.{ending}", "-o", "out.svg"]


def batch(chance, seeds, at):
    """A list of figures to make."""
    shutil.copy(seeds.folder / "gla.h5", at / "gla.h5")
    (at / "spec.json").write_text(json.dumps({"panels": [{"view": "state", "checkpoint": "gla.h5", "prompt": {"ids": [1, 2, 3]}, "generate": 0}]}))
    whole = {"figures": ["spec.json"], "output": "made", "format": "svg", "checkpoints": ["gla.h5"]}
    (at / "in.json").write_bytes(damaged(chance, json.dumps(whole).encode(), True))
    return ["batch", "in.json", "--processes", "1"]


def data(chance, seeds, at):
    """Scores, times and logs that charts read."""
    chart = chance.choice(("speed", "recall"))
    source = ASSETS / "figures/data/sse-cpu.json" if chart == "speed" else seeds.folder / "scores.json"
    if chance.random() < 0.5:
        (at / "in.csv").write_bytes(
            damaged(chance, b"step,loss,model\n" + b"".join(b"%d,%f,%s\n" % (i, 1 / (i + 1), b"ab"[i % 2 : i % 2 + 1]) for i in range(40)))
        )
        panel = {"chart": "columns", "data": ["in.csv"], "y": ["loss"], "by": "model"}
    else:
        (at / "in.json").write_bytes(damaged(chance, source.read_bytes(), True))
        panel = {"chart": chart, "data": ["in.json"]} | ({"length": 64, "load": 2} if chart == "recall" else {})
    (at / "spec.json").write_text(json.dumps({"panels": [panel]}))
    return ["figure", "--spec", "spec.json", "-o", "out.svg"]


def prompt(chance, seeds, at):
    """A prompt, as text, JSON, lines of JSON and ids."""
    niah, needles = ASSETS / "checkpoints/niah/niah-gla.h5", ASSETS / "prompts/needle.json"
    kind = chance.randrange(6)
    source = (
        seeds.ids,
        seeds.folder / "niah.jsonl",
        seeds.folder / "niah.jsonl",
        needles,
        needles,
        chance.choice(sorted((CORPUS / "prompt").iterdir()) + sorted((CORPUS / "tasks").iterdir())),
    )[kind]
    name = "in" + (chance.choice((".json", ".jsonl", ".txt", "")) if kind == 5 else source.suffix)
    (at / name).write_bytes(damaged(chance, source.read_bytes(), True))
    return (
        ["run", niah, "--ids", name, "--generate", "1"],
        ["eval", niah, "--prompt", name],
        ["run", niah, "--prompt", name],
        ["needle", niah, "--prompt", name],
        ["run", niah, "--prompt", name],
        chance.choice((["run", niah, "--prompt", name], ["eval", ASSETS / "checkpoints/prose/prose-gla.h5", "--prompt", name, "--reply", "1"])),
    )[kind]


def lesson(chance, seeds, at):
    """A lesson."""
    whole = (
        "---\ntitle: A <small> lesson\nminutes: 1\ncheckpoint: niah-sse-gla-n4k1.h5\ntext: the code of hanna is 4 1 7 7\nviews: state\n---\n"
        "## One\ntoken: 3\nplay: 1\ncaption: the rows\nlayer: 1\nhead: 1\n\nThere are **{length}** tokens.\n\n- a\n- b\n\n"
        "predict: How many layers?\n- few [.. 3]\n- more [3 ..]\nanswer: layers\ntoken: 5\n\nIt has {layers}.\n"
        "## Two\nviews: state, routing\nbeside: niah-gla.h5\n\nlast\n"
    )
    (at / "in.md").write_bytes(damaged(chance, whole.encode()))
    return ["page", "in.md", "-o", "out.html", "--max-size", "3"]


def training(chance, seeds, at):
    """What a trainer writes beside its checkpoints."""
    source = chance.choice(seeds.small)
    copied(source, at / "in")
    (at / "in/trainer_state.json").write_bytes(damaged(chance, (CORPUS / "training/state").read_bytes().split(b"\0")[0], True))
    return ["inspect", "in", "--ids", seeds.ids]


def text(chance, seeds, at):
    """A text, on standard input or as an option."""
    words = chance.choice(
        (
            b"the code of hanna is 4 1 7 7 .",
            b"",
            chance.randbytes(200),
            b"\0" * 50,
            b"\xff" * 50,
            "\u202e\u200b\ufeff\u4e2d".encode() * 20,
            b"a " * 3000,
            b"\x1b[2J\r\n",
        )
    )
    (at / "stdin").write_bytes(damaged(chance, words))
    niah = ASSETS / "checkpoints" / chance.choice(("niah/niah-gla.h5", "prose/prose-gla.h5"))
    as_option = damaged(chance, words).replace(b"\0", b"")[:3000]
    return chance.choice(
        (
            ["run", niah, "--prompt", "-", "--generate", "1"],
            ["run", niah, "--text", as_option, "--generate", "1"],
            ["tokenize", niah],
            ["tokenize", niah, "--text", as_option],
            ["run", niah, "--ids", "-", "--generate", "1"],
            ["intervene", niah, "--text", "the code of hanna is", "--do", as_option],
        )
    )


OPTIONS = collections.defaultdict(list)  # of each command, its long options


def read_options(program):
    listed = subprocess.run([program, "completion", "bash"], capture_output=True, text=True, check=True).stdout
    commands = (
        "run",
        "convert",
        "tokenize",
        "eval",
        "dataset niah",
        "dataset mqar",
        "dataset copy",
        "inspect",
        "needle",
        "model",
        "observe",
        "history",
        "intervene",
        "figure",
        "page",
        "film",
        "batch",
        "check",
        "chat",
        "bench",
        "manual",
        "completion",
        "",
    )
    assert listed
    for command in commands:
        for line in subprocess.run([program, *command.split(), "--help"], capture_output=True, text=True, check=True).stdout.splitlines():
            found = line.strip().split(" ")[0]
            words = [word for word in found.split(",") if word.startswith("--")]
            OPTIONS[command] += [word for word in words if word != "--watch"]  # which waits until it is told to end


def options(chance, seeds, at):
    """Words of the command line."""
    gla = seeds.folder / "gla.h5"
    begun = {
        "run": [gla, "--ids", seeds.ids],
        "convert": [gla, "out.h5"],
        "tokenize": [gla, "--text", "a"],
        "eval": [gla, "--samples", "1", "--length", "32"],
        "inspect": [gla, "--ids", seeds.ids],
        "needle": [gla, "--prompt", ASSETS / "prompts/needle.json"],
        "model": [gla],
        "observe": [gla, "--ids", seeds.ids],
        "history": [gla, "--ids", seeds.ids],
        "intervene": [gla, "--ids", seeds.ids, "--do", "zero state at 2"],
        "figure": ["state", gla, "--ids", seeds.ids, "-o", "out.svg"],
        "page": [gla, "--ids", seeds.ids, "-o", "out.html"],
        "film": ["state", gla, "--ids", seeds.ids, "-o", "out.mp4"],
        "batch": ["in.json"],
        "check": [gla, "--ids", seeds.ids],
        "chat": [GOLDEN / "chat/qwen35"],
        "bench": ["--only", "nothing of that name"],
        "": ["--screenshot", "out.png", "--size", "640x400", gla, "--ids", seeds.ids],
    }
    command = chance.choice(sorted(OPTIONS))
    words = [*command.split(), *begun.get(command, [])]
    for _ in range(chance.choice((1, 1, 2, 3))):
        more = [chance.choice(OPTIONS[command])] + [chance.choice(BAD_TEXTS) for _ in range(chance.choice((0, 1, 1, 1, 2)))]
        if chance.random() < 0.3:
            more = [chance.choice(BAD_TEXTS)]
        if chance.random() < 0.1:
            more = [more[0] + "=" + chance.choice(BAD_TEXTS)]
        where = chance.randrange(len(words) + 1) if chance.random() < 0.3 else len(words)
        words[where:where] = more
    if chance.random() < 0.1 and len(words) > 1:
        del words[chance.randrange(len(words))]
    return words


KINDS = {
    "checkpoints (.h5), bytes": (checkpoint, 16),
    "checkpoints (.h5), edited": (edited_checkpoint, 10),
    "configs": (config, 14),
    "safetensors": (safetensors, 12),
    "indices of shards": (index, 5),
    "tokenizers": (tokenizer, 10),
    "chat templates": (chat, 5),
    "recordings": (session, 8),
    "specs of figures": (spec, 10),
    "figures to make again": (figure, 5),
    "lists of figures": (batch, 3),
    "scores, times, logs": (data, 4),
    "prompts": (prompt, 8),
    "lessons": (lesson, 3),
    "trainings": (training, 3),
    "texts": (text, 6),
    "options": (options, 18),
}
