#!/usr/bin/env python3
"""Packages of what was built, installed into empty folders and used from there: record the example, ask why, show the page.

The programs are those of the build, not of a release: `make dist` takes minutes. That a release needs nothing but glibc
is checked there (tools/check-glibc).

Usage: test_packages.py BUILD [NAME...]
"""
import csv
import functools
import glob
import hashlib
import base64
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import urllib.request
import zipfile

import runner

BUILD = os.path.abspath(sys.argv[1])
ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
ARCH = os.uname().machine
EPOCH = "1700000000"
with open(os.path.join(ROOT, "VERSION"), encoding="ascii") as f:
    VERSION = f.read().strip()
PYTHON = "/usr/bin/python3" if os.path.exists("/usr/bin/python3") else sys.executable
FOLDER = tempfile.TemporaryDirectory()


def run(*words, **how):
    """A command without anything of the sources in its environment."""
    env = {name: value for name, value in os.environ.items() if not name.startswith(("LULL_", "PYTHON", "PIP_"))}
    env.update({"LD_LIBRARY_PATH": os.path.join(BUILD, "sim"), "PYTHONDONTWRITEBYTECODE": "1", **how.pop("env", {})})
    # What the case started is known by this (runner.py).
    env["LULL_TEST_CASE"] = os.environ["LULL_TEST_CASE"]
    return runner.run(list(words), env=env, check=how.pop("check", True), **how)


@functools.lru_cache(None)
def tree():
    """What `make dist` would pack: an installed tree, with the texts of the licences."""
    path = os.path.join(FOLDER.name, "tree")
    runner.run(["make", "-s", "-C", ROOT, f"BUILD={os.path.relpath(BUILD, ROOT)}", "-o", "all", "install", f"DESTDIR={path}",
                "PREFIX=", "AGENT_DIR=/lib", "MAN_DIR=/share/man"], check=True)
    shutil.copy(os.path.join(ROOT, "LICENSE"), path)
    # As in a release, whose programs have no debug information: packing it takes long.
    runner.run(["strip", "-S", *(os.path.join(path, name) for name in
                                 ("bin/lull", "lib/liblull-agent.so", "lib/liblull-mend.so", "lib/liblull-read.so"))], check=True)
    if not shutil.which("dpkg-query"):
        return path
    runner.run([os.path.join(ROOT, "tools/licences"), ARCH, VERSION, "0123456789ab", EPOCH, os.path.join(path, "licenses")],
               check=True)
    return path


@functools.lru_cache(None)
def made(tool):
    """The package that a tool makes of the tree."""
    folder = os.path.join(FOLDER.name, tool)
    os.mkdir(folder)
    return runner.run([os.path.join(ROOT, "tools", tool), tree(), ARCH, VERSION, EPOCH, folder], check=True).stdout.strip()


def used(command, folder, env=None):
    """The whole way, with a command that was installed: record, ask, show."""
    out = os.path.join(folder, "r.lull")
    run(*command, "profile", "-q", "-o", out, os.path.join(BUILD, "examples/train_cuda"), "--steps=8", env=env or {})
    why = json.loads(run(*command, "why", "-f", "json", out, env=env or {}).stdout)
    runner.expect("steps were recorded", why["steps"]["steady"] > 0, why["steps"])
    server = runner.start([*command, "view", "--no-browser", out], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                          env={**os.environ, **(env or {})})
    line = ""
    for line in server.stdout:
        found = re.search(r"http://\S+", line)
        if found:
            break
    runner.expect("the address of the page", found, line)
    with urllib.request.urlopen(found[0], timeout=runner.limit()) as page:
        runner.expect("the page", b"<html" in page.read())
    server.kill()
    return out


# ---- the wheel ----


def the_wheel_is_as_pip_wants_it():
    with zipfile.ZipFile(made("make-wheel")) as wheel:
        info = f"lull-{VERSION}.dist-info"
        runner.expect("its name", os.path.basename(wheel.filename) == f"lull-{VERSION}-py3-none-manylinux_2_34_{ARCH}.whl")
        names = wheel.namelist()
        runner.expect("no name twice", len(names) == len(set(names)))
        rows = list(csv.reader(wheel.read(f"{info}/RECORD").decode().splitlines()))
        runner.expect("RECORD lists all", sorted(row[0] for row in rows) == sorted(names))
        for name, digest, size in rows:
            if name == f"{info}/RECORD":
                continue
            data = wheel.read(name)
            mine = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
            runner.expect(name, digest == f"sha256={mine}" and int(size) == len(data), digest)
        for name in ("lull/__init__.py", "lull/py.typed", "lull/_tree/bin/lull", "lull/_tree/lib/liblull-agent.so",
                     "lull/_tree/lib/liblull-read.so", "lull/_tree/lib/python/sitecustomize.py", f"{info}/licenses/LICENSE"):
            runner.expect(name, name in names)
        mode = wheel.getinfo("lull/_tree/bin/lull").external_attr >> 16
        runner.expect("the command can be executed", mode & 0o111, oct(mode))


def the_same_tree_gives_the_same_bytes():
    """Whoever packs it, when and in which order files were made."""
    for tool in ("make-wheel", "make-deb"):
        if tool == "make-deb" and not shutil.which("dpkg-deb"):
            continue
        made_of = []
        for mask, first, second in ((0o022, "a", "b"), (0o077, "b", "a")):
            with tempfile.TemporaryDirectory() as folder:
                old = os.umask(mask)
                for name in ("bin/lull", "include/lull.h", f"lib/python/lull/{first}.py", f"lib/python/lull/{second}.py",
                             "share/man/man1/lull.1", "LICENSE"):
                    os.makedirs(os.path.join(folder, "tree", os.path.dirname(name)), exist_ok=True)
                    with open(os.path.join(folder, "tree", name), "w", encoding="ascii") as file:
                        file.write(name)
                words = [os.path.join(ROOT, "tools", tool), f"{folder}/tree", ARCH, VERSION, EPOCH, folder]
                path = runner.run(words, check=True).stdout.strip()
                os.umask(old)
                with open(path, "rb") as file:
                    made_of.append(file.read())
        runner.expect(tool, made_of[0] == made_of[1], "other bytes")


def pip_installs_the_wheel():
    if run(PYTHON, "-m", "pip", "--version", check=False).returncode:
        runner.skip("this Python has no pip")
    with tempfile.TemporaryDirectory() as folder:
        target = os.path.join(folder, "site")
        run(PYTHON, "-m", "pip", "install", "-q", "--no-index", "--no-deps", "--no-compile", "--target", target,
            made("make-wheel"), env={"HOME": folder, "PIP_NO_CACHE_DIR": "1"})
        where = {"PYTHONPATH": target}
        said = run(PYTHON, "-m", "lull", "--version", env=where).stdout
        runner.expect("version", said.startswith(f"lull {VERSION} "), said)
        script = os.path.join(target, "bin/lull")
        runner.expect("the script", run(script, "--version", env=where).stdout == said)
        out = used([PYTHON, "-m", "lull"], folder, where)
        got = run(PYTHON, "-c", "import sys, lull; r = lull.open(sys.argv[1]); print(lull.__file__, len(r.kernels) > 0, r.why().first)",
                  out, env=where, cwd="/").stdout.split()
        runner.expect("the package", got[0].startswith(target) and got[1] == "True", got)


def pip_uninstalls_the_wheel():
    """In an environment of its own: nothing of it is left, not even what Python compiled."""
    if run(PYTHON, "-m", "pip", "--version", check=False).returncode:
        runner.skip("this Python has no pip")
    with tempfile.TemporaryDirectory() as folder:
        home = os.path.join(folder, "env")
        run(PYTHON, "-m", "venv", "--without-pip", home)

        def files():
            return sorted(os.path.join(where, name) for where, _, names in os.walk(home) for name in names)

        def pip(*words):
            return run(PYTHON, "-m", "pip", "--python", home, *words, env={"HOME": folder, "PIP_NO_CACHE_DIR": "1"}).stdout

        before, python = files(), os.path.join(home, "bin/python")
        pip("install", "-q", "--no-index", "--no-deps", made("make-wheel"))
        out = used([os.path.join(home, "bin/lull")], folder)
        got = run(python, "-c", "import sys, lull; print(len(lull.open(sys.argv[1]).kernels) > 0)", out, cwd="/",
                  env={"PYTHONDONTWRITEBYTECODE": ""})
        runner.expect("the package", got.stdout.strip() == "True", got.stdout + got.stderr)
        pip("uninstall", "-q", "-y", "lull")
        runner.expect("nothing is left", files() == before, sorted(set(files()) - set(before)))


def an_unpacked_wheel_works():
    """Without pip, as from a read-only folder that somebody unpacked: modes are lost, and come back."""
    with tempfile.TemporaryDirectory() as folder:
        with zipfile.ZipFile(made("make-wheel")) as wheel:
            wheel.extractall(folder)
        said = run(PYTHON, "-m", "lull", "--version", env={"PYTHONPATH": folder}).stdout
        runner.expect("version", said.startswith(f"lull {VERSION} "), said)


def pythons():
    """One of each version from 3.9 to 3.14 that works: those of PATH, and those of pyenv, whose shims may stand for none."""
    home = os.environ.get("PYENV_ROOT") or os.path.expanduser("~/.pyenv")
    folders = os.environ["PATH"].split(os.pathsep) + sorted(glob.glob(f"{home}/versions/*/bin"))
    for n in range(9, 15):
        paths = [path for path in (os.path.join(folder, f"python3.{n}") for folder in folders) if os.access(path, os.X_OK)]
        yield from [path for path in paths if run(path, "-c", "import ctypes, zlib", check=False).returncode == 0][:1]


def each_python_uses_the_wheel():
    with tempfile.TemporaryDirectory() as folder:
        with zipfile.ZipFile(made("make-wheel")) as wheel:
            wheel.extractall(folder)
        report = os.path.join(ROOT, "examples/reports/sync_item.lull")
        code = ("import sys, lull, lull.loggers, lull._notebook\nr = lull.open(sys.argv[1])\n"
                "print(r.why().first, len(list(r.kernels)) == len(r.kernels) > 0, len(lull.loggers.steps(r)) > 0)")
        marks = "import lull\nfor i in range(3): lull.step()\nwith lull.range('mine'): pass"
        tried = list(pythons())
        for python in tried:
            got = run(python, "-W", "ignore", "-c", code, report, env={"PYTHONPATH": folder}, cwd="/")
            runner.expect(python, got.stdout.split() == ["host-sync", "True", "True"], got.stdout + got.stderr)
            out = os.path.join(folder, "r.lull")
            run(python, "-m", "lull", "profile", "-q", "-f", "-s", "none", "-o", out, python, "-c", marks, env={"PYTHONPATH": folder})
            n = run(python, "-m", "lull", "query", "-f", "csv:nohdr", out, "SELECT count(*) FROM ranges WHERE name = 'mine'",
                    env={"PYTHONPATH": folder}).stdout
            runner.expect(f"the range of {python}", n.strip() == "1", n)
        if not tried:
            runner.skip("there is no python3.9 to python3.14")


def hooks_come_with_the_wheel():
    """A Python program that is recorded by an installed command finds steps of the package."""
    with tempfile.TemporaryDirectory() as folder:
        with zipfile.ZipFile(made("make-wheel")) as wheel:
            wheel.extractall(folder)
        run(PYTHON, "-m", "lull", "--version", env={"PYTHONPATH": folder})
        command = os.path.join(folder, "lull/_tree/bin/lull")
        out = os.path.join(folder, "r.lull")
        run(command, "profile", "-q", "-s", "none", "-o", out, PYTHON, "-c",
            "import lull\nfor i in range(3): lull.step()\nwith lull.range('mine'): pass")
        names = run(command, "query", "-f", "csv:nohdr", out, "SELECT count(*) FROM ranges WHERE name = 'mine'").stdout
        runner.expect("the range", names.strip() == "1", names)


# ---- the deb ----


def unpacked_deb(folder):
    if not shutil.which("dpkg-deb"):
        runner.skip("there is no dpkg-deb")
    runner.run(["dpkg-deb", "-x", made("make-deb"), folder], check=True)
    return os.path.join(folder, "usr")


def the_deb_works_where_it_is_unpacked():
    with tempfile.TemporaryDirectory() as folder:
        usr = unpacked_deb(os.path.join(folder, "root"))
        used([os.path.join(usr, "bin/lull")], folder)
        path = os.path.join(usr, "lib/python3/dist-packages")
        got = run(PYTHON, "-c", "import sys, lull; print(len(lull.open(sys.argv[1]).kernels) > 0)",
                  os.path.join(folder, "r.lull"), env={"PYTHONPATH": path})
        runner.expect("the package of Python", got.stdout.strip() == "True", got.stdout + got.stderr)
        for name in ("share/man/man1/lull-why.1.gz", "share/doc/lull/copyright", "share/doc/lull/changelog.gz",
                     "include/lull_read.h", "share/bash-completion/completions/lull",
                     "share/zsh/vendor-completions/_lull", "share/fish/vendor_completions.d/lull.fish"):
            runner.expect(name, os.path.exists(os.path.join(usr, name)))


def dpkg_installs_and_removes_the_deb():
    if os.geteuid() or not shutil.which("dpkg"):
        runner.skip("only root can install with dpkg")
    with tempfile.TemporaryDirectory() as folder:
        root = os.path.join(folder, "root")
        for name in ("info", "updates", "triggers"):
            os.makedirs(os.path.join(root, "var/lib/dpkg", name))
        for name in ("status", "available"):
            open(os.path.join(root, "var/lib/dpkg", name), "w", encoding="ascii").close()

        def files():
            return sorted(os.path.join(where, name) for where, folders, names in os.walk(root) for name in folders + names
                          if "/var" not in where + "/" + name)

        before = files()
        words = ["dpkg", f"--root={root}", "--force-depends", "--force-architecture", "--force-script-chrootless",
                 f"--log={folder}/log"]
        runner.run([*words, "-i", made("make-deb")], check=True, stdin=subprocess.DEVNULL)
        runner.expect("the command", run(os.path.join(root, "usr/bin/lull"), "--version").stdout.startswith("lull "))
        path = os.path.join(root, "usr/lib/python3/dist-packages")
        run(PYTHON, "-c", "import lull; lull.Report", env={"PYTHONPATH": path, "PYTHONDONTWRITEBYTECODE": ""}, cwd="/")
        runner.expect("Python compiled it", os.path.isdir(os.path.join(root, "usr/lib/lull/python/lull/__pycache__")))
        runner.run([*words, "--purge", "lull"], check=True, stdin=subprocess.DEVNULL)
        runner.expect("nothing is left", files() == before, files())


# ---- licences ----


def licences_travel_along():
    folder = os.path.join(tree(), "licenses")
    if not os.path.isdir(folder):
        runner.skip("licences are collected on Debian")
    with open(os.path.join(folder, "lull.spdx.json"), encoding="utf-8") as file:
        spdx = json.load(file)
    runner.expect("version of SPDX", spdx["spdxVersion"] == "SPDX-2.3" and spdx["dataLicense"] == "CC0-1.0")
    known = {package["SPDXID"] for package in spdx["packages"]} | {"SPDXRef-DOCUMENT"}
    for relation in spdx["relationships"]:
        runner.expect("a relation", {relation["spdxElementId"], relation["relatedSpdxElement"]} <= known, relation)
    with open(os.path.join(ROOT, "Makefile"), encoding="utf-8") as file:
        makefile = file.read()
    linked = re.search(r"^LIBS := (.*)$", makefile, re.M)[1].split() + re.search(r"^LIBS_OF_LIBS := (.*)$", makefile, re.M)[1].split()
    named = " ".join(package["name"] for package in spdx["packages"])
    for library in linked:
        name = {"-lz": "zlib1g-dev"}.get(library, f"lib{library[2:]}-dev")
        runner.expect(f"{library} is in the list", name in named, named)
        with open(os.path.join(folder, f"{name}.txt"), encoding="utf-8") as file:
            runner.expect(f"the text of {name}", len(file.read()) > 500)
    for name in ("LGPL-2.1.txt", "LGPL-3.txt", "GPL-2.txt", "GPL-3.txt", "RELINKING.md"):
        runner.expect(name, os.path.exists(os.path.join(folder, name)))
    with zipfile.ZipFile(made("make-wheel")) as wheel:
        names = {os.path.basename(name) for name in wheel.namelist() if "/licenses/" in name}
        runner.expect("licences of the wheel", set(os.listdir(folder)) <= names, names)


TESTS = (
    the_wheel_is_as_pip_wants_it,
    the_same_tree_gives_the_same_bytes,
    pip_installs_the_wheel,
    pip_uninstalls_the_wheel,
    an_unpacked_wheel_works,
    each_python_uses_the_wheel,
    hooks_come_with_the_wheel,
    the_deb_works_where_it_is_unpacked,
    dpkg_installs_and_removes_the_deb,
    licences_travel_along,
)

if __name__ == "__main__":
    runner.main(TESTS, sys.argv[2:])
