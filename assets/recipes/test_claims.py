"""Tests of what is said of families: python3 test_claims.py [unittest's arguments]

Exit status 77: a package is missing, nothing was tested.
"""

import json
import statistics
import sys
import types
import unittest
from unittest import mock

try:
    import claims
    import table
    import trainings
except ModuleNotFoundError as missing:
    print(f"the claims are not tested: {sys.executable} has no {missing.name} (README.md says what is needed)", file=sys.stderr)
    sys.exit(77)


class Said(unittest.TestCase):
    """The claims and the prose of the repository"""

    @classmethod
    def setUpClass(cls):
        cls.text = claims.FILE.read_text()
        cls.document = json.loads(cls.text)

    def test_scores_show_every_claim_and_prose_says_it(self):
        if found := claims.problems(self.document, claims.prose()):
            self.fail("\n" + "\n".join(found))

    def test_table_has_nothing_to_write(self):
        self.assertEqual(claims.with_numbers(self.text), self.text)

    def test_every_difference_in_the_tables_is_claimed(self):
        claimed = {(each["task"], *cell, each["one"], each.get("other")) for each in self.document["claims"] if each["direction"] in claims.PAIRED
                   for cell in each["cells"]}
        for task, cells in table.CELLS.items():
            trained = table.trainings(task)
            for pair in table.DIFFERENCES:
                for cell in cells if trained.keys() >= set(pair) else []:
                    self.assertIn((task, *cell, *pair), claimed)

    def test_few_claims_rest_on_recipes_that_were_not_chosen(self):
        self.assertEqual([each["id"] for each in self.document["claims"] if "scores" in each],
                         ["partitions-help-gla-under-the-earlier-recipe", "partitions-on-gdn-under-the-earlier-recipe", "transformer-under-a-long-warmup",
                          "partitions-in-needles-under-the-earlier-recipe"])


class Shipped(unittest.TestCase):
    def test_of_each_family_the_median_seed_ships(self):
        for task in table.CELLS:
            found = trainings.trainings(task)
            self.assertEqual(len(found), {"mqar": 24, "niah": 23, "prose": 2}[task])
            for family, seeds in found.items():
                with self.subTest(f"{task} {family}"):
                    means = {seed: statistics.mean(cells.values()) for seed, cells in seeds.items()}
                    self.assertEqual(trainings.shipped(task, family).recipe["seed"], trainings.median_seed(means))

    def test_median_seed(self):
        self.assertEqual(trainings.median_seed({1: 0.5, 2: 0.7, 3: 0.6}), 3)
        self.assertEqual(trainings.median_seed({1: 0.5, 2: 0.7}), 2)
        self.assertEqual(trainings.median_seed({1: 1.0, 2: 1.0, 3: 1.0}), 2)
        self.assertEqual(trainings.median_seed({1: 0.7, 2: 0.8, 3: 0.8 + 1e-7}), 3)


A, B = [0.5, 0.6, 0.7, 0.8], [0.4, 0.4, 0.4, 0.4]  # differences 10, 20, 30 and 40 points: 25 ± 3.182 · 12.91 / √4


class Wrong(unittest.TestCase):
    """Claims about made-up families"""

    def setUp(self):
        self.trained = {"a": A, "b": B, "even": [0.3, 0.5, 0.3, 0.5], "once": [0.65], "low": [0.1, 0.2, 0.1, 0.2]}
        self.claim = {"id": "a-above-b", "sentence": "a is above b.", "direction": "above", "task": "niah", "cells": [[512, 32]], "one": "a", "other": "b",
                      "said": {"x.md": ["a is above b, by {differences} points."]}}
        self.text = "# Title\n\nHere **a** is above b,\nby 10, 20, 30 and 40 points. <!-- claim: a-above-b --> And so on.\n"
        for name, stand_in in (("trainings_of", self.trainings_of), ("shipped", lambda task, family: types.SimpleNamespace(recipe={"seed": 1}))):
            patch = mock.patch.object(claims, name, stand_in)
            patch.start()
            self.addCleanup(patch.stop)

    def trainings_of(self, task, family, file=None):
        return {seed: {(512, 32): share} for seed, share in enumerate(self.trained[family], 1)}

    def document(self):
        document = {"seeds": {"niah": [1, 2, 3, 4]}, "claims": [self.claim]}
        try:
            return json.loads(claims.with_numbers(json.dumps(document)))
        except (claims.Missing, KeyError):
            return document

    def found(self):
        return claims.problems(self.document(), {"x.md": self.text})

    def problem(self, words):
        """One alone, with these words"""
        found = self.found()
        self.assertEqual(len(found), 1, found)
        self.assertIn(words, found[0])

    def quietly(self, **changes):
        """The claim, said without numbers"""
        self.claim.update(changes, said={"x.md": ["said here"]})
        self.text = "said here <!-- claim: a-above-b -->"

    def test_a_right_claim_is_not_blamed(self):
        self.assertEqual(self.found(), [])

    def test_the_interval_is_student_s(self):
        row, = self.document()["claims"][0]["measured"]
        self.assertEqual(row["differences"], {"1": 10.0, "2": 20.0, "3": 30.0, "4": 40.0})
        self.assertEqual((row["mean"], row["interval"]), (25.0, [4.5, 45.5]))

    def test_directions(self):
        shown = {"above": ("a", "b"), "below": ("b", "a"), "not shown": ("even", "b"), "sign changes": ("even", "b"), "within": ("once", "a"),
                 "below all": ("b", "a"), "above all": ("a", "low"), "steady": ("even", "a"), "unsteady": ("a", "low"), "at most": ("b", "a"), "range": ("a", "b")}
        not_shown = {"above": ("even", "b"), "below": ("a", "b"), "not shown": ("a", "b"), "sign changes": ("a", "b"), "within": ("once", "b"),
                     "below all": ("once", "a"), "above all": ("once", "a"), "steady": ("a", "low"), "unsteady": ("even", "a"), "at most": ("a", "b")}
        self.assertEqual(shown.keys(), claims.DIRECTIONS.keys())
        for pairs, words in ((shown, None), (not_shown, "is not what the scores say")):
            for direction, (one, other) in pairs.items():
                with self.subTest(direction, one=one, other=other):
                    self.quietly(direction=direction, one=one, other=other, most=45)
                    self.problem(words) if words else self.assertEqual(self.found(), [])

    def test_not_shown_needs_no_change_of_sign(self):
        self.trained["a"] = [0.41, 0.4, 0.6, 0.41]
        self.quietly(direction="not shown")
        self.assertEqual(self.found(), [])
        self.quietly(direction="sign changes")
        self.problem("sign changes is not what the scores say")

    def test_unknown_direction(self):
        document = self.document()
        document["claims"][0]["direction"] = "better"
        self.assertEqual(claims.problems(document, {"x.md": self.text}), ["a-above-b: there is no direction better"])

    def test_numbers_that_are_not_computed(self):
        document = self.document()
        document["claims"][0]["measured"][0]["mean"] = 26.0
        self.assertEqual(claims.problems(document, {"x.md": self.text}), ["a-above-b: its numbers are not those of the scores: run table.py"])

    def test_missing_seed(self):
        self.trained["b"] = B[:3]
        self.problem("no score of seed 4 at 512 tokens, 32 keys")

    def test_missing_score(self):
        self.claim["cells"] = [[512, 33]]
        self.problem("no score of seed 1 at 512 tokens, 33 keys")

    def test_missing_family(self):
        self.claim["one"] = "c"
        self.problem("no such training or score: 'c'")

    def test_one_seed_makes_no_interval(self):
        self.trained.update(a=A[:1], b=B[:1])
        self.claim["seeds"] = [1]
        self.problem("two seeds at least")

    def test_seed_that_is_left_out(self):
        self.quietly(seeds=[2, 3, 4])
        self.problem("leaves out seed 1")

    def test_two_claims_of_a_name(self):
        document = self.document()
        document["claims"] *= 2
        self.assertEqual(claims.problems(document, {"x.md": self.text}), ["a-above-b: two claims"])

    def test_prose_with_an_unknown_claim(self):
        self.text += "b is above a. <!-- claim: b-above-a -->"
        self.problem("x.md: there is no claim b-above-a")

    def test_claim_that_is_said_nowhere(self):
        self.claim["said"], self.text = {}, ""
        self.problem("is said nowhere")

    def test_sentence_that_is_gone(self):
        self.text = self.text.replace("by 10, 20", "by 11, 20")
        self.problem('nowhere says "a is above b, by 10, 20, 30 and 40 points."')

    def test_file_that_is_gone(self):
        self.claim["said"]["assets/none.json"] = ["a"]
        self.problem('assets/none.json: nowhere says "a"')

    def test_comment_that_is_gone(self):
        self.text = self.text.replace(" <!-- claim: a-above-b -->", "")
        self.problem("is not behind")

    def test_comment_in_a_file_that_the_claim_does_not_name(self):
        found = claims.problems(self.document(), {"x.md": self.text, "y.md": "So it is. <!-- claim: a-above-b -->"})
        self.assertEqual(found, ["y.md: a-above-b is not said there"])

    def test_comment_that_ends_a_paragraph(self):
        self.text = self.text.replace(" <!--", "\n  <!--")
        self.problem("begins a line")

    def test_several_claims_behind_one_sentence(self):
        self.text = self.text.replace("<!--", "<!-- claim: other --> <!--", 1)
        self.problem("there is no claim other")

    def test_a_lesson_has_no_comments(self):
        self.claim["said"] = {"assets/lessons/9-luck.md": ["{won} of {seeds}, {lost} lost"]}
        text = {"assets/lessons/9-luck.md": "four of four, none lost"}
        self.assertEqual(claims.problems(self.document(), text), [])

    def test_typed_number(self):
        self.claim["said"]["x.md"] = ["by 10, 20, 30 and {differences} points of n4k1, 32 needles"]
        self.assertIn("x.md: the number 10 is typed, not measured", self.found()[0])

    def test_unknown_number(self):
        self.claim["said"]["x.md"] = ["by {difference} points"]
        self.problem("nothing is called {difference}")

    def test_numbers(self):
        self.trained["a"] = [0.52, 0.4, 0.33, 0.4]
        cell = claims.Cell({**self.claim, "direction": "sign changes"}, [512, 32], [1, 2, 3, 4])
        says = {"differences": "12, 0, −7 and 0", "signed": "+12, 0, −7 and 0", "won": "one", "tied": "two", "lost": "one", "seeds": "four",
                "others": "three", "lower": "four", "one": "52, 40, 33 and 40", "one range": "33 to 52", "one spread": "19", "one shipped": "52", "one rest": "33 to 40",
                "other range": "40", "interval": "+1 ±13"}
        for name, text in says.items():
            self.assertEqual(claims.filled(f"{{{name}, 32}}", [cell]), text, name)


if __name__ == "__main__":
    unittest.main()
