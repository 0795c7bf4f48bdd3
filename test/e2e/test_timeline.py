#!/usr/bin/env python3
"""`lull timeline` says what `lull why` says: for each step of real recordings, the same causes with the same times.

Usage: test_timeline.py BUILD [NAME...]

It is also looked at as a picture: no line is wider than asked for, and none of a kind is missing.
"""
import glob
import json
import os
import re
import struct
import subprocess
import sys
import tempfile
import zlib

import runner

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
LULL = os.path.join(os.path.abspath(sys.argv[1]), "lull")
UNITS = {"ns": 1, "us": 1e3, "ms": 1e6, "s": 1e9}
COST = re.compile(r"^  (\S)  ([a-z-]+) +([0-9.]+) (ns|us|ms|s) +\d+ %$", re.M)
RECORDINGS = ["torch/train.lull", "torch/dataloader_cpu.lull", "torch/launch_bound.lull", "planted/sync_item.lull"]


def lull(*words):
    env = dict(os.environ, LC_ALL="C.UTF-8", NO_COLOR="1")
    done = subprocess.run([LULL, *words], cwd=ROOT, env=env, capture_output=True, text=True, timeout=runner.limit())
    runner.expect(" ".join(words), done.returncode == 0, done.stderr)
    return done.stdout


def recordings():
    found = [os.path.join("test/data", name) for name in RECORDINGS]
    return [path for path in found if os.path.exists(os.path.join(ROOT, path))] + sorted(
        glob.glob("test/corpus/data/[a-d]*.lull", root_dir=ROOT))


def is_close(ns, shown):
    """Whether three digits or two decimals of a millisecond show this number."""
    return abs(ns - shown) <= max(0.006 * ns, 5001)


def each_step_has_the_causes_of_why():
    n_checked = 0
    for path in recordings():
        steps = json.loads(lull("why", "--format=json", path))["steps"]
        if steps["source"] in ("step", "hook", "none"):
            continue
        for i in range(0, len(steps["each"]), max(7, len(steps["each"]) // 5)):
            said = steps["each"][i]["causes"]
            drawn = {c: float(n) * UNITS[u] for _, c, n, u in COST.findall(lull("timeline", f"--step={steps['warm_up'] + i}", path))}
            runner.expect(f"{path} step {i}: causes", set(drawn) == set(said), f"{drawn} instead of {said}")
            for cause, ns in said.items():
                runner.expect(f"{path} step {i}: {cause}", is_close(ns, drawn[cause]), f"{drawn[cause]} instead of {ns}")
            n_checked += 1
    runner.expect("steps to compare", n_checked >= 20, n_checked)


def letters_of_the_picture_are_in_the_list():
    for path in recordings():
        text = lull("timeline", "--width=120", path)
        idle = "".join(line[14:] for line in text.splitlines() if line.startswith("idle, why"))
        known = {letter for letter, *_ in COST.findall(text)}
        runner.expect(path, set(idle.upper()) - {" "} <= known, f"{sorted(set(idle))} with the list {sorted(known)}")


def no_line_is_wider_than_asked_for():
    for path in recordings():
        for width in (80, 120, 200, 333):
            for words in ([], ["--ascii"]):
                text = lull("timeline", f"--width={width}", *words, path)
                wide = [line for line in text.splitlines() if len(line) > width]
                runner.expect(f"{path} at {width}", not wide, wide)
                if words:
                    runner.expect(f"{path}: ASCII", text.isascii(), text)


def read_png(data):
    """(width, height, rows of palette indices) of a PNG with a palette, its CRCs checked."""
    runner.expect("the first bytes", data[:8] == b"\x89PNG\r\n\x1a\n", data[:8])
    chunks, at = {}, 8
    while at < len(data):
        size, = struct.unpack(">I", data[at:at + 4])
        kind, body = data[at + 4:at + 8], data[at + 8:at + 8 + size]
        crc, = struct.unpack(">I", data[at + 8 + size:at + 12 + size])
        runner.expect(f"the CRC of {kind}", crc == zlib.crc32(kind + body), crc)
        chunks[kind] = body
        at += 12 + size
    width, height, depth, colours, *rest = struct.unpack(">IIBBBBB", chunks[b"IHDR"])
    runner.expect("its head", (depth, colours, rest) == (8, 3, [0, 0, 0]) and b"IEND" in chunks, chunks[b"IHDR"])
    raw = zlib.decompress(chunks[b"IDAT"])
    runner.expect("its size", len(raw) == height * (width + 1), len(raw))
    rows = [raw[y * (width + 1):(y + 1) * (width + 1)] for y in range(height)]
    runner.expect("no filter", all(row[0] == 0 for row in rows))
    runner.expect("colours are in the palette", max(max(row) for row in rows) < len(chunks[b"PLTE"]) // 3)
    return width, height, [row[1:] for row in rows]


def a_picture_shows_the_same():
    """Blocks are bars of their height, blanks are empty, and anything else is neither empty nor full."""
    margin, cell_width, cell_height, white = 8, 12, 20, 9
    for path in recordings()[:1]:
        lines = lull("timeline", "--width=100", path).splitlines()
        with tempfile.TemporaryDirectory() as folder:
            name = os.path.join(folder, "a.png")
            lull("timeline", "--width=100", f"--png={name}", path)
            with open(name, "rb") as f:
                width, height, rows = read_png(f.read())
            done = subprocess.run([LULL, "timeline", f"--png={name}", path], cwd=ROOT, capture_output=True, text=True,
                                  timeout=runner.limit())
            runner.expect("a file is not replaced", done.returncode == 1 and "exists" in done.stderr, done.stderr)
            lull("timeline", "--force-overwrite", f"--png={name}", path)
        runner.expect("its size", (width, height) == (2 * margin + cell_width * max(map(len, lines)),
                                                      2 * margin + cell_height * len(lines)), (width, height))
        n_bars = 0
        for y, line in enumerate(lines):
            for x, c in enumerate(line):
                box = [row[margin + x * cell_width:margin + (x + 1) * cell_width]
                       for row in rows[margin + y * cell_height:margin + (y + 1) * cell_height]]
                inked = [any(pixel != white for pixel in row) for row in box]
                if c == " ":
                    runner.expect(f"{path} {y}:{x} is empty", not any(inked), box)
                elif "\u2581" <= c <= "\u2588":
                    bar = cell_height * (ord(c) - 0x2580) // 8
                    runner.expect(f"{path} {y}:{x} is a bar", inked == [False] * (cell_height - bar) + [True] * bar, inked)
                    n_bars += 1
                else:
                    flat = b"".join(box)
                    runner.expect(f"{path} {y}:{x} is {c}", 1 < len(set(flat)), flat)
        runner.expect("there are bars", n_bars > 20, n_bars)


def lines_of_ranks(text, n_columns=14):
    return {int(m[1]): m[0][n_columns:] for m in re.finditer(r"^rank (\d+) .*$", text, re.M)}


def ranks_have_the_causes_of_their_reports():
    """All steady steps of a job: the mean over ranks of what `lull why` says of each."""
    for job in ("test/data/ranks/slow4", "test/data/ranks/even2"):
        whys = [json.loads(lull("why", "--format=json", path))
                for path in sorted(glob.glob(os.path.join(job, "*.lull"), root_dir=ROOT))]
        steps = json.loads(lull("why", "--format=json", job))["steps"]
        text = lull("timeline", "--step=1", f"--steps={steps}", job)
        drawn = {c: float(n) * UNITS[u] for _, c, n, u in COST.findall(text)}
        for cause, shown in drawn.items():
            ns = sum(why["device"]["costs_ns"].get(cause, 0) for why in whys) / len(whys)
            runner.expect(f"{job}: {cause}", is_close(ns, shown), f"{shown} instead of {ns}")
        runner.expect(f"{job}: all causes", set(drawn) == {c for why in whys for c in why["device"]["costs_ns"]}, drawn)
        runner.expect(f"{job}: a line for each rank", sorted(lines_of_ranks(text)) == list(range(len(whys))), text)


def ranks_wait_while_the_late_one_prepares():
    text = lull("timeline", "--width=120", "test/data/ranks/slow4")
    ranks = lines_of_ranks(text)
    late = [i for i, letter in enumerate(ranks[1]) if letter == "I"]
    runner.expect("rank 1 loads data", len(late) > 30, text)
    runner.expect("the others do not", not any("I" in ranks[i] for i in (0, 2, 3)), text)
    for i in (0, 2, 3):
        waits = sum(ranks[i][at] == "C" for at in late)
        runner.expect(f"rank {i} waits meanwhile, after its own work", waits > 0.6 * len(late), text)
    runner.expect("who is late", "Rank 1 comes 36.54 ms after the others: input-pipeline." in text, text)
    runner.expect("no line is wider", max(map(len, text.splitlines())) <= 120, text)
    ascii_text = lull("timeline", "--ascii", "test/data/ranks/slow4")
    runner.expect("only ASCII", ascii_text.isascii() and "=" in lines_of_ranks(ascii_text)[0], ascii_text)


if __name__ == "__main__":
    runner.main([each_step_has_the_causes_of_why, ranks_have_the_causes_of_their_reports,
                 ranks_wait_while_the_late_one_prepares, letters_of_the_picture_are_in_the_list,
                 no_line_is_wider_than_asked_for, a_picture_shows_the_same], sys.argv[2:])
