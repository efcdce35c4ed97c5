"""A measurement as results/*.json keep it: what, commit, device, date, command, conditions, columns, numbers."""

import datetime
import json
import pathlib
import subprocess

ROOT = pathlib.Path(__file__).resolve().parents[2]


def commit():
    """The one that is checked out; "… and changes" where files differ from it."""
    def git(*words):
        return subprocess.run(["git", "-C", str(ROOT), *words], capture_output=True, text=True, check=True).stdout.strip()
    try:
        return git("rev-parse", "--short", "HEAD") + (" and changes" if git("status", "--porcelain", "--untracked-files=no") else "")
    except (OSError, subprocess.CalledProcessError):
        return "unknown"


def measurement(what, command, device, columns, rows, conditions=""):
    """`rows`: lists of a value for each column: a number, a text, a list of numbers (one for each run), or None."""
    return {"what": what, "commit": commit(), "device": device, "date": datetime.date.today().isoformat(), "command": command,
            "conditions": conditions, "columns": columns, "numbers": [dict(zip(columns, row, strict=True)) for row in rows]}


def text_of(measured):
    """JSON with a line for each row of numbers."""
    fields = [f"  {json.dumps(key)}: {json.dumps(value, ensure_ascii=False)}," for key, value in measured.items() if key != "numbers"]
    rows = ",\n".join("    " + json.dumps(row, ensure_ascii=False) for row in measured["numbers"])
    return "{\n" + "\n".join(fields) + '\n  "numbers": [\n' + rows + "\n  ]\n}\n"


def write(path, measured):
    path = pathlib.Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text_of(measured), encoding="utf-8")
