#!/usr/bin/env python3
"""What the program touches beside what it reads: which programs it starts, which files it writes, which sockets it opens. Runs each command of the
table in README.md under strace, and says where the table is wrong; exit status 77 (skipped) where there is no strace.

    tests/audit/audit.py STATESCOPE [--only COMMAND]"""

import argparse
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
ASSETS, MODELS = ROOT / "assets", ROOT / "tests/golden/models"
NIAH, SSE, NEEDLE = ASSETS / "checkpoints/niah/niah-gla.h5", ASSETS / "checkpoints/niah/niah-sse-gla-n4k1.h5", ASSETS / "prompts/needle.json"
READ = [NIAH, "--prompt", NEEDLE]
CALLS = "execve,execveat,socket,bind,connect,open,openat,openat2,creat,rename,renameat,renameat2,link,linkat,symlink,symlinkat,mkdir,mkdirat,truncate,mknod,mknodat"
SKIPPED = 77

COMMANDS = {  # by their names in the table
    "run": ["run", *READ, "--dump", "dump.h5", "--json", "run.json"],
    "run --session": ["run", *READ, "--session", "run.scope"],
    "eval": ["eval", NIAH, "--task", "niah", "--length", "64", "--samples", "2", "--json", "scores.json", "--csv", "scores.csv"],
    "inspect": ["inspect", NIAH, "--length", "64", "--json", "found.json"],
    "check": ["check", *READ, "--devices", "cpu,cpu"],
    "model": ["model", NIAH, "--program"],
    "observe": ["observe", *READ, "--layer", "1", "--token", "9", "--json", "seen.json"],
    "history": ["history", *READ, "--layer", "1", "--slot", "0", "--token", "9"],
    "needle": ["needle", *READ, "--out", "needle.html"],
    "intervene": ["intervene", *READ, "--do", "zero state at 9", "--json", "changed.json"],
    "figure -o a.svg": ["figure", "state", *READ, "-o", "a.svg", "--data", "a.csv", "--caption", "a.txt"],
    "figure -o a.eps": ["figure", "state", *READ, "-o", "a.eps"],
    "batch": ["batch", "batch.json", "--processes", "1"],
    "film": ["film", "state", *READ, "--last", "2", "-o", "a.mp4"],
    "page": ["page", *READ, "--view", "state", "--tokens", "1..2", "-o", "a.html"],
    "dataset": ["dataset", "niah", "--length", "64", "--samples", "2", "-o", "niah.jsonl"],
    "convert": ["convert", MODELS / "gla", "gla.h5"],
    "tokenize": ["tokenize", NIAH, "--text", "the code"],
    "chat": ["chat", ROOT / "tests/golden/chat/qwen35"],
    "manual": ["manual"],
    "--screenshot": ["--screenshot", "a.png", "--size", "900x600", *READ],
    "--screenshot, on a display": ["--screenshot", "a.png", "--size", "900x600", "--no-opengl", *READ],
}
NEEDS = {"film": "ffmpeg", "figure -o a.eps": "pdftops", "--screenshot, on a display": "xvfb-run"}


def traced(program, words, folder, home, on_display):
    logs = folder.parent / "logs"
    logs.mkdir()
    environment = {
        "PATH": os.environ["PATH"],
        "HOME": str(home),
        "LC_ALL": "C.UTF-8",
        "MESA_SHADER_CACHE_DISABLE": "true",
        "TMPDIR": str(folder.parent / "temporary"),
    }
    display = ["xvfb-run", "-a", "-s", "-screen 0 1280x720x24"] if on_display else []
    environment["QT_QPA_PLATFORM"] = "xcb" if on_display else "offscreen"
    subprocess.run(
        [*display, "strace", "-ff", "-qq", "-s", "4096", "-e", f"trace={CALLS}", "-o", logs / "log", program, *map(str, words)],
        cwd=folder,
        env=environment,
        timeout=300,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        check=True,
    )
    return [line for log in sorted(logs.iterdir()) for line in log.read_text(errors="replace").splitlines()]


def named(path, folder, home, temporary):
    """As the table has it; None: not a file that is written."""
    if path in ("/dev/null", "/dev/tty") or path.startswith("/proc/self/"):
        return None
    if path.startswith(str(temporary)):
        return None  # it has to be empty in the end
    return re.sub(r"(^|/)\.([^/]+)\.\d+-\d+\.part", r"\1\2", path).replace(f"{folder}/", "").replace(str(home), "~")


def found_in(lines, program, folder, home, temporary):
    programs, files, sockets, begun = set(), set(), set(), False
    for line in lines:
        call, _, rest = line.partition("(")
        quoted = re.findall(r'"((?:[^"\\]|\\.)*)"', rest)
        if re.search(r"= -1 E(?!INPROGRESS)", rest):
            continue
        if call in ("execve", "execveat") and quoted:
            if begun or quoted[0] != program:
                programs.add(os.path.basename(quoted[0]))
            begun = begun or quoted[0] == program
        elif call == "socket":
            sockets.add(rest.split(",")[0])
        elif call in ("connect", "bind"):
            sockets.add(re.search(r"sa_family=(\w+)", rest)[1])
        elif call in ("rename", "renameat", "renameat2", "link", "linkat", "symlink", "symlinkat"):
            files.add(named(quoted[-1], folder, home, temporary))
        elif call in ("creat", "mkdir", "mkdirat", "truncate", "mknod", "mknodat") or (
            re.search(r"O_WRONLY|O_RDWR|O_CREAT|O_TRUNC", rest) and "O_TMPFILE" not in rest
        ):
            files.add(named(quoted[0], folder, home, temporary))
    return programs, files - {None}, sockets


def table():
    """Of each command what it may start, write and open."""
    rows = {}
    for line in (ROOT / "tests/audit/README.md").read_text(encoding="utf-8").splitlines():
        cells = [cell.strip() for cell in line.strip().strip("|").split("|")]
        if len(cells) == 4 and cells[0].startswith("`"):
            rows[cells[0].strip("`")] = [set(re.findall(r"`([^`]+)`", cell)) for cell in cells[1:]]
    return rows


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program")
    parser.add_argument("--only", choices=COMMANDS)
    arguments = parser.parse_args()
    if not shutil.which("strace"):
        print("skipped: there is no strace")
        return SKIPPED
    program, allowed, wrong = str(pathlib.Path(arguments.program).resolve()), table(), []
    if set(allowed) != set(COMMANDS):
        wrong.append(f"the table and this script name other commands: {', '.join(sorted(set(allowed) ^ set(COMMANDS)))}")
    for name in [arguments.only] if arguments.only else sorted(set(allowed) & set(COMMANDS)):
        if name in NEEDS and not shutil.which(NEEDS[name]):
            print(f"{name}: skipped: there is no {NEEDS[name]}")
            continue
        with tempfile.TemporaryDirectory(prefix="audit-") as work:
            folder, home, temporary = (pathlib.Path(work) / part for part in ("work", "home", "temporary"))
            for part in (folder, home, temporary):
                part.mkdir()
            (folder / "spec.json").write_text('{"panels": [{"view": "state", "checkpoint": "niah-gla.h5", "prompt": "needle.json"}]}')
            (folder / "batch.json").write_text('{"figures": ["spec.json"], "output": "made", "format": "svg"}')
            try:
                lines = traced(program, COMMANDS[name], folder, home, name.endswith("display"))
            except subprocess.CalledProcessError as error:
                if b"PTRACE" in error.output or b"ptrace" in error.output:
                    print("skipped: strace may not trace here")
                    return SKIPPED
                wrong.append(f"{name}: ends with status {error.returncode}: {error.output[-300:].decode(errors='replace')}")
                continue
            did = found_in(lines, program, folder, home, temporary)
            for what, may, has in zip(("programs", "files", "sockets"), allowed[name], did, strict=True):
                if may != has:
                    wrong.append(f"{name}: {what}: the table has {', '.join(sorted(may)) or 'none'}; it was {', '.join(sorted(has)) or 'none'}")
            if left := sorted(path.name for path in temporary.iterdir()):
                wrong.append(f"{name}: left in the folder of temporary files: {', '.join(left)}")
    for line in wrong:
        print(line)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
