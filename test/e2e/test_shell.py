#!/usr/bin/env python3
"""Completion in real shells, and what `lull` alone says on a terminal.

Usage: test_shell.py BUILD [NAME...]
"""
import os
import pty
import re
import select
import shutil
import subprocess
import sys
import tempfile

import runner

BUILD = os.path.abspath(sys.argv[1])
ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
SCRIPTS = os.path.join(ROOT, "packaging/completions")
DATA = os.path.join(ROOT, "test/data")
LULL = os.path.join(BUILD, "lull")


def env():
    return {**os.environ, "PATH": f"{BUILD}:{os.environ['PATH']}", "TERM": "xterm", "LC_ALL": "C.UTF-8"}


def asked(*words):
    """What `lull complete` prints, without what it says about it."""
    out = runner.run([LULL, "complete", *words], check=True).stdout
    return [line.partition("\t")[0] for line in out.splitlines()]


def in_bash(folder, *words):
    """The candidates of bash for these words, split as bash splits a line."""
    code = f"""source {SCRIPTS}/lull.bash; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _lull lull; printf '%s\\n' "${{COMPREPLY[@]}}" """
    got = runner.run(["bash", "--norc", "-c", code, "bash", "lull", *words], cwd=folder, env=env(), check=True)
    return got.stdout.split("\n")[:-1] if got.stdout.strip() else []


# ---- the command ----


def every_command_knows_its_options():
    """All commands, all options of their --help: there is no second list."""
    listed = asked("")
    shown = [line.split()[0] for line in runner.run([LULL, "help"], check=True).stdout.splitlines() if line.startswith("  ")]
    runner.expect("commands", listed == shown, listed)
    for command in listed:
        text = runner.run([LULL, command, "--help"], check=True).stdout
        names = set(re.findall(r"^  (?:-\w, |    )(--[\w-]+)", text, re.M))
        runner.expect(f"{command} has options", "--help" in names, text)
        mine = {name.rstrip("=") for name in asked(command, "--")}
        runner.expect(f"options of {command}", names <= mine, names - mine)


def values_are_those_the_command_takes():
    for words, some in ((("why", "--format="), "--format=json"), (("why", "--format", "=", "j"), "json"),
                        (("why", "-f", ""), "text"), (("stats", "-r", "cuda_gpu_k"), "cuda_gpu_kern_sum"),
                        (("analyze", "--rule", "cuda"), "cuda_api_sync"), (("export", "--type", ""), "parquet"),
                        (("import", "--type=nsys"), "--type=nsys"), (("help", "pyt"), "pytorch"), (("help", "wh"), "why"),
                        (("top", str(os.getpid())), str(os.getpid()))):
        runner.expect(" ".join(words), some in asked(*words), asked(*words))
    for words, directive in ((("why", ""), ":reports"), (("diff", "a.lull", ""), ":reports"), (("recover", ""), ":parts"),
                             (("profile", ""), ":command"), (("profile", "-o", "x", "python", "tr"), ":program 4"),
                             (("profile", "--", "python", ""), ":program 3"), (("profile", "-o", ""), ":files"),
                             (("profile", "--output=x", "python", ""), ":program 3"),
                             (("profile", "--output", "=", "x", "python", ""), ":program 5")):
        runner.expect(" ".join(words), asked(*words) == [directive], asked(*words))
    runner.expect("what is unknown has none", asked("nonsense", "") == [] == asked("why", "--nonsense="))


def sessions_are_known_while_they_run():
    with tempfile.TemporaryDirectory() as folder:
        ready = os.path.join(folder, "ready")
        name = f"complete-{os.getpid()}"
        p = runner.start([LULL, "launch", f"--session-new={name}", "-s", "none", "-t", "none", "sh", "-c",
                          f"touch {ready}; read x"], stdin=subprocess.PIPE, cwd=folder)
        runner.until_file(ready)
        runner.expect("session", name in asked("stop", "--session", "") and name in asked("top", "compl"), asked("top", ""))
        p.communicate(b"\n")


# ---- shells ----


def bash_completes():
    if not shutil.which("bash"):
        runner.skip("bash is not installed")
    with tempfile.TemporaryDirectory() as folder:
        for name in ("a report.lull", "b.lull", "c.lull.part", "notes.txt", "trace.json"):
            open(os.path.join(folder, name), "w", encoding="ascii").close()
        os.mkdir(os.path.join(folder, "job"))
        runner.expect("commands", in_bash(folder, "wh") == ["why"], in_bash(folder, "wh"))
        runner.expect("reports", sorted(in_bash(folder, "why", "")) == ["a report.lull", "b.lull", "job", "trace.json"],
                      in_bash(folder, "why", ""))
        runner.expect("parts", sorted(in_bash(folder, "recover", "")) == ["c.lull.part", "job"], in_bash(folder, "recover", ""))
        runner.expect("values", in_bash(folder, "why", "--format", "=", "") == ["text", "json"])
        runner.expect("options", "--what-if=" in in_bash(folder, "why", "--w"), in_bash(folder, "why", "--w"))
        runner.expect("programs", "sh" in in_bash(folder, "profile", "s"))
        runner.expect("files of a program", "notes.txt" in in_bash(folder, "profile", "cat", "no"))


def fish_completes():
    if not shutil.which("fish"):
        runner.skip("fish is not installed")
    with tempfile.TemporaryDirectory() as folder:
        open(os.path.join(folder, "b.lull"), "w", encoding="ascii").close()

        def ask(line):
            code = f"source {SCRIPTS}/lull.fish; complete -C '{line}'"
            out = runner.run(["fish", "--no-config", "-c", code], cwd=folder, env={**env(), "HOME": folder}, check=True).stdout
            return [line.partition("\t")[0] for line in out.splitlines()]

        runner.expect("commands", ask("lull wh") == ["why"], ask("lull wh"))
        runner.expect("reports", "b.lull" in ask("lull why "), ask("lull why "))
        runner.expect("values", "--format=json" in ask("lull why --format="), ask("lull why --format="))


def zsh_completes():
    if not shutil.which("zsh"):
        runner.skip("zsh is not installed")
    with tempfile.TemporaryDirectory() as folder:
        open(os.path.join(folder, "b.lull"), "w", encoding="ascii").close()
        # zsh completes only at a prompt: type a line with a tab, and see what became of it.
        rc = f"fpath=({SCRIPTS} $fpath); autoload -Uz compinit; compinit -u -d {folder}/dump; PS1='> '; LISTMAX=0\n"
        with open(os.path.join(folder, ".zshrc"), "w", encoding="ascii") as file:
            file.write(rc)
        out = typed(["zsh", "-i"], ["lull wh\t b\t\n"], folder, {"ZDOTDIR": folder}, until=b"is empty")
        runner.expect("the line became lull why b.lull", b"lull why: b.lull is empty" in out, out)


# ---- a terminal ----


def typed(words, lines, folder, more=None, until=None):
    """What a program prints on a terminal where these lines are typed."""
    master, slave = pty.openpty()
    p = runner.start(words, stdin=slave, stdout=slave, stderr=slave, cwd=folder, env={**env(), **(more or {})})
    os.close(slave)
    out = b""

    def more_of_it():
        """Wait for more; nothing if the program has ended."""
        runner.expect("something is printed", select.select([master], [], [], runner.limit())[0], out)
        try:
            return os.read(master, 4096)
        except OSError:
            return b""

    for line in lines:
        while b"> " not in out:
            out += more_of_it()
        os.write(master, line.encode())
    while until is None or until not in out:
        data = more_of_it()
        if not data:
            break
        out += data
    if until is not None:
        p.kill()
    p.wait()
    os.close(master)
    return out


def lull_alone_tells_of_the_last_report():
    with tempfile.TemporaryDirectory() as folder:
        for name, when in (("old", 1000), ("oldest", 500), ("newest", 2000)):
            path = shutil.copy(os.path.join(DATA, "torch/train.lull"), os.path.join(folder, f"{name}.lull"))
            os.utime(path, (when, when))
        text = " ".join(typed([LULL], [], folder).decode().split())
        runner.expect("which one", "The last report here is newest.lull, written" in text and "days ago." in text, text)
        why = runner.run([LULL, "why", "newest.lull"], cwd=folder, check=True).stdout.split()
        runner.expect("its verdict", " ".join(why) in text, text)
        runner.expect("what is next", "lull view newest.lull lull diff old.lull newest.lull lull help" in text, text)


def lull_alone_tells_why_there_is_no_verdict():
    """Within the terminal; and it does not advise to ask again."""
    with tempfile.TemporaryDirectory() as folder:
        runner.run([LULL, "profile", "-q", "-s", "none", "-t", "none", "-o", "r", "true"], cwd=folder, check=True)
        lines = typed([LULL], [], folder).decode().splitlines()
        runner.expect("the reason", "no GPU work in the recording" in " ".join(lines), lines)
        runner.expect("no line is too long", max(map(len, lines)) <= 80, lines)
        runner.expect("what is next", "  lull info r.lull" in lines and not any("lull why" in line for line in lines), lines)


def lull_alone_shows_its_commands_without_a_report():
    with tempfile.TemporaryDirectory() as folder:
        runner.expect("an empty folder", "usage: lull COMMAND" in typed([LULL], [], folder).decode())
        os.utime(shutil.copy(os.path.join(DATA, "torch/train.lull"), folder), (1000, 1000))
        got = runner.run([LULL], cwd=folder)
        runner.expect("a script", got.returncode == 2 and "usage: lull COMMAND" in got.stdout, got)
        with open(os.path.join(folder, "bad.lull"), "w", encoding="ascii") as file:
            file.write("nothing")
        runner.expect("a report that cannot be read", "usage: lull COMMAND" in typed([LULL], [], folder).decode())


TESTS = (
    every_command_knows_its_options,
    values_are_those_the_command_takes,
    sessions_are_known_while_they_run,
    bash_completes,
    fish_completes,
    zsh_completes,
    lull_alone_tells_of_the_last_report,
    lull_alone_tells_why_there_is_no_verdict,
    lull_alone_shows_its_commands_without_a_report,
)

if __name__ == "__main__":
    runner.main(TESTS, sys.argv[2:])
