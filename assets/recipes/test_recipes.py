"""Tests of the recipes against plain loops (test_memories.py) and against statescope: python3 test_recipes.py [--statescope PATH] [unittest's arguments]

Exit status 77: a package is missing, nothing was tested.
"""

import argparse
import json
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

try:
    import h5py
    import torch

    import score
    import search
    import tasks
    import train
    import zoo
    from models import Model
    from test_memories import Attention, Memories  # whose tests run with these
except ModuleNotFoundError as missing:
    print(f"the recipes are not tested: {sys.executable} has no {missing.name} (README.md says what they need)", file=sys.stderr)
    sys.exit(77)

HERE = Path(__file__).resolve().parent
STATESCOPE = HERE.parent.parent / "build" / "release" / "statescope"
SPLITS = {"evaluation": tasks.EVALUATION, "training": tasks.TRAINING}


def statescope(*arguments):
    """What the program prints"""
    done = subprocess.run([str(STATESCOPE), *map(str, arguments)], capture_output=True, text=True)
    if done.returncode:
        raise AssertionError(f"statescope {' '.join(map(str, arguments))}: {done.stderr.strip()}")
    return done.stdout


class WithStatescope(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        if not STATESCOPE.exists():
            raise unittest.SkipTest(f"no program at {STATESCOPE}; build it or name it with --statescope")

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)


# ---- the tasks: tasks.py draws what datasets/ draws -------------------------------------------------------------------------------------


def word_ids(vocabulary):
    ids = json.loads((tasks.TASKS / vocabulary).read_text())
    return lambda text: [ids[word] for word in text.decode().split()]


def asked_tokens(record, ids_of):
    """Of each question the tokens of its answer and after which position each is to be predicted"""
    text, questions = record["text"].encode(), []
    for question in record["questions"]:
        before = len(ids_of(text[:question["given"][0] if question["given"] else question["asked"][1]]))
        questions.append([(before - 1 + i, token) for i, token in enumerate(ids_of(question["answer"].encode()))])
    return questions


class Generators(WithStatescope):
    SAMPLES = 60

    def compare(self, draw, ids_of, *arguments):
        """Ids token for token, and what is asked where, for both splits and two seeds"""
        for split in SPLITS:
            for seed in (1, 2 ** 32 - 1):
                asked = *arguments, "--samples", self.SAMPLES, "--seed", seed, "--split", split
                with self.subTest(" ".join(map(str, asked))):
                    records = [json.loads(line) for line in statescope("dataset", *asked, "-o", "-").splitlines()]
                    batch = draw(tasks.Draws(0, self.SAMPLES, seed, SPLITS[split]))
                    self.assertEqual(batch.ids.tolist(), [ids_of(record["text"].encode()) for record in records])
                    for i, record in enumerate(records):
                        questions = [[] for _ in record["questions"]]
                        for position in (batch.answer[i] >= 0).nonzero()[:, 0].tolist():
                            questions[batch.question[i, position]].append((position, int(batch.answer[i, position])))
                        self.assertEqual(questions, asked_tokens(record, ids_of))

    def test_needles(self):
        ids_of = word_ids("needle-tokenizer.json")
        # (length, keys, values, queries, depth). A needle has 9 words, a question 10 and a stop between two: 19, 48, 65 leave no filler.
        for length, keys, values, queries, depth in ((64, 1, 1, 1, None), (256, 8, 1, 4, None), (512, 4, 3, 2, None), (300, 6, 2, 1, 50),
                                                     (300, 6, 2, 1, 100), (300, 6, 1, 1, 0), (19, 1, 1, 1, None), (20, 1, 1, 1, None),
                                                     (48, 3, 1, 2, None), (49, 3, 1, 2, None), (65, 2, 2, 2, None),
                                                     (1024, 64, 1, 1, None)):
            given = [] if depth is None else ["--depth", depth]
            self.compare(lambda draws: tasks.needles(draws, length, keys, values, queries, depth), ids_of, "niah", "--length", length,
                         "--needles", keys, "--values", values, "--queries", queries, *given)

    def test_needles_in_prose(self):
        haystacks = {split: tasks.ProseNeedles(tasks.prose(split)) for split in SPLITS.values()}
        for length, keys, queries, characters, depth in ((512, 1, 1, 7, None), (1024, 4, 4, 7, None), (2048, 8, 1, 4, 50),
                                                         (700, 18, 1, 4, None)):
            given = [] if depth is None else ["--depth", depth]
            self.compare(lambda draws: haystacks[draws.split](draws, length, keys, queries, characters, depth), list,
                         "niah", "--haystack", "prose", "--value", "number" if characters == 7 else "code", "--length", length,
                         "--needles", keys, "--queries", queries, *given)

    def test_recall(self):
        ids_of = word_ids("mqar-tokenizer.json")
        for length, pairs, filler in ((64, 8, "noise"), (65, 16, "zero"), (512, 64, "noise"), (1024, 256, "noise"), (4, 1, "noise"),
                                      (5, 1, "zero"), (32, 8, "noise")):
            self.compare(lambda draws: tasks.recall(draws, length, pairs, filler == "noise"), ids_of, "mqar", "--length", length,
                         "--pairs", pairs, "--filler", filler)

    def test_copying(self):
        for length in (3, 511):
            self.compare(lambda draws: tasks.copying(draws, length), word_ids("mqar-tokenizer.json"), "copy", "--length", length)

    def test_philox(self):
        """Random123's known answers: zeros, and the digits of π, whose example has more than 32 bits"""
        for index, stream, example, seed, split, bits in (
                (0, 0, 0, 0, 0, 0x6627e8d5),
                (0x243f6a88, 0x85a308d3, 0x0370734413198a2e, 0xa4093822, 0x299f31d0, 0xd16cfe09)):
            self.assertEqual(int(tasks.philox(torch.tensor(example), stream, torch.tensor(index), seed, split)), bits)

    def test_what_does_not_fit_is_refused(self):
        draws = tasks.Draws(0, 1, 1, tasks.EVALUATION)
        for refused in (lambda: tasks.needles(draws, 18), lambda: tasks.recall(draws, 31, pairs=8),
                        lambda: tasks.ProseNeedles(tasks.prose(tasks.EVALUATION))(draws, 64)):
            self.assertRaisesRegex(ValueError, "not fit|the length is", refused)


class Splits(unittest.TestCase):
    """Training and evaluation share no example and no prose, whatever the seeds."""

    def test_no_example_is_trained_on_and_scored(self):
        for task, recipe in train.RECIPES.items():
            text = tasks.ProseNeedles(tasks.prose(tasks.EVALUATION)) if task == "prose" else None
            for cell in score.CELLS[task][:2]:
                with self.subTest(f"{task} {cell}"):
                    scored = score.batch_of(task, cell, 0, 256, "cpu", text).ids
                    batches = train.Tasks(task, recipe, score.SEED, "cpu")
                    phase = train.Phase(cell["length"], 0, (cell.get("needles") or cell["pairs"],))
                    steps = max(1, 256 * cell["length"] // recipe.tokens)
                    blocks = [batches.block(phase, steps)[0].flatten(0, 1) for _ in range(2)]
                    trained = set(map(tuple, torch.cat(blocks).tolist()))
                    self.assertEqual(len(trained), sum(map(len, blocks)), "an example was drawn twice")
                    self.assertTrue(trained.isdisjoint(map(tuple, scored.tolist())))

    def test_no_prose_is_trained_on_and_scored(self):
        trained, scored = tasks.prose(tasks.TRAINING), tasks.prose(tasks.EVALUATION)
        width = 100
        shared = [at for at in range(0, len(scored) - width, width) if scored[at:at + width] in trained]
        self.assertEqual([scored[at:at + width] for at in shared], [])
        self.assertGreater(len(scored), len(trained) // 12)

    def test_training_asks_less_where_names_are_long(self):
        """Of seed 3 one example among the first 118,784 with three needles does not hold three questions in 256 bytes."""
        recipe = train.RECIPES["prose"]
        batches = train.Tasks("prose", recipe, 3, "cpu")
        for block, questions in ((27, 3), (28, 2)):
            batches.next_example = block * train.Tasks.BLOCK * (recipe.tokens // 256)
            is_answer = batches.block(train.Phase(256, 0, (3,)), train.Tasks.BLOCK)[2]
            self.assertTrue(bool((is_answer.sum(-1) == 4 * questions).all()))


# ---- the models: what is trained here is what statescope reads --------------------------------------------------------------------------


def random_model(family, size):
    """A model in which nothing is neutral: matrices twice as large as at the start of training, everything else moved away from it"""
    torch.manual_seed(3)
    config = zoo.make_config(family, size)
    model = Model(config)
    with torch.no_grad():
        for p in model.parameters():
            p.mul_(2) if p.dim() > 1 else p.add_(0.3 * torch.randn_like(p))
    train.round_weights(model)
    return model, config


class Models(WithStatescope):
    def test_logits(self):
        for family in zoo.FAMILIES:
            model, config = random_model(family, "niah")
            train.save(model, config, train.RECIPES["niah"], self.folder / "model", {})
            for T in (1, 150):
                with self.subTest(f"{family} T={T}"):
                    ids = torch.randint(config["vocab_size"], (1, T))
                    (self.folder / "ids").write_text(" ".join(map(str, ids[0].tolist())))
                    statescope("run", self.folder / "model", "--ids", self.folder / "ids", "--generate", 0, "--force",
                               "--dump", self.folder / "run.h5")
                    with torch.no_grad():
                        mine = model(ids)[0]
                    with h5py.File(self.folder / "run.h5") as file:
                        theirs = torch.from_numpy(file["logits"][:])
                    self.assertEqual(theirs.shape, mine.shape)
                    self.assertLessEqual(float((theirs - mine).abs().max() / mine.abs().max()), 1e-4)

    def test_every_family_of_a_size_has_as_many_parameters(self):
        for size in zoo.SIZES:
            counts = {family: zoo.count(zoo.make_config(family, size)) for family in zoo.FAMILIES}
            with self.subTest(f"{size} {counts}"):
                self.assertLessEqual(max(counts.values()), 1.05 * min(counts.values()))


# ---- training and scores ----------------------------------------------------------------------------------------------------------------


class Scores(WithStatescope):
    """score.py and `statescope eval` count the same."""

    def eval_cells(self, checkpoint, cells, samples):
        (self.folder / "grid.json").write_text(json.dumps(cells))
        statescope("eval", checkpoint, "--grid", self.folder / "grid.json", "--samples", samples, "--json", self.folder / "scores.json",
                   "--force")
        return json.loads((self.folder / "scores.json").read_text())["cells"]

    def compare(self, mine, theirs):
        self.assertEqual(len(mine), len(theirs))
        for a, b in zip(mine, theirs):
            with self.subTest(f"{b['task']} {b['length']}"):
                self.assertEqual(round(a["exact"] * b["questions"], 3), round(b["exact"] * b["questions"], 3))
                # Close enough to tell a checkpoint's scores from those of the weights before they were rounded.
                for key in ("exact", "low", "high", "nll"):
                    self.assertAlmostEqual(a[key], b[key], delta=2e-5)
                self.assertEqual(len(a["tokens"]), len(b["tokens"]))
                for x, y in zip(a["tokens"], b["tokens"]):
                    self.assertAlmostEqual(x, y, delta=2e-5)

    def test_scores_of_random_models(self):
        for task in train.RECIPES:
            model, config = random_model("gla", task)
            train.save(model, config, train.RECIPES[task], self.folder / task, {})
            for samples in (1, 6):
                mine = score.score(model, task, samples, "cpu", most_tokens=4096)
                self.compare(mine, self.eval_cells(self.folder / task, score.CELLS[task], samples))

    def test_bits_per_byte_of_text(self):
        model, config = random_model("gla", "prose")
        train.save(model, config, train.RECIPES["prose"], self.folder / "model", {})
        cells = self.eval_cells(self.folder / "model", [{"task": "text", "length": 300}], 20)
        self.assertAlmostEqual(score.score_text(model, "cpu", length=300, windows=20), cells[0]["bits_per_byte"], delta=1e-3)

    def test_a_model_is_trained_converted_and_scored(self):
        folder, samples = self.folder / "mqar-gla", 20
        subprocess.run([sys.executable, HERE / "train.py", "--task", "mqar", "--family", "gla", "--out", folder, "--device", "cpu",
                        "--recipe", "tokens=1024", "--recipe", "warmup=25", "--recipe", "phases=[[64, 200, [2, 4]], [128, 100, [4]]]", "--share", "0.8",
                        "--samples", str(samples)], check=True, stdout=subprocess.DEVNULL)
        losses = [float(line.split(",")[2]) for line in (folder / "provenance" / "log.csv").read_text().splitlines()[1:]]
        self.assertLess(losses[-1], losses[0] - 0.3, losses)

        statescope("convert", folder, self.folder / "model.h5")
        with h5py.File(self.folder / "model.h5") as file:
            inside = {name: bytes(data[:]) for name, data in file["provenance"].items()}
        self.assertEqual(inside, {path.name: path.read_bytes() for path in (folder / "provenance").iterdir()})
        made = json.loads(inside["recipe.json"])
        self.assertEqual((made["task"], made["family"], made["split"], made["steps"]), ("mqar", "gla", "training", 240))
        self.assertEqual(made["tokens"], 240 * 1024)
        mine = json.loads(inside["scores.json"])["cells"]
        self.compare(mine, self.eval_cells(self.folder / "model.h5", score.CELLS["mqar"], samples))


class Stopped(Exception):
    pass


class Unfinished(unittest.TestCase):
    """A training that was stopped goes on where it was."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)

    def train(self, name, stop_after=None, recipe=None):
        changes = {"tokens": 256, "warmup": 10, "dropout": 0.1, "phases": [[64, 70, [2, 4]], [128, 70, [2, 4]]], **(recipe or {})}
        lines = []

        def say(line):
            lines.append(line)
            if len(lines) == stop_after:
                raise Stopped

        model = train.train("mqar", "gla", 3, self.folder / name, "cpu", recipe_changes=changes, say=say, keep_every=0.0)[0]
        return lines, {name: value.clone() for name, value in model.state_dict().items()}

    def test_it_ends_with_the_same_numbers(self):
        lines, weights = self.train("whole")
        for stop_after in (1, 2, 3, len(lines)):
            with self.subTest(stop_after=stop_after):
                with self.assertRaises(Stopped):
                    self.train(f"stopped-{stop_after}", stop_after)
                self.assertFalse((self.folder / f"stopped-{stop_after}").exists())
                _, resumed = self.train(f"stopped-{stop_after}")
                self.assertTrue(all(torch.equal(weights[name], value) for name, value in resumed.items()))
                logs = [(self.folder / name / "provenance" / "log.csv").read_text().splitlines() for name in ("whole", f"stopped-{stop_after}")]
                self.assertEqual(*[[line.split(",")[:4] for line in log] for log in logs])

    def test_the_state_of_another_training_is_refused(self):
        with self.assertRaises(Stopped):
            self.train("model", stop_after=2)
        with self.assertRaisesRegex(SystemExit, "another recipe"):
            self.train("model", recipe={"balance": 0.5})


class Zoo(unittest.TestCase):
    def test_scores_of_all_trainings_are_laid_out_as_those_of_eval(self):
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            for training, exact in (("mqar-gla", 0.25), ("mqar-gla-seed2", 0.5), ("mqar-sla-gla-seed3", 0.125)):
                (folder / training / "provenance").mkdir(parents=True)
                cell = {"task": "mqar", "length": 256, "pairs": 64, "samples": 500, "exact": exact, "low": 0, "high": 1, "tokens": [exact], "nll": 1.0}
                (folder / training / "provenance" / "scores.json").write_text(json.dumps({"cells": [cell]}))
            (folder / "mqar-gla-step1000").mkdir()
            (folder / "mqar-gla.log").write_text("")
            zoo.write_scores([cell for family in zoo.FAMILIES for cell in zoo.cells_of(folder, "mqar", family)], folder / "mqar.json")
            written = json.loads((folder / "mqar.json").read_text())
            shipped = json.loads((HERE.parent / "scores" / "mqar.json").read_text())
            self.assertEqual({key: written[key] for key in ("format", "version", "split")}, {key: shipped[key] for key in ("format", "version", "split")})
            self.assertEqual([(cell["checkpoint"], cell["exact"], cell["questions"]) for cell in written["cells"]],
                             [("mqar-gla-seed1", 0.25, 32000), ("mqar-gla-seed2", 0.5, 32000), ("mqar-sla-gla-seed3", 0.125, 32000)])
            self.assertEqual(written["cells"][0].keys() | {"scored_by"}, shipped["cells"][0].keys() | {"scored_by"})


class Search(unittest.TestCase):
    """search.py: a training a line, none of them twice, and the choice by validation losses alone."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.file = Path(folder.name) / "search.jsonl"

    def run_search(self, *arguments):
        return subprocess.run([sys.executable, HERE / "search.py", "--out", self.file, *map(str, arguments)], capture_output=True, text=True)

    def test_goes_on_where_it_was(self):
        tiny = "steps=0.001 tokens=512"
        asked = "--try", tiny, "--try", tiny + " router=0.5", "--families", "gla", "sse-gla-n4k1", "--seeds", 11, "--samples", 2
        done = self.run_search(*asked, "--seconds", 0)
        self.assertEqual((done.returncode, self.file.read_text()), (1, ""), done.stderr)
        done = self.run_search(*asked)
        self.assertEqual(done.returncode, 0, done.stderr)
        written = self.file.read_text()
        records = [json.loads(line) for line in written.splitlines()]
        # GLA has no router: under the second recipe it is not trained again.
        self.assertEqual([(record["family"], record["options"].get("router"), record["seed"]) for record in records],
                         [("gla", None, 11), ("sse-gla-n4k1", None, 11), ("sse-gla-n4k1", 0.5, 11)])
        for record in records:
            self.assertEqual([step for step, *_ in record["curve"]], [1, 2, 6])
            self.assertEqual((len(record["phases"]), len(record["scores"])), (3, len(score.CELLS["mqar"])))
            self.assertTrue(0 < record["validation"] < 8)
        self.assertNotEqual(records[1]["validation"], records[2]["validation"])
        self.assertEqual(self.run_search(*asked).returncode, 0)
        self.assertEqual(self.file.read_text(), written)

    def write(self, *trainings):
        """(family, options, validation losses of the seeds from 11 on)"""
        records = [{"task": "mqar", "family": family, "options": options, "seed": 11 + i, "base": search.base_recipe("mqar"),
                    "validation": loss, "scores": []} for family, options, losses in trainings for i, loss in enumerate(losses)]
        self.file.write_text("".join(json.dumps(record) + "\n" for record in records))

    def test_chooses_by_the_median_for_all_families_alike(self):
        low, high, one_is_lost = [1.0, 1.1, 1.2, 1.3, 9.0], [1.5, 1.5, 1.5, 1.5, 1.5], [1.0, 1.0, 1.4, 1.4, None]
        warm, soft = {"warmup": 1000}, {"warmup": 1000, "keys": "softmax"}
        self.write(("gla", {}, high), ("sse-gla-n4k1", {}, high), ("gla", warm, low), ("sse-gla-n4k1", warm, one_is_lost))
        self.assertTrue(self.run_search("--choose").stdout.endswith("chosen: warmup=1000\n"))
        # What GLA loses by a recipe counts as much as what SSE gains.
        self.write(("gla", {}, low), ("sse-gla-n4k1", {}, high), ("gla", warm, [2.0] * 5), ("sse-gla-n4k1", warm, low))
        self.assertTrue(self.run_search("--choose").stdout.endswith("chosen: base\n"))
        # GLA has no keys to choose: its trainings are those of the same recipe without.
        self.write(("gla", {}, high), ("sse-gla-n4k1", {}, high), ("gla", warm, high), ("sse-gla-n4k1", soft, low))
        self.assertTrue(self.run_search("--choose").stdout.endswith("chosen: keys=softmax warmup=1000\n"))

    def test_does_not_choose_from_too_few(self):
        self.write(("gla", {}, [1.0] * 5), ("sse-gla-n4k1", {}, [1.0] * 4))
        done = self.run_search("--choose")
        self.assertEqual((done.returncode, done.stderr), (1, "no recipe has 5 seeds of every family yet\n"))

    def test_refuses(self):
        for arguments, why in ((("--try", "base", "--seeds", 1), "from 11 on"), (("--try", "warmp=3"), "no option 'warmp'"),
                               (("--try", "keys=relu"), "silu or softmax"), ((), "nothing to try")):
            done = self.run_search(*arguments)
            self.assertEqual(done.returncode, 2)
            self.assertIn(why, done.stderr)
        other = {"task": "mqar", "base": {}}
        self.file.write_text(json.dumps(other) + "\n")
        self.assertIn("has changed since", self.run_search("--try", "base").stderr)
        self.write(("gla", {}, [1.0]))
        with self.file.open("a") as file:
            file.write(json.dumps(other) + "\n")
        self.assertIn("has changed since", self.run_search("--choose").stderr)

    def test_reads_a_search_whose_recipe_is_no_longer_the_shipped_one(self):
        self.write(("gla", {}, [1.0] * 5))
        self.file.write_text(self.file.read_text().replace('"warmup": 1000', '"warmup": 200'))
        self.assertTrue(self.run_search("--choose").stdout.endswith("chosen: base\n"))
        self.assertEqual(self.run_search("--try", "base").returncode, 2)

    def test_what_a_recipe_scales_at_the_start(self):
        _, _, usual = train.begin("mqar", "sse-gla-n4k1", 11, "cpu")
        _, _, scaled = train.begin("mqar", "sse-gla-n4k1", 11, "cpu", {}, {"router_scale": 0.5, "branch_scale": 2.0})
        ratios = {name: float((b.norm() / a.norm())) for (name, a), (_, b) in zip(usual.named_parameters(), scaled.named_parameters())
                  if not torch.equal(a, b)}
        self.assertEqual(sorted(ratios), sorted(f"model.layers.{i}.attn.{name}.weight" for i in range(2)
                                                for name in ("e_proj", "lora_q_proj.1", "lora_k_proj.1")))
        for name, ratio in ratios.items():
            self.assertAlmostEqual(ratio, 0.5 if "e_proj" in name else 2.0, places=5)


class Rehearsal(unittest.TestCase):
    def test_leaves_weights_and_moments_as_they_were(self):
        recipe = train.replace(train.RECIPES["mqar"], tokens=512)
        model = Model(zoo.make_config("gla", "mqar"))
        optimizer = train.make_optimizer(model, recipe, "cpu")
        batch = [x[0] for x in train.Tasks("mqar", recipe, 1, "cpu").block(train.Phase(64, 1, (4,)), 1)]
        stepper = train.Stepper(model, optimizer, recipe, 0.0, batch)

        def numbers():
            return [p.clone() for p in model.parameters()] + [v.clone() for p in model.parameters() for v in optimizer.state[p].values()]

        for step in range(2):
            before = numbers()
            stepper.rehearse(2)
            after = numbers()
            self.assertTrue(all(torch.equal(a, b) for a, b in zip(before, after)))
            self.assertTrue(all(not bool(new.any()) for new in after[len(before):]))
            stepper.compute()
            self.assertFalse(all(torch.equal(a, b) for a, b in zip(after, numbers())))


def main():
    global STATESCOPE
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter, add_help=False)
    parser.add_argument("--statescope", type=Path)
    arguments, others = parser.parse_known_args()
    if arguments.statescope:
        if not arguments.statescope.exists():
            parser.error(f"no program at {arguments.statescope}: build it first")
        STATESCOPE = arguments.statescope.resolve()
    unittest.main(argv=[sys.argv[0], *others])


if __name__ == "__main__":
    main()
