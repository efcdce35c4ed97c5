#!/usr/bin/env python3
"""Writes the tables of measurements in the READMEs from results/*.json: tests/bench/tables.py, or with --check to see whether they are up to date.

What stands between <!-- measured NAME --> and <!-- end --> is replaced by results/NAME.json as a table, with what was measured above it and where it
was measured below. results/README.md says what such a file holds."""

import argparse
import json
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
RESULTS = ROOT / "tests/bench/results"
FIELDS = ("what", "commit", "device", "date", "command")
TABLE = re.compile(r"(<!-- measured (\w+) -->\n).*?(<!-- end -->)", re.DOTALL)
ROOMS = ("README.md", "kernels", "engine", "views", "app", "datasets", "tests")


class Wrong(Exception):
    """One line that says what is wrong, and where."""


def read(name):
    path = RESULTS / f"{name}.json"
    try:
        measured = json.loads(path.read_text(encoding="utf-8"), parse_float=str)  # with all their digits
    except OSError:
        raise Wrong(f"there is no {path.relative_to(ROOT)}") from None
    except ValueError as error:
        raise Wrong(f"{path.relative_to(ROOT)}: {error}") from None
    missing = [field for field in FIELDS if not isinstance(measured.get(field), str) or not measured[field]]
    if missing:
        raise Wrong(f"{path.relative_to(ROOT)}: no text under {', '.join(missing)}")
    if not measured.get("columns") or not measured.get("numbers"):
        raise Wrong(f"{path.relative_to(ROOT)}: no columns, or no numbers")
    for i, row in enumerate(measured["numbers"]):
        if list(row) != measured["columns"]:
            raise Wrong(f"{path.relative_to(ROOT)}: row {i} of numbers has other keys than columns")
    return measured


def cell(value):
    if value is None:
        return "–"
    if isinstance(value, list):
        return ", ".join(map(cell, value))
    return f"{value:,}" if isinstance(value, int) else str(value).replace("|", "\\|")


def line(cells):
    return "| " + " | ".join(cells) + " |"


def table(measured):
    columns = measured["columns"]
    rows = [line(cell(row[column]) for column in columns) for row in measured["numbers"]]
    source = [f"Commit {measured['commit']}", measured["device"], measured["date"], f"`{measured['command']}`"]
    if measured["command"].startswith("unknown"):
        source.pop()
    below = ". ".join(part for part in (", ".join(source), measured.get("conditions")) if part)
    return "\n".join([f"{measured['what']}:", "", line(columns), "|" + " --- |" * len(columns), *rows, "", below])


def with_tables(text):
    return TABLE.sub(lambda match: match[1] + table(read(match[2])) + "\n" + match[3], text)


def documents():
    for room in ROOMS:
        yield from [ROOT / room] if room.endswith(".md") else sorted((ROOT / room).rglob("*.md"))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true", help="write nothing; exit status 1 if a table is not what its JSON says")
    arguments = parser.parse_args()
    shown, stale = set(), []
    for path in documents():
        text = path.read_text(encoding="utf-8")
        shown |= {match[2] for match in TABLE.finditer(text)}
        made = with_tables(text)
        if made != text:
            stale.append(str(path.relative_to(ROOT)))
            if not arguments.check:
                path.write_text(made, encoding="utf-8")
    unseen = {path.stem for path in RESULTS.glob("*.json")} - shown
    if unseen:
        raise Wrong(f"in no README: {', '.join(sorted(unseen))} of tests/bench/results")
    if arguments.check and stale:
        raise Wrong(f"not what tests/bench/results say: {', '.join(stale)}: run tests/bench/tables.py")


if __name__ == "__main__":
    try:
        main()
    except Wrong as wrong:
        sys.exit(f"tables.py: {wrong}")
