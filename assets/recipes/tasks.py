"""The tasks of datasets/, drawn on the device that trains: the same numbers, the same tokens (test_recipes.py compares them).

Every random choice is Philox4x32-10 (Salmon et al., SC 2011) of (example, stream, index) under the key (seed, split), as in datasets/philox.h.
A batch is drawn at once: tensors are [B, …], one row an example.
"""

import functools
import json
import re
from dataclasses import dataclass
from pathlib import Path

import torch

TASKS = Path(__file__).resolve().parent.parent / "tasks"
TEXTS = Path(__file__).resolve().parent.parent / "texts"
EVALUATION, TRAINING = 0, 1
WORD = 0xFFFFFFFF


def philox(example, stream, index, seed, split):
    """32 random bits, as int64, of broadcastable int64 tensors `example` and `index`."""
    example, index = torch.broadcast_tensors(example, index)
    a, b, c, d = index, torch.full_like(index, stream), example & WORD, example >> 32
    key0, key1 = seed, split
    for _ in range(10):
        left, right = a * 0xD2511F53, c * 0xCD9E8D57
        a, b, c, d = ((right >> 32) & WORD) ^ b ^ key0, right & WORD, ((left >> 32) & WORD) ^ d ^ key1, left & WORD
        key0, key1 = (key0 + 0x9E3779B9) & WORD, (key1 + 0xBB67AE85) & WORD
    return a


@dataclass
class Draws:
    """The numbers of the examples first, first + 1, …, first + count − 1."""

    first: int
    count: int
    seed: int
    split: int
    device: str = "cpu"

    def bits(self, stream, index):
        examples = torch.arange(self.first, self.first + self.count, device=self.device)
        return philox(examples.view(-1, *[1] * index.dim()), stream, index[None], self.seed, self.split)

    def below(self, n, stream, index):
        """0 … n − 1 [B, *index.shape]; n is a number or a tensor that broadcasts."""
        return (self.bits(stream, index) * n) >> 32

    def order(self, n, stream):
        """A permutation of 0 … n − 1 [B, n]."""
        return self.bits(stream, torch.arange(n, device=self.device)).argsort(dim=1, stable=True)


@dataclass
class Batch:
    """ids [B, T]; answer [B, T]: the token to predict after reading position t, −1 where nothing is asked;
    question [B, T]: the number of the question that this token answers (0 where nothing is asked)."""

    ids: torch.Tensor
    answer: torch.Tensor
    question: torch.Tensor

    def labels(self):
        """What to predict after each token [B, T]: the answer where there is one, else the next token; the last has −1 unless asked."""
        following = torch.cat([self.ids[:, 1:], torch.full_like(self.ids[:, :1], -1)], 1)
        return torch.where(self.answer >= 0, self.answer, following)


def pick(table, index):
    """table [B, n] at index [B, …] → [B, …]"""
    return table.gather(1, index.flatten(1)).view(index.shape)


def shifted_answer(positions, values, questions, B, T):
    """A Batch's answer and question from the answers' own places: what stands at position p is predicted at p − 1."""
    answer = values.new_full((B, T), -1)
    question = values.new_zeros((B, T))
    answer.scatter_(1, positions - 1, values)
    question.scatter_(1, positions - 1, questions.expand_as(positions))
    return answer, question


# ---- needles among generated filler ---------------------------------------------------------------------------------------------------


class NeedleWords:
    """assets/tasks/needles.json in token ids. Templates are rows of codes: a word's id, or −1 − class for a placeholder."""

    def __init__(self, device="cpu"):
        tasks = json.loads((TASKS / "needles.json").read_text())
        vocabulary = json.loads((TASKS / "needle-tokenizer.json").read_text())
        self.names_of_classes = list(tasks["words"])
        self.vocab_size = len(vocabulary)
        classes = [[vocabulary[word] for word in words] for words in tasks["words"].values()]
        width = max(map(len, classes))
        self.class_size = torch.tensor([len(c) for c in classes], device=device)
        self.class_words = torch.tensor([c + [0] * (width - len(c)) for c in classes], device=device)

        def encode(template):
            placeholders = {"{%s}" % name: -1 - i for i, name in enumerate(self.names_of_classes)}
            return [placeholders[w] if w in placeholders else vocabulary[w] for w in template.split()]

        filler = [encode(t) for t in tasks["filler"]]
        longest = max(map(len, filler))
        self.filler = torch.tensor([f + [0] * (longest - len(f)) for f in filler], device=device)
        self.filler_length = torch.tensor([len(f) for f in filler], device=device)
        # Which placeholder of its template a word is.
        self.filler_slot = (self.filler < 0).long().cumsum(1) - 1
        self.needle, self.question = encode(tasks["needle"]), encode(tasks["question"])
        self.stop = vocabulary["."]
        self.name_class, self.digit_class = self.names_of_classes.index("name"), self.names_of_classes.index("digit")
        self.device = device


@functools.lru_cache(maxsize=None)
def needle_words(device):
    return NeedleWords(device)


def filled(template, words, name, digits):
    """A template [w] with its name [B, n] and its digits [B, n, 4] put in → [B, n, w]"""
    columns, digit = [], 0
    for code in template:
        if code == -1 - words.name_class:
            columns.append(name)
        elif code == -1 - words.digit_class:
            columns.append(digits[..., digit])
            digit += 1
        else:
            columns.append(torch.full_like(name, code))
    return torch.stack(columns, -1)


def filler_words(words, draws, F):
    """The last F ≥ 1 words of generated sentences: ids [B, F], which sentence each is of [B, F], sentences in all [B]."""
    shortest = int(words.filler_length.min())
    sentence = torch.arange(-(-F // shortest), device=words.device)
    template = draws.below(len(words.filler), 4, sentence)
    ends = words.filler_length[template].cumsum(1)
    m = (ends < F).sum(1) + 1
    word = torch.arange(F, device=words.device)[None] + pick(ends, (m - 1)[:, None]) - F
    s = torch.searchsorted(ends, word.contiguous(), right=True)
    at = word - torch.where(s > 0, pick(ends, (s - 1).clamp(min=0)), 0)
    t = pick(template, s)
    code, slot = words.filler[t, at], words.filler_slot[t, at]
    category = (-1 - code).clamp(min=0)
    examples = torch.arange(draws.first, draws.first + draws.count, device=words.device)[:, None]
    drawn = (philox(examples, 5, s * 16 + slot.clamp(min=0), draws.seed, draws.split) * words.class_size[category]) >> 32
    return torch.where(code < 0, words.class_words[category, drawn], code), s, m


def needles(draws, length, keys=1, values=1, queries=1, depth_percent=None):
    """Needles in generated filler (datasets/needles.h), `length` words an example."""
    words, device, B, T = needle_words(draws.device), draws.device, draws.count, length
    n = keys * values
    name = words.class_words[words.name_class][draws.order(int(words.class_size[words.name_class]), 0)[:, :keys]]
    name = name.repeat_interleave(values, 1)
    index = torch.arange(n, device=device)[:, None] * 64 + torch.arange(4, device=device)
    digits = words.class_words[words.digit_class][draws.below(10, 1, index)]
    asked = draws.order(keys, 3)[:, :queries]

    w, width = len(words.needle), len(words.question)
    tail = queries * (width + 4 * values) + queries - 1
    F = T - n * w - tail
    if F < 0:
        raise ValueError(f"{n} needles and {queries} questions need {T - F} words, the length is {T}")
    m = torch.zeros(B, dtype=torch.long, device=device)
    if F:
        filler, sentence, m = filler_words(words, draws, F)

    place = draws.below((m + 1)[:, None], 2, torch.arange(n, device=device))
    if depth_percent is not None:
        is_asked = (torch.arange(n, device=device) // values)[None] == asked[:, :1]
        place = torch.where(is_asked, ((depth_percent * m + 50) // 100)[:, None], place)
    # rank: how many needles stand before this one; before: how many filler words do.
    order = place.argsort(dim=1, stable=True)
    rank = order.argsort(1)
    # Needle i stands before filler sentence place[i]: after all words of earlier sentences.
    before = torch.searchsorted(sentence.contiguous(), place.contiguous()) if F else torch.zeros_like(place)
    start = before + w * rank

    ids = torch.zeros(B, T, dtype=torch.long, device=device)
    spans = start[..., None] + torch.arange(w, device=device)
    ids.scatter_(1, spans.flatten(1), filled(words.needle, words, name, digits).flatten(1))
    if F:
        needles_before = torch.searchsorted(pick(place, order).contiguous(), sentence.contiguous(), right=True)
        ids.scatter_(1, torch.arange(F, device=device)[None] + w * needles_before, filler)

    # The questions: of the values of one key, those that stand first are asked for first.
    of_key = asked[..., None] * values + torch.arange(values, device=device)
    of_key = of_key.gather(2, pick(rank, of_key).argsort(2))
    answers = digits.gather(1, of_key.flatten(1)[..., None].expand(-1, -1, 4)).view(B, queries, 4 * values)
    block = width + 4 * values + 1
    text = torch.cat([filled(words.question, words, pick(name, asked * values), digits[:, :queries]), answers,
                      torch.full((B, queries, 1), words.stop, device=device)], 2)
    ids[:, T - tail:] = text.flatten(1)[:, :tail]
    given = T - tail + torch.arange(queries, device=device)[:, None] * block + width + torch.arange(4 * values, device=device)
    number = torch.arange(queries, device=device)[:, None].expand_as(given)
    answer, question = shifted_answer(given.flatten()[None].expand(B, -1), answers.flatten(1), number.flatten()[None], B, T)
    return Batch(ids, answer, question)


# ---- multi-query associative recall ---------------------------------------------------------------------------------------------------


def recall(draws, length, pairs=8, noise=True):
    """Multi-query associative recall with power-law gaps (datasets/recall.h). Ids: n0…n63, k0…k255, v0…v255."""
    device, B, T, P = draws.device, draws.count, length, pairs
    slots = (T - 2 * P) // 2
    if P > min(slots, 256):
        raise ValueError(f"{P} pairs do not fit into {T} tokens")
    key = 64 + draws.order(256, 0)[:, :P]
    value = 320 + draws.below(256, 1, torch.arange(P, device=device))
    slot = torch.arange(slots, device=device)
    chosen = (draws.bits(2, slot) * (slot + 1)).argsort(dim=1, stable=True)[:, :P]
    pair = draws.order(P, 3)
    position = torch.arange(T, device=device)
    ids = draws.below(64, 4, position) if noise else torch.zeros(B, T, dtype=torch.long, device=device)
    ids[:, 0:2 * P:2], ids[:, 1:2 * P:2] = key, value
    at = 2 * P + 2 * chosen
    ids.scatter_(1, at, pick(key, pair))
    answer = torch.full_like(ids, -1).scatter_(1, at, pick(value, pair))
    question = torch.zeros_like(ids).scatter_(1, at, at.argsort(1).argsort(1))
    return Batch(ids, answer, question)


def copying(draws, length):
    """n words, a mark, the same n words again (datasets/copying.h), in the vocabulary of `recall`."""
    n = (length - 1) // 2
    index = torch.arange(n, device=draws.device)
    words = 320 + draws.below(256, 0, index)
    ids = torch.cat([words, torch.zeros_like(words[:, :1]), words], 1)
    answer, question = shifted_answer((index + n + 1)[None].expand(draws.count, -1), words, torch.zeros_like(index)[None], *ids.shape)
    return Batch(ids, answer, question)


# ---- needles in prose, as bytes -------------------------------------------------------------------------------------------------------


def prose(split, texts=TEXTS):
    """The books' first nine tenths (training) or last tenth (evaluation), white space collapsed, as bytes."""
    parts = []
    for path in sorted(texts.glob("*.txt")):
        text = re.sub(rb"[\x00-\x20]+", b" ", path.read_bytes()).strip(b" ")
        boundaries = sentence_starts(text)
        cut = next(b for b in boundaries if b >= len(text) * 9 // 10)
        parts.append(text[:cut] if split == TRAINING else text[cut:])
    return b" ".join(parts)


def sentence_starts(text):
    """Where sentences begin, and where the text ends."""
    starts = [0] + [m.end() for m in re.finditer(rb"[.!?] ", text)] + [len(text)]
    return sorted(set(starts))


class ProseNeedles:
    """Needles in a haystack of prose (datasets/needles.h). Segments are copied from a pool: haystack, phrases, names, characters."""

    def __init__(self, text, device="cpu"):
        tasks = json.loads((TASKS / "needles.json").read_text())
        names = [name.capitalize().encode() for name in tasks["words"]["name"]]
        needle, question = tasks["prose"]["needle"], tasks["prose"]["question"]
        self.device = device
        self.boundaries = torch.tensor(sentence_starts(text), device=device)
        pool = bytearray(text)

        def place(piece):
            pool.extend(piece)
            return len(pool) - len(piece), len(piece)

        self.names = torch.tensor([place(name) for name in names], device=device)
        self.needle = [place(piece.encode()) for piece in re.split(r"{\w+}", needle)]
        self.question = [place(piece.encode()) for piece in question.split("{name}")]
        self.digits = place(b"0123456789")[0]
        self.stop = place(b". ")
        self.pool = torch.tensor(list(pool), device=device)

    def named(self, draws, keys, queries):
        """Begin and length of each key's name [B, keys], and the keys that are asked [B, queries]"""
        which = draws.order(len(self.names), 0)[:, :keys]
        return *self.names[which].unbind(-1), draws.order(keys, 3)[:, :queries]

    def filler(self, draws, length, keys, queries, characters=4):
        """How many bytes of the haystack each example has [B]; below 0 where needles and questions do not fit."""
        _, name_length, asked = self.named(draws, keys, queries)
        needles = name_length + sum(length for _, length in self.needle) + characters
        questions = (len(self.question) - 1) * pick(name_length, asked) + sum(length for _, length in self.question) + characters
        return length - needles.sum(1) - questions.sum(1) - 2 * (queries - 1)

    def __call__(self, draws, length, keys=1, queries=1, characters=4, depth_percent=None):
        """One value of `characters` digits a key; `length` bytes an example."""
        device, B, T = self.device, draws.count, length
        name, name_length, asked = self.named(draws, keys, queries)
        index = torch.arange(keys, device=device)[:, None] * 64 + torch.arange(characters, device=device)
        digits = self.digits + draws.below(10, 1, index)
        F = self.filler(draws, T, keys, queries, characters)
        if int(F.min()) < 0:
            raise ValueError(f"{keys} needles and {queries} questions do not fit into {T} bytes")

        # The haystack ends at a boundary, F bytes after its beginning.
        first = torch.searchsorted(self.boundaries, F)
        count = len(self.boundaries) - first
        end = self.boundaries[first + draws.below(count[:, None], 6, torch.zeros(1, dtype=torch.long, device=device))[:, 0]]
        begin = end - F
        low = torch.searchsorted(self.boundaries, begin)
        points = torch.searchsorted(self.boundaries, end, right=True) - low
        point = draws.below(points[:, None], 2, torch.arange(keys, device=device))
        if depth_percent is not None:
            fixed = (depth_percent * (points - 1) + 50) // 100
            point = torch.where(torch.arange(keys, device=device)[None] == asked[:, :1], fixed[:, None], point)
        order = point.argsort(dim=1, stable=True)
        at = self.boundaries[low[:, None] + pick(point, order)]

        # Segments (start in the pool, length): haystack up to a needle, the needle, …, the rest, the questions.
        starts, lengths, answers = [], [], []

        def add(start, length, answer=False):
            starts.append(start if torch.is_tensor(start) else torch.full((B,), start, device=device))
            lengths.append(length if torch.is_tensor(length) else torch.full((B,), length, device=device))
            answers.append(answer)

        def add_value(i, answer):
            value = digits[torch.arange(B, device=device), i]
            for c in range(characters):
                add(value[:, c], 1, answer)

        last = begin
        for j in range(keys):
            add(last, at[:, j] - last)
            last, i = at[:, j], order[:, j]
            add(*self.needle[0])
            add(pick(name, i[:, None])[:, 0], pick(name_length, i[:, None])[:, 0])
            add(*self.needle[1])
            add_value(i, answer=False)
            add(*self.needle[2])
        add(last, end - last)
        for j in range(queries):
            i = asked[:, j]
            for piece in self.question[:-1]:
                add(*piece)
                add(pick(name, i[:, None])[:, 0], pick(name_length, i[:, None])[:, 0])
            add(*self.question[-1])
            add_value(i, answer=True)
            if j + 1 < queries:
                add(*self.stop)

        starts, lengths = torch.stack(starts, 1), torch.stack(lengths, 1)
        ends = lengths.cumsum(1)
        position = torch.arange(T, device=device).expand(B, -1).contiguous()
        segment = torch.searchsorted(ends, position, right=True)
        ids = self.pool[pick(starts, segment) + position - pick(ends - lengths, segment)]
        is_answer = torch.tensor(answers, device=device)
        given = is_answer[segment]
        following = torch.cat([ids[:, 1:], ids[:, :1]], 1)
        predicts = torch.cat([given[:, 1:], torch.zeros_like(given[:, :1])], 1)
        number = (is_answer.long().cumsum(0) - 1).clamp(min=0) // characters
        question = torch.cat([number[segment][:, 1:], torch.zeros_like(ids[:, :1])], 1)
        return Batch(ids, torch.where(predicts, following, -1), torch.where(predicts, question, 0))
