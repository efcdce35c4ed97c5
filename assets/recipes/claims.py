"""The claims of ../claims.json: what prose, figures and lessons say of families of models, and what the scores of their trainings say to it.

A claim has
    id           stands behind the sentence in a README: <!-- claim: ID -->
    sentence     what is said
    direction    one of DIRECTIONS
    task, cells  [length, keys]; the direction holds in each of them
    one, other   families; only `one` where nothing is compared
    seeds        where they are not the task's, which the file begins with: no seed that was trained is left out
    scores       a file of seeds/, where it is not the task's
    most         of "at most", in percent
    said         {file: [words]}: prose that says it, word for word, with {NUMBER} or {NUMBER, KEYS} for a cell's numbers (NUMBERS)
    measured     a row for each cell: shares by seed in percent; of what is paired by seed also the differences one − other in points, their mean
                 and its 95 % interval. Written by table.py, as are no others: what a claim says, people write.
"""

import json
import re

from trainings import ASSETS, mean_and_half, mean_with_interval, points, shipped, trainings_of

FILE = ASSETS / "claims.json"
REPOSITORY = ASSETS.parent

COUNTS = ("none", "one", "two", "three", "four", "five")

# What is said, and whether a cell shows it: of differences paired by seed, of one training against the range of a family's, of how far apart
# the seeds of two families lie, of shares themselves.
PAIRED = {
    "above": lambda cell: cell.low > 0,
    "below": lambda cell: cell.high < 0,
    "not shown": lambda cell: cell.low <= 0 <= cell.high,
    "sign changes": lambda cell: cell.low <= 0 <= cell.high and min(cell.differences) < 0 < max(cell.differences),
}
WITHIN = {
    "within": lambda cell: min(cell.other.values()) <= min(cell.one.values()) and max(cell.one.values()) <= max(cell.other.values()),
    "below all": lambda cell: max(cell.one.values()) < min(cell.other.values()),
    "above all": lambda cell: min(cell.one.values()) > max(cell.other.values()),
}
SPREAD = {
    "steady": lambda cell: cell.spread("one") <= 2 * cell.spread("other"),
    "unsteady": lambda cell: cell.spread("one") > 2 * cell.spread("other"),
}
DIRECTIONS = {
    **PAIRED,
    **WITHIN,
    **SPREAD,
    "at most": lambda cell: 100 * max(cell.one.values()) <= cell.most,
    "range": lambda cell: True,  # from what to what the trainings go; nothing is compared
}


class Missing(Exception):
    """A seed, a score or a number that a claim needs"""


class Cell:
    """The scores of a claim's families in one cell, by seed"""

    def __init__(self, claim, cell, seeds):
        self.length, self.keys = cell
        self.most = claim.get("most")
        self.trained = {side: self.scores(claim, side, cell) for side in ("one", "other") if side in claim}
        self.seeds, self.direction = seeds, claim["direction"]
        if missing := [seed for seed in seeds if seed not in self.countable()]:
            raise Missing(f"no score of seed {missing[0]} at {self.length} tokens, {self.keys} keys")
        self.one, self.other = (self.counted(side) for side in ("one", "other"))
        if self.direction in PAIRED:
            if len(seeds) < 2:
                raise Missing("two seeds at least make an interval")
            self.differences = [self.one[seed] - self.other[seed] for seed in seeds]
            mean, half = mean_and_half(self.differences)
            self.mean, self.low, self.high = mean, mean - half, mean + half
        self.shipped = {side: shipped(claim["task"], claim[side]).recipe["seed"] for side in self.trained if "scores" not in claim}

    @staticmethod
    def scores(claim, side, cell):
        trained = trainings_of(claim["task"], claim[side], claim.get("scores"))
        return {seed: cells[tuple(cell)] for seed, cells in sorted(trained.items()) if tuple(cell) in cells}

    def countable(self):
        """The seeds that could be counted: those of both families; where one training is held against a range, those of the range"""
        one, other = self.trained["one"], self.trained.get("other")
        return one.keys() if other is None else other.keys() if self.direction in WITHIN else one.keys() & other.keys()

    def counted(self, side):
        """Of what is held against a range, all that was trained"""
        by_seed = self.trained.get(side, {})
        return by_seed if side == "one" and self.direction in WITHIN else {seed: by_seed[seed] for seed in self.seeds if seed in by_seed}

    def row(self):
        def percent(shares):
            return {str(seed): round(100 * share, 1) for seed, share in shares.items()}

        row = {"cell": [self.length, self.keys], "one": percent(self.one)}
        if self.other:
            row["other"] = percent(self.other)
        if self.direction in PAIRED:
            row["differences"] = percent(dict(zip(self.seeds, self.differences)))
            row["mean"] = round(100 * self.mean, 1)
            row["interval"] = [round(100 * self.low, 1), round(100 * self.high, 1)]
        return row

    def among_differences(self, chosen):
        return COUNTS[sum(chosen(points(x)) for x in self.differences)]

    def spread(self, side):
        """From the least to the most over seeds"""
        shares = getattr(self, side).values()
        return max(shares) - min(shares)

    def shares(self, side, which):
        """(side, "") → "15 and 23"; "range" → "7 to 63"; "spread" → "56"; "shipped" → "63"; "rest", the others' range → "7 to 28" """
        by_seed = getattr(self, side)
        if which == "spread":
            return percent(self.spread(side))
        if which == "":
            return listed([percent(share) for share in by_seed.values()])
        if which == "shipped":
            return percent(by_seed[self.shipped[side]])
        shares = [share for seed, share in by_seed.items() if which == "range" or seed != self.shipped[side]]
        return " to ".join(dict.fromkeys([percent(min(shares)), percent(max(shares))]))


NUMBERS = {
    "differences": lambda cell: listed([points(x, plus="") for x in cell.differences]),
    "signed": lambda cell: listed([points(x) for x in cell.differences]),
    "interval": lambda cell: mean_with_interval(cell.differences),
    "won": lambda cell: cell.among_differences(lambda text: text.startswith("+")),
    "tied": lambda cell: cell.among_differences(lambda text: text == "0"),
    "lost": lambda cell: cell.among_differences(lambda text: text.startswith("−")),
    "seeds": lambda cell: COUNTS[len(cell.seeds)],
    "others": lambda cell: COUNTS[len(cell.seeds) - 1],
    "lower": lambda cell: COUNTS[sum(share < max(cell.one.values()) for share in cell.other.values())],
    **{f"{side}{which}": lambda cell, side=side, which=which: cell.shares(side, which.strip())
       for side in ("one", "other") for which in ("", " range", " spread", " shipped", " rest")},
}


def listed(texts):
    return ", ".join(texts[:-1]) + (" and " if texts[:-1] else "") + texts[-1]


def percent(share):
    return f"{100 * share:.0f}"


def cells_of(claim, document):
    return [Cell(claim, cell, claim.get("seeds") or document["seeds"][claim["task"]]) for cell in claim["cells"]]


def filled(words, cells):
    """`words` with the cells' numbers"""
    def number(match):
        of = [cell for cell in cells if not match[2] or cell.keys == int(match[2])]
        if not of or match[1] not in NUMBERS:
            raise Missing(f"nothing is called {match[0]}")
        return NUMBERS[match[1]](of[0])

    return re.sub(r"\{([a-z ]+)(?:, (\d+))?\}", number, words)


def typed_numbers(words):
    """Those that stand in `words` as digits: not n4k1, not seed 1's {one}"""
    return set(re.findall(r"(?<![\w.-])\d+(?![\w-])", re.sub(r"\{.*?\}", "", words)))


def with_numbers(text):
    """claims.json with `measured` as the scores have it"""
    document = json.loads(text)
    for claim in document["claims"]:
        claim["measured"] = [cell.row() for cell in cells_of(claim, document)]
    return laid_out(document) + "\n"


def laid_out(value, indent=""):
    """JSON, on one line what is short"""
    line = json.dumps(value, ensure_ascii=False)
    if not isinstance(value, (dict, list)) or len(indent) >= 2 and len(line) <= 150:
        return line
    deeper = indent + "  "
    items = ([f"{json.dumps(key, ensure_ascii=False)}: {laid_out(each, deeper)}" for key, each in value.items()] if isinstance(value, dict)
             else [laid_out(each, deeper) for each in value])
    opened, closed = "{}" if isinstance(value, dict) else "[]"
    return opened + "\n" + ",\n".join(deeper + item for item in items) + "\n" + indent + closed


# ---- what is wrong with them -------------------------------------------------------------------------------------------------------------


def plain(text):
    """Without line breaks and bold type"""
    return " ".join(text.replace("**", "").split())


def prose():
    """{file: text} of the repository's texts"""
    rooms = [REPOSITORY / room for room in ("app", "assets", "datasets", "engine", "kernels", "tests", "views")]
    files = [*REPOSITORY.glob("*.md"), *(file for room in rooms for file in room.rglob("*.md"))]
    return {str(file.relative_to(REPOSITORY)): file.read_text() for file in sorted(files)}


def has_comments(name):
    """A lesson's text is shown as it stands"""
    return name.endswith(".md") and (not name.startswith("assets/lessons/") or name.endswith("README.md"))


def problems(document, texts):
    """What is wrong with the claims, or with texts that refer to them: one line each"""
    found = []
    ids = [claim["id"] for claim in document["claims"]]
    found += [f"{name}: two claims" for name in sorted(set(ids)) if ids.count(name) > 1]
    for claim in document["claims"]:
        found += [f"{claim['id']}: {problem}" for problem in problems_of_claim(claim, document, texts)]
    referred = {name: set(re.findall(r"<!-- claim: (\S+) -->", text)) for name, text in texts.items()}
    for name, names in referred.items():
        said = {claim["id"] for claim in document["claims"] if name in claim["said"]}
        found += [f"{name}: a claim's comment begins a line, which ends the paragraph"] if re.search(r"^[\s|-]*<!-- claim", texts[name], re.M) else []
        found += [f"{name}: there is no claim {each}" for each in sorted(names - set(ids))]
        found += [f"{name}: {each} is not said there" for each in sorted((names & set(ids)) - said)]
    return found


def problems_of_claim(claim, document, texts):
    if claim["direction"] not in DIRECTIONS:
        yield f"there is no direction {claim['direction']}"
        return
    try:
        cells = cells_of(claim, document)
    except (KeyError, OSError) as error:
        yield f"no such training or score: {error}"
        return
    except Missing as error:
        yield str(error)
        return
    for cell in cells:
        where = f"{cell.length} tokens, {cell.keys} keys"
        if left := sorted(cell.countable() - set(cell.seeds)):
            yield f"{where}: leaves out seed {left[0]}, which was trained"
        if not DIRECTIONS[claim["direction"]](cell):
            yield f"{where}: {claim['direction']} is not what the scores say: {json.dumps(cell.row())}"
    if claim.get("measured") != [cell.row() for cell in cells]:
        yield "its numbers are not those of the scores: run table.py"
    yield from problems_of_prose(claim, cells, texts)


def problems_of_prose(claim, cells, texts):
    if not any(claim["said"].values()):
        yield "is said nowhere"
    known = {"0"} | typed_numbers(claim["sentence"]) | {str(number) for cell in cells for number in (cell.length, cell.keys)}
    for name, sayings in claim["said"].items():
        text = plain(texts.get(name) or read(name))
        for words in sayings:
            if typed := typed_numbers(words) - known:
                yield f"{name}: the number {min(typed)} is typed, not measured"
            try:
                words = filled(words, cells)
            except (Missing, KeyError, ValueError, AttributeError) as error:
                yield f"{name}: {error}"
                continue
            behind = rf"(\s*<!-- claim: \S+ -->)*?\s*<!-- claim: {re.escape(claim['id'])} -->" if has_comments(name) else ""
            if plain(words) not in text:
                yield f"{name}: nowhere says \"{words}\""
            elif not re.search(re.escape(plain(words)) + behind, text):
                yield f"{name}: <!-- claim: {claim['id']} --> is not behind \"{words}\""


def read(name):
    file = REPOSITORY / name
    return file.read_text() if file.is_file() else ""
