#!/usr/bin/env python3
"""How often `lull why` is right on the corpus: programs as people write them, recorded on an H200 with default options.

    test/corpus/accuracy.py LULL [--set tune|check|all] [--each] [--folder FOLDER] [--write FILE] [--check FILE]

labels.tsv says for each program which fix gained most when it was made, and the time of a round before and after it
without a recorder. Which set a program is in follows from a hash of its name, so nobody chooses. Rules are made by
looking at *tune*; *check* shows what they are worth on programs that they were not made for.

An answer is right if its first cause is one of the labels, mute if there is none, else wrong. Where the device is busy there
is no cause to be named, gpu-bound, and the opportunity that brings most is the answer. The predicted speed-up is
compared with the measured one where the answer is right and there is a prediction. The range that is said for the step
after the fix holds it if that round, measured without a recorder, lies in it.
"""
import argparse
import csv
import hashlib
import json
import os
import statistics
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))


def set_of(name):
    return "tune" if int(hashlib.sha256(name.encode()).hexdigest(), 16) % 2 else "check"


def answer(lull, path, *words):
    done = subprocess.run([lull, "why", "-f", "json", *words, path], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    if not done.stdout:
        return {"first": None, "cannot_tell": done.stderr.decode().strip() or "no answer"}
    return json.loads(done.stdout)


def judge(row, got):
    """The row with what lull said and whether that is right."""
    first = got["first"]
    finding = next((f for f in got.get("findings", []) if f["cause"] == first), {})
    chances = got.get("opportunities") or []
    confidence = finding.get("confidence")
    if first == "gpu-bound" and first not in row["label"].split(",") and chances:
        first, finding = chances[0]["opportunity"], chances[0]
    prediction = finding.get("prediction") or {}
    ratio = prediction.get("speedup")
    true = float(row["round_ms"]) / float(row["fixed_ms"]) if row["fixed_ms"] not in ("", "None", None) else None
    steps = got.get("steps") or {}
    # A round of the program may be several steps: those that were recorded say how many.
    after_ns = float(row["fixed_ms"]) / float(row["recorded_ms"]) * steps["mean_ns"] if true and steps else None
    in_range = prediction["low_ns"] <= after_ns <= prediction["high_ns"] if ratio and after_ns else None
    # Its two sides: the step without a recorder, as it is and after the fix, over what they were.
    base = steps["unrecorded_ns"] / (after_ns * true) if ratio and after_ns else None
    after = prediction["step_ns"] / after_ns if ratio and after_ns else None
    return dict(row, base=base, after=after, first=first, verdict="mute" if not first else "right" if first in row["label"].split(",") else "wrong",
                confidence=confidence, predicted=ratio, true=true, in_range=in_range,
                round=(steps.get("mean_ns") or 0) / 1e6, is_probable=got.get("is_probable", False),
                why=got.get("cannot_tell"))


def predicted(rows):
    return [r for r in rows if r["verdict"] == "right" and r["predicted"] and r["true"] and r["first"] != "gpu-bound"]


def far(ratios):
    """How far off each is, as a factor of at least 1."""
    return sorted(max(ratio, 1 / ratio) for ratio in ratios)


def errors(rows):
    """How far off predictions are."""
    return far(r["predicted"] / r["true"] for r in predicted(rows))


def tail_of(off):
    return off[min(len(off) - 1, int(0.9 * len(off)))]


def line(name, rows):
    count = {v: sum(r["verdict"] == v for r in rows) for v in ("right", "wrong", "mute")}
    off = errors(rows)
    middle = "%.2f x" % statistics.median(off) if off else "-"
    tail = "%.2f x" % tail_of(off) if off else "-"
    near = "%d of %d" % (sum(e <= 1.3 for e in off), len(off))
    held = "%d of %d" % (sum(r["in_range"] for r in predicted(rows)), len(off))
    return [name, len(rows), count["right"], count["wrong"], count["mute"], middle, tail, near, held]


BEGIN, END = "<!-- table: make accuracy -->", "<!-- end of table -->"
HEAD = ["programs", "n", "right", "wrong", "mute", "off by (median)", "nine in ten", "within 30 %", "in its range"]


SURE_BEGIN, SURE_END = "<!-- table: confidence -->", "<!-- end of confidence -->"
SURE_HEAD = ["confidence", "n", "said (mean)", "right"]


def sure_table(rows):
    """Whether the confidence means what it says: of answers with 0.8, eight in ten are right."""
    table = [SURE_HEAD]
    for name in ("tune", "check"):
        part = [r for r in rows if set_of(r["name"]) == name and r["confidence"] is not None]
        for title, least, end in (("below 0.9", 0, 0.9), ("0.9 and more", 0.9, 2)):
            some = [r for r in part if least <= r["confidence"] < end]
            if some:
                said = sum(r["confidence"] for r in some) / len(some)
                right = sum(r["verdict"] == "right" for r in some)
                table.append(["%s, %s" % (name, title), len(some), "%.2f" % said, "%.2f" % (right / len(some))])
    return table


PARTS_BEGIN, PARTS_END = "<!-- table: parts -->", "<!-- end of parts -->"
PARTS_HEAD = ["what", "said / measured (middle)", "off by (median)", "nine in ten", "within 30 %"]


def parts_table(rows):
    """Which side of a predicted speed-up is off."""
    table = [PARTS_HEAD]
    for name in ("tune", "check"):
        part = predicted([r for r in rows if set_of(r["name"]) == name])
        for title, values in (("step without a recorder", [r["base"] for r in part]),
                              ("step after the fix", [r["after"] for r in part]),
                              ("speed-up", [r["predicted"] / r["true"] for r in part])):
            off = far(values)
            if off:
                table.append(["%s, %s" % (name, title), "%.2f" % statistics.median(values), "%.2f x" % statistics.median(off),
                              "%.2f x" % tail_of(off), "%d of %d" % (sum(e <= 1.3 for e in off), len(off))])
    return table


TWICE_BEGIN, TWICE_END = "<!-- table: twice -->", "<!-- end of twice -->"


def twice_table(lull, data, rows):
    """Whether a program that is recorded a second time gets the same first cause."""
    table = [["recorded twice", "n", "same first cause"]]
    for name in ("tune", "check"):
        n = same = 0
        for r in rows:
            path = os.path.join(data, "second", r["name"] + ".lull")
            if set_of(r["name"]) == name and os.path.exists(path):
                n += 1
                same += answer(lull, path)["first"] == r["first"]
        if n:
            table.append([name, n, same])
    return table


def lines_of(table, is_markdown=False):
    table = [[str(c) for c in r] for r in table]
    widths = [max(len(r[i]) for r in table) for i in range(len(table[0]))]
    for n, row in enumerate(table):
        cells = [c.ljust(w) if not i else c.rjust(w) for i, (c, w) in enumerate(zip(row, widths))]
        yield "| " + " | ".join(cells) + " |" if is_markdown else "  ".join(cells).rstrip()
        if is_markdown and not n:
            yield "|" + "|".join(("-" * (w + 1) + ":" if i else "-" * (w + 2)) for i, w in enumerate(widths)) + "|"


def read(path):
    with open(path) as f:
        return f.read()


def with_table(text, table, begin=BEGIN, end=END):
    """The text with this table between its marks."""
    first, last = text.index(begin) + len(begin), text.index(end)
    return text[:first] + "\n" + "\n".join(lines_of(table, True)) + "\n" + text[last:]


def main():
    options = argparse.ArgumentParser()
    options.add_argument("lull")
    options.add_argument("--set", default="all")
    options.add_argument("--each", action="store_true", help="a line for each program (of tune alone, unless asked)")
    options.add_argument("--folder", default=HERE)
    options.add_argument("--write", metavar="FILE", help="put the table between the marks of this Markdown file, too")
    options.add_argument("--check", metavar="FILE", help="fail if that file has another table")
    o = options.parse_args()
    with open(os.path.join(o.folder, "labels.tsv")) as f:
        rows = list(csv.DictReader(f, delimiter="\t"))
    data = os.path.join(o.folder, "data")
    data = data if os.path.isdir(data) else o.folder
    rows = [r for r in rows if o.set in ("all", set_of(r["name"])) and os.path.exists(os.path.join(data, r["name"] + ".lull"))]
    rows = [judge(r, answer(o.lull, os.path.join(data, r["name"] + ".lull"))) for r in rows]
    table = [HEAD]
    for name in ("tune", "check"):
        part = [r for r in rows if set_of(r["name"]) == name]
        if part:
            table.append(line(name, part))
    for kind in sorted({r["kind"] for r in rows}):
        table.append(line("  " + kind, [r for r in rows if r["kind"] == kind]))
    if o.each:
        shown = [r for r in rows if o.set == "check" or set_of(r["name"]) == "tune"]
        print("\n".join(lines_of(
            [["program", "label", "answer", "", "sure", "round ms", "recorded", "true", "predicted"]] +
            [[r["name"], r["label"], r["first"] or "-", r["verdict"] + (" (probably)" if r["is_probable"] else ""),
              "%.2f" % r["confidence"] if r["confidence"] is not None else "-", "%.2f" % r["round"], r["recorded_ms"],
              "%.2f" % r["true"] if r["true"] else "-", "%.2f" % r["predicted"] if r["predicted"] else "-"]
             for r in shown])), end="\n\n")
    sure = sure_table(rows)
    twice = twice_table(o.lull, data, rows)
    parts = parts_table(rows)
    print("\n".join([*lines_of(table), "", *lines_of(parts), "", *lines_of(sure), "", *lines_of(twice)]))
    for path in filter(None, (o.write, o.check)):
        text = with_table(with_table(read(path), table), sure, SURE_BEGIN, SURE_END)
        text = with_table(text, twice, TWICE_BEGIN, TWICE_END)
        text = with_table(text, parts, PARTS_BEGIN, PARTS_END)
        if path == o.check and text != read(path):
            print("%s has other tables: look at what changed (--each), then run `make accuracy`" % path)
            return 1
        with open(path, "w") as f:
            f.write(text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
