#!/usr/bin/env python3
"""Two programs read the pages of doc/: tools/md2man for man(1), src/text/markdown.c for lull help. They have to say the same.

Usage: test_manual.py BUILD [NAME...]
"""
import glob
import os
import re
import sys

import runner
from runner import expect

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
LULL = os.path.abspath(os.path.join(sys.argv[1], "lull"))
PAGES = sorted(glob.glob(os.path.join(ROOT, "doc/*.[1-9].md")))


def of_man(page):
    """What man(1) would show: the text without the commands of troff. Its head is a line that it makes itself."""
    lines = []
    for line in runner.run([os.path.join(ROOT, "tools/md2man"), "0", page], check=True).stdout.splitlines():
        if line.startswith((".SH ", ".SS ")):
            line = line[4:]
        elif line.startswith("."):
            continue
        lines.append(re.sub(r"\\f[BIR]|\\&", "", line).replace("\\-", "-").replace("\\e", "\\"))
    return "\n".join(lines)


def of_help(page):
    """The same by lull help, without its first line, the title."""
    name = os.path.basename(page).rsplit(".", 2)[0]
    text = runner.run([LULL, "help", re.sub("^lull-", "", name)], check=True).stdout
    title, rest = text.split("\n", 1)
    expect("title", title.strip() == f"{name}({page[-4]})", title)
    return rest


def letters(text):
    """All that is read aloud, and what only Markdown needs. Bullets and lines of tables are drawn in two ways."""
    return re.sub(r"[^\w\\]", "", text)


def both_show_the_same_text():
    """In the same order; cells of tables are broken into lines by one of them, so there only the letters are counted."""
    for page in PAGES:
        with open(page, encoding="utf-8") as f:
            has_table = re.search(r"^\|", f.read(), re.M)
        man, shown = letters(of_man(page)), letters(of_help(page))
        if has_table:
            man, shown = sorted(man), sorted(shown)
        at = next((i for i, (a, b) in enumerate(zip(man, shown)) if a != b), min(len(man), len(shown)))
        expect(os.path.basename(page), man == shown, f"man: {man[at:at + 60]}\nhelp: {shown[at:at + 60]}")
    expect("pages", len(PAGES) > 20, PAGES)


if __name__ == "__main__":
    runner.main((both_show_the_same_text,), sys.argv[2:])
