#!/usr/bin/env python3
"""How fast browsers open the lessons' pages and step through them.

    tests/bench/page_times.py [--program build/release/statescope] [--lessons forgetting,routing] [--runs 5] [--out RESULTS.json]

Opening: from the navigation to the drawn first step (the page's own mark "ready"), each time in a tab that had another page before. A step: from
the key to the pictures as pixels, of up to 24 tokens on from each step of the lesson, questions answered. Browsers run without a window:
Chromium over its pipe, Firefox over Marionette. One that is missing is skipped."""

import argparse
import json
import os
import pathlib
import platform
import shlex
import shutil
import socket
import statistics
import subprocess
import sys
import tempfile
import time

import measurement

LESSONS = sorted((measurement.ROOT / "assets/lessons").glob("[0-9]-*.md"))
SIZE = (1280, 720)
READY = "document.documentElement?.dataset.ready === 'yes' ? performance.getEntriesByName('ready')[0].startTime : null"
# A key, then what it has drawn: reading a pixel of each canvas waits for all of it.
STEP = """
async function steps() {
  const times = [], wait = () => new Promise((done) => setTimeout(done));
  for (let i = 0; i < 24; ++i) {
    const before = document.documentElement.dataset.token, begin = performance.now();
    dispatchEvent(new KeyboardEvent('keydown', {key: 'ArrowRight'}));
    for (let turn = 0; turn < 12; ++turn) await null;  // until the page's own promises have drawn
    for (const canvas of document.querySelectorAll('#stage canvas')) canvas.getContext('2d').getImageData(0, 0, 1, 1);
    const took = performance.now() - begin;
    if (document.documentElement.dataset.token === before) break;
    times.push(took);
    await wait();
  }
  return times;
}
"""


class Chromium:
    name = "Chromium"
    programs = ("chromium", "chromium-browser", "google-chrome")

    def __init__(self, program, folder):
        to_browser, commands = os.pipe()
        answers, from_browser = os.pipe()
        wanted = [program, "--headless", "--no-sandbox", "--disable-gpu", f"--user-data-dir={folder}", "--remote-debugging-pipe",
                  f"--window-size={SIZE[0]},{SIZE[1]}", "about:blank"]
        # The browser reads from its third descriptor and writes to its fourth.
        shell = ["sh", "-c", f'exec "$@" 3<&{to_browser} 4>&{from_browser}', "sh", *wanted]
        self.process = subprocess.Popen(shell, pass_fds=(to_browser, from_browser), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        os.close(to_browser)
        os.close(from_browser)
        self.commands, self.answers = os.fdopen(commands, "wb", 0), os.fdopen(answers, "rb")
        self.number, self.session, self.buffer = 0, None, b""
        page = next(t for t in self.ask("Target.getTargets")["targetInfos"] if t["type"] == "page")
        self.session = self.ask("Target.attachToTarget", targetId=page["targetId"], flatten=True)["sessionId"]

    def ask(self, method, **parameters):
        self.number += 1
        message = {"id": self.number, "method": method, "params": parameters} | ({"sessionId": self.session} if self.session else {})
        self.commands.write(json.dumps(message).encode() + b"\0")
        while True:
            while b"\0" not in self.buffer:
                self.buffer += os.read(self.answers.fileno(), 1 << 16)
            one, self.buffer = self.buffer.split(b"\0", 1)
            answer = json.loads(one)
            if answer.get("id") == self.number:
                if "error" in answer:
                    raise RuntimeError(answer["error"])
                return answer["result"]

    def version(self):
        return self.ask("Browser.getVersion")["product"].replace("HeadlessChrome", "Chromium").replace("Chrome/", "Chromium/").replace("/", " ")

    def go(self, address):
        self.ask("Page.navigate", url=address)

    def value(self, script):
        result = self.ask("Runtime.evaluate", expression=script, awaitPromise=True, returnByValue=True)
        if "exceptionDetails" in result:
            raise RuntimeError(result["exceptionDetails"])
        return result["result"].get("value")

    def close(self):
        self.process.terminate()
        self.process.wait()


class Firefox:
    name = "Firefox"
    programs = ("firefox-esr", "firefox")

    def __init__(self, program, folder):
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        pathlib.Path(folder, "user.js").write_text(f'user_pref("marionette.port", {port});\nuser_pref("datareporting.policy.dataSubmissionEnabled", false);\n'
                                                   'user_pref("privacy.reduceTimerPrecision", false);\n', encoding="utf-8")
        self.process = subprocess.Popen([program, "--headless", "--no-remote", "--marionette", "--profile", folder, "--width", str(SIZE[0]), "--height",
                                         str(SIZE[1])], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.number, begin = 0, time.monotonic()
        while True:
            try:
                self.stream = socket.create_connection(("127.0.0.1", port)).makefile("rwb", 0)
                break
            except OSError:
                if time.monotonic() - begin > 120:
                    raise
                time.sleep(0.1)
        self.read()
        self.facts = self.ask("WebDriver:NewSession", {})["capabilities"]

    def read(self):
        digits = b""
        while not digits.endswith(b":"):
            digits += self.stream.read(1)
        length, text = int(digits[:-1]), b""
        while len(text) < length:
            text += self.stream.read(length - len(text))
        return json.loads(text)

    def ask(self, command, parameters):
        self.number += 1
        message = json.dumps([0, self.number, command, parameters]).encode()
        self.stream.write(str(len(message)).encode() + b":" + message)
        _, _, error, result = self.read()
        if error:
            raise RuntimeError(error["message"])
        return result

    def version(self):
        return f"Firefox {self.facts['browserVersion']}"

    def go(self, address):
        self.ask("WebDriver:Navigate", {"url": address})

    def value(self, script):
        lines = script.strip().rsplit("\n", 1)
        body = "\n".join(lines[:-1])
        return self.ask("WebDriver:ExecuteAsyncScript", {
            "script": f"const done = arguments[arguments.length - 1]; (async () => {{ {body}\nreturn await ({lines[-1]}); }})().then(done)",
            "args": []})["value"]

    def close(self):
        self.process.terminate()
        self.process.wait()


def opened(browser, address):
    """Milliseconds until the page is ready."""
    browser.go("about:blank")
    browser.go(address)
    begin = time.monotonic()
    while time.monotonic() - begin < 60:
        ready = browser.value(READY)
        if ready is not None:
            return ready
        time.sleep(0.01)
    raise SystemExit(f"{address} is not ready in {browser.name}")


def steps_of(browser, page):
    times = []
    for step in range(1, int(browser.value("document.getElementById('place').textContent").split()[-1]) + 1):
        opened(browser, f"{page.as_uri()}#step={step}&answer=0&token=0")
        times += browser.value(STEP + "steps()")
    return times


def measured(browser, page, runs):
    opening = [opened(browser, page.as_uri() + "#step=1") for _ in range(runs)]
    steps = sorted(steps_of(browser, page))
    return [round(statistics.median(opening)), round(max(opening)), len(steps), round(statistics.median(steps), 1),
            round(steps[int(0.99 * (len(steps) - 1))], 1), round(steps[-1], 1)]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--program", default="build/release/statescope")
    parser.add_argument("--lessons", type=lambda names: names.split(","))
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--out", type=pathlib.Path, help="write the results to this JSON")
    arguments = parser.parse_args()
    lessons = arguments.lessons or [file.stem.split("-", 1)[1] for file in LESSONS]
    rows, versions = [], []
    with tempfile.TemporaryDirectory() as folder:
        pages = {}
        for lesson in lessons:
            pages[lesson] = pathlib.Path(folder, lesson + ".html")
            subprocess.run([arguments.program, "page", lesson, "-o", str(pages[lesson])], check=True, stdout=subprocess.DEVNULL,
                           env=os.environ | {"QT_QPA_PLATFORM": "offscreen"})
        for kind in (Chromium, Firefox):
            program = next(filter(None, map(shutil.which, kind.programs)), None)
            if not program:
                print(f"SKIP: there is no {kind.name}", file=sys.stderr)
                continue
            profile = pathlib.Path(folder, kind.name)
            profile.mkdir()
            browser = kind(program, str(profile))
            try:
                versions.append(browser.version())
                for lesson, page in pages.items():
                    rows.append([lesson, kind.name, round(page.stat().st_size / 1e6, 2), *measured(browser, page, arguments.runs)])
            finally:
                browser.close()
    result = measurement.measurement(
        "Pages of the lessons in a browser: opening one, and a step of a token", shlex.join(sys.argv), f"{os.cpu_count()} cores, {platform.machine()}",
        ["lesson", "browser", "MB", "open ms", "slowest open ms", "steps", "step ms", "step p99 ms", "slowest step ms"], rows,
        f"{', '.join(versions)}, headless, {SIZE[0]} × {SIZE[1]}. Load average {os.getloadavg()[0]:.1f}.")
    print(measurement.text_of(result), end="")
    if arguments.out:
        measurement.write(arguments.out, result)


if __name__ == "__main__":
    main()
