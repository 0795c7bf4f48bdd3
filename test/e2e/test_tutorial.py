#!/usr/bin/env python3
"""The tutorial says what the commands print: each is run again and compared.

Usage: test_tutorial.py LULL [NAME...]
       test_tutorial.py LULL --accept

Blocks that begin with ```console hold commands ("$ lull ...") and what they print, up to the next command
or the end of the block. A line "..." stands for any number of lines. Commands run in the root of the tree,
where the reports of the tutorial lie; those that need a GPU are in blocks of another kind, and so is what
they print. --accept writes what is printed into the blocks that leave nothing out.
"""
import os
import re
import subprocess
import sys

import runner

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
LULL = os.path.abspath(sys.argv[1])
TUTORIAL = os.path.join(ROOT, "doc/tutorial.md")
BLOCK = re.compile(r"^```console\n(.*?)^```$", re.S | re.M)


def runs(block):
    """The commands of a block, each with the lines after it."""
    out = []
    for line in block.splitlines():
        if line.startswith("$ "):
            out.append((line[2:], []))
        elif out:
            out[-1][1].append(line)
        else:
            sys.exit(f"test_tutorial: a block begins with {line!r}, not with a command")
    return out


def printed(command):
    env = dict(os.environ, PATH=os.path.dirname(LULL) + ":" + os.environ["PATH"], LC_ALL="C.UTF-8")
    env.pop("COLUMNS", None)
    done = runner.run(command, shell=True, env=env, cwd=ROOT, stdin=subprocess.DEVNULL, stderr=subprocess.STDOUT)
    return [line.rstrip() for line in done.stdout.rstrip("\n").splitlines()]


def fits(said, got):
    """Whether `got` is what was said, "..." standing for any lines."""
    if not said:
        return not got
    if said[0] == "...":
        return any(fits(said[1:], got[i:]) for i in range(len(got) + 1))
    return bool(got) and said[0] == got[0] and fits(said[1:], got[1:])


def check(command, said):
    got = printed(command)
    runner.expect(command, fits(said, got), "the tutorial says\n  " + "\n  ".join(said) + "\nbut it prints\n  " + "\n  ".join(got))


def accept(text):
    """The tutorial with what is printed in the blocks that leave nothing out."""
    for block in BLOCK.findall(text):
        fresh = []
        for command, said in runs(block):
            fresh += ["$ " + command] + (said if "..." in said else printed(command))
        text = text.replace("```console\n" + block + "```", "```console\n" + "\n".join(fresh) + "\n```", 1)
    return text


def main():
    with open(TUTORIAL, encoding="utf-8") as f:
        text = f.read()
    if "--accept" in sys.argv:
        with open(TUTORIAL, "w", encoding="utf-8") as f:
            f.write(accept(text))
        return
    commands = [run for block in BLOCK.findall(text) for run in runs(block)]
    runner.main([runner.named(f"command_{i}_{' '.join(command.split()[:2])}", check, command, said)
                 for i, (command, said) in enumerate(commands, 1)], sys.argv[2:])


if __name__ == "__main__":
    main()
