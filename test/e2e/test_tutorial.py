#!/usr/bin/env python3
"""The tutorial says what the commands print: each is run again and compared.

Usage: test_tutorial.py LULL [TUTORIAL] [--accept]

Blocks that begin with ```console hold commands ("$ lull ...") and what they print, up to the next command
or the end of the block. A line "..." stands for any number of lines. Commands run in the root of the tree,
where the reports of the tutorial lie; those that need a GPU are in blocks of another kind, and so is what
they print. --accept writes what is printed into the blocks that leave nothing out.
"""
import os
import re
import subprocess
import sys

BLOCK = re.compile(r"^```console\n(.*?)^```$", re.S | re.M)


def runs(block):
    """The commands of a block, each with the lines behind it."""
    out = []
    for line in block.splitlines():
        if line.startswith("$ "):
            out.append((line[2:], []))
        elif out:
            out[-1][1].append(line)
        else:
            sys.exit(f"test_tutorial: a block begins with {line!r}, not with a command")
    return out


def printed(lull, command):
    env = dict(os.environ, PATH=os.path.dirname(os.path.abspath(lull)) + ":" + os.environ["PATH"], LC_ALL="C.UTF-8")
    env.pop("COLUMNS", None)
    done = subprocess.run(command, shell=True, env=env, text=True, timeout=120, stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    return [line.rstrip() for line in done.stdout.rstrip("\n").splitlines()]


def fits(said, got):
    """Whether `got` is what was said, "..." standing for any lines."""
    if not said:
        return not got
    if said[0] == "...":
        return any(fits(said[1:], got[i:]) for i in range(len(got) + 1))
    return bool(got) and said[0] == got[0] and fits(said[1:], got[1:])


def main():
    arguments = [a for a in sys.argv[1:] if a != "--accept"]
    lull, path = arguments[0], arguments[1] if len(arguments) > 1 else "doc/tutorial.md"
    text = open(path).read()
    n = failed = 0
    for block in BLOCK.findall(text):
        fresh = []
        for command, said in runs(block):
            got = printed(lull, command)
            n += 1
            fresh += ["$ " + command] + (said if "..." in said else got)
            if fits(said, got):
                continue
            failed += 1
            if "--accept" not in sys.argv:
                print(f"test_tutorial: {command}: the tutorial says\n  " + "\n  ".join(said) + "\nbut it prints\n  " + "\n  ".join(got))
        if "--accept" in sys.argv:
            text = text.replace("```console\n" + block + "```", "```console\n" + "\n".join(fresh) + "\n```", 1)
    if "--accept" in sys.argv:
        open(path, "w").write(text)
    elif not n:
        sys.exit("test_tutorial: no command found")
    print(f"test_tutorial: {n} commands, {failed} {'written' if '--accept' in sys.argv else 'failed'}")
    sys.exit(bool(failed) and "--accept" not in sys.argv)


if __name__ == "__main__":
    main()
