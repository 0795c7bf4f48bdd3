#!/usr/bin/env python3
"""What lull promises to people: the blocks of test/promises, each a wish, the commands that fulfil it, and what they print.

Usage: test_promises.py BUILD [NAME...]
       test_promises.py BUILD --accept [NAME...]

A file of test/promises is an AREA. Text before its first block is a comment. A block is one case, AREA/TITLE:

    ## What a person wants to do, in one sentence
    = G12 B3                                   # the things of INDEX.tsv that it shows
    ? command                                  # why the block is skipped where this command fails
    $ lull stats -r steps torch/train.lull
    what it prints, errors included
    [1]

- `...` within a line stands for anything, a line `...` for any number of lines. Runs of blanks are equal, empty lines do
  not count. A command without lines after it prints nothing. [N] is its exit status, if that is not 0.
- A line `> ...` right after a command belongs to it, for programs that the shell reads.
- A block `## setup` at the head of a file runs once for all its blocks; what it writes is in the folder of each of them,
  and what it prints counts only if there are lines for it.

Commands run by sh in a scratch folder, with lull, train_cuda and lull-job in PATH, and the libraries of the simulated device.
$PORT is a port that is free.
The folders of test/data are there by name, test/corpus/data as corpus, examples/reports as reports, and test/e2e as e2e.

--accept writes what is printed into the blocks that leave nothing out.
"""
import atexit
import functools
import glob
import os
import re
import shutil
import subprocess
import sys
import tempfile

import runner
from runner import expect

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BUILD = os.path.abspath(sys.argv[1])
FILES = sorted(glob.glob(os.path.join(ROOT, "test/promises/*.txt")))
PORT = str(runner.free_port())
STATUS = re.compile(r"\[(\d+)\]$")


class Command:
    """A command, and the lines after it."""

    def __init__(self, text):
        self.text, self.said = text, []

    def expected(self):
        """(lines, status)"""
        lines = [line for line in self.said if line]
        status = STATUS.match(lines[-1]) if lines else None
        return (lines[:-1], int(status[1])) if status else (lines, 0)


class Block:
    def __init__(self, title):
        self.title, self.shows, self.needs, self.commands = title, [], [], []

    def add(self, line):
        if line.startswith("= ") and not self.commands:
            self.shows += line[2:].split()
        elif line.startswith("? "):
            self.needs.append(line[2:])
        elif line.startswith("$ "):
            self.commands.append(Command(line[2:]))
        elif not self.commands:
            expect(f"'{self.title}' begins with a command", not line, line)
        elif re.match(r">( |$)", line) and not self.commands[-1].said:
            self.commands[-1].text += "\n" + line[2:]
        else:
            self.commands[-1].said.append(line)


def parse(text):
    """The blocks of a file."""
    blocks = []
    for line in map(str.rstrip, text.splitlines()):
        if line.startswith("## "):
            blocks.append(Block(line[3:]))
        elif blocks:
            blocks[-1].add(line)
    return blocks


def line_fits(said, got):
    parts = map(re.escape, " ".join(said.split()).split("..."))
    return re.fullmatch(".*".join(parts), " ".join(got.split())) is not None


def missing(said, got):
    """The first line that is not there, or None. Lines between two `...` are searched for where they come first."""
    runs = [[]]
    for line in said:
        if line == "...":
            runs.append([])
        else:
            runs[-1].append(line)
    at = 0
    for i, run in enumerate(runs):
        is_free = 0 < i < len(runs) - 1
        if 0 < i == len(runs) - 1:
            at = max(at, len(got) - len(run))  # the last ones end it
        found = find(run, got, at, is_free)
        if found is None:
            return first_bad(run, got, at, is_free)
        at = found + len(run)
    return f"nothing more than {at} lines" if at < len(got) else None


def find(run, got, at, is_free):
    """Where these lines are, at `at` or, if free, after it."""
    for start in range(at, len(got) - len(run) + 1 if is_free else at + 1):
        if len(got) - start >= len(run) and all(map(line_fits, run, got[start:])):
            return start
    return None


def first_bad(run, got, at, is_free):
    """The line of a run at which the longest fit ends."""
    best = 0
    for start in range(at, len(got) + 1 if is_free else at + 1):
        n = 0
        while n < len(run) and start + n < len(got) and line_fits(run[n], got[start + n]):
            n += 1
        best = max(best, n)
    return run[min(best, len(run) - 1)]


def environment():
    env = {name: value for name, value in os.environ.items() if name not in ("COLUMNS", "LULL_CONFIG")}
    env.update(PATH=":".join([BUILD, BUILD + "/examples", BUILD + "/sim", env["PATH"]]), LC_ALL="C.UTF-8",
               LD_LIBRARY_PATH=BUILD + "/sim", PYTHONDONTWRITEBYTECODE="1", PORT=PORT)
    return env


def run(command):
    """(lines, status) of a command of sh, in the present folder."""
    done = runner.run(["sh", "-c", command], env=environment(), stdin=subprocess.DEVNULL, stderr=subprocess.STDOUT,
                      errors="replace")
    lines = [line.rstrip() for line in done.stdout.splitlines()]
    return [line for line in lines if line], done.returncode


def check(command):
    said, status = command.expected()
    got, ended = run(command.text)
    bad = missing(said, got)
    text = "\n  ".join(got)
    expect(f"$ {command.text}\nshould print", bad is None, f"{bad}\nbut it prints\n  {text}")
    expect(f"$ {command.text}\nshould end with {status}", ended == status, f"{ended}\n  {text}")


def link(folder):
    """All that lies in a folder, in this one."""
    for name in sorted(os.listdir(folder)):
        if not os.path.lexists(name):
            os.symlink(os.path.join(folder, name), name)


def link_data():
    for folder in glob.glob(os.path.join(ROOT, "test/data/*/")):
        os.symlink(folder.rstrip("/"), os.path.basename(folder.rstrip("/")))
    os.symlink(os.path.join(ROOT, "test/corpus/data"), "corpus")
    os.symlink(os.path.join(ROOT, "examples/reports"), "reports")
    os.symlink(os.path.join(ROOT, "test/e2e"), "e2e")


class Area:
    """A file, and the folder that its setup fills when the first of its blocks is run."""

    def __init__(self, path):
        self.path, self.name = path, os.path.basename(path)[:-len(".txt")]
        with open(path, encoding="utf-8") as f:
            self.text = f.read()
        blocks = parse(self.text)
        self.setup = [b for b in blocks if b.title == "setup"]
        self.blocks = [b for b in blocks if b.title != "setup"]

    @functools.cached_property
    def folder(self):
        folder = tempfile.mkdtemp(prefix="lull-promises-")
        atexit.register(shutil.rmtree, folder, ignore_errors=True)
        here = os.getcwd()
        os.chdir(folder)
        try:
            link_data()
            for command in (c for b in self.setup for c in b.commands):
                said, status = command.expected()
                got, ended = run(command.text)
                expect(f"setup: {command.text}", ended == status and not (said and missing(said, got)), "\n".join(got))
        finally:
            os.chdir(here)
        return folder

    def prepare(self, block):
        link(self.folder)
        for need in block.needs:
            command, _, why = need.partition("#")
            if run(command)[1]:
                runner.skip(why.strip() or f"'{command.strip()}' fails here")

    def check(self, block):
        self.prepare(block)
        expect(block.title, block.commands, "there is no command")
        for command in block.commands:
            check(command)

    def accept(self, block):
        """Put what is printed into the text."""
        self.prepare(block)
        for command in block.commands:
            got, ended = run(command.text)
            if any("..." in line for line in command.said):
                continue
            old = "$ " + command.text.replace("\n", "\n> ") + "\n" + "".join(line + "\n" for line in command.said)
            end = [""] if command.said and not command.said[-1] else []
            fresh = got + ([f"[{ended}]"] if ended else []) + end
            new = "$ " + command.text.replace("\n", "\n> ") + "\n" + "".join(line + "\n" for line in fresh)
            expect("the block as it was read", old in self.text, old)
            self.text = self.text.replace(old, new, 1)
        with open(self.path, "w", encoding="utf-8") as f:
            f.write(self.text)


# ---- that a block can fail ----


def outcome(text):
    """What is wrong with the blocks of a text, or ""."""
    try:
        for block in parse(text):
            for command in block.commands:
                check(command)
    except AssertionError as why:
        return str(why)
    return ""


def a_wrong_line_fails():
    for said in ("one\nthree", "one", "one\ntwo\nthree", "two", "...\none", "two\n...", "one\n...\nthree", "...\none\n...\none\n...",
                 "o...\nth...", ""):
        expect(repr(said), outcome(f"## x\n$ echo one; echo two\n{said}\n"), "passed")
    for said in ("one\ntwo", "...", "one\n...", "...\ntwo", "...\none\ntwo\n...", "...ne\n...", "one\n\ntwo", "o...\nt...o"):
        expect(repr(said), not outcome(f"## x\n$ echo one; echo two\n{said}\n"), outcome(f"## x\n$ echo one; echo two\n{said}\n"))
    expect("runs of blanks", not outcome("## x\n$ echo 'a    b  c'\na b   c\n"))
    expect("errors are output", outcome("## x\n$ echo bad >&2\n"))
    expect("letters that regular expressions know", outcome("## x\n$ echo axb\na.b\n"))


def a_wrong_status_fails():
    expect("a failure that nobody expects", outcome("## x\n$ false\n"))
    expect("one that is expected", not outcome("## x\n$ false\n[1]\n"))
    expect("another one", "should end with 1: 3" in outcome("## x\n$ echo a; exit 3\na\n[1]\n"))
    expect("none", outcome("## x\n$ true\n[1]\n"))
    expect("the second command", outcome("## x\n$ true\n$ false\n"))


def a_block_without_a_command_fails():
    expect("text first", "begins with a command" in outcome("## x\nsome text\n$ true\n"))
    expect("a program for the shell", not outcome("## x\n$ cat <<END\n> a\n> b\n> END\na\nb\n"))


def every_thing_is_shown_and_every_promise_shows_one():
    with open(os.path.join(ROOT, "test/promises/INDEX.tsv"), encoding="utf-8") as f:
        rows = [line.rstrip("\n").split("\t") for line in f if not line.startswith("#")]
    things = [row[0] for row in rows]
    expect("a name and a thing on each line", all(len(row) == 2 and all(row) for row in rows), rows)
    expect("each has a name of its own", len(things) == len(set(things)), things)
    shown = {thing for area in AREAS for block in area.blocks for thing in block.shows}
    expect("things that no promise shows", not set(things) - shown, set(things) - shown)
    expect("things that are not in the table", not shown - set(things), shown - set(things))
    without = [f"{area.name}/{block.title}" for area in AREAS for block in area.blocks if not block.shows]
    expect("promises that show nothing of the table", not without, without)


def titles_are_different():
    names = [runner.slug(f"{area.name}/{block.title}") for area in AREAS for block in area.blocks]
    twice = {name for name in names if names.count(name) > 1}
    expect("blocks of the same name", not twice, twice)


AREAS = [Area(path) for path in FILES]
ITSELF = [a_wrong_line_fails, a_wrong_status_fails, a_block_without_a_command_fails, every_thing_is_shown_and_every_promise_shows_one,
          titles_are_different]


def main():
    is_accepted = "--accept" in sys.argv
    cases = [] if is_accepted else list(ITSELF)
    for area in AREAS:
        for block in area.blocks:
            cases.append(runner.named(f"{area.name}/{block.title}", area.accept if is_accepted else area.check, block))
    runner.main(cases, sys.argv[2:])


if __name__ == "__main__":
    main()
