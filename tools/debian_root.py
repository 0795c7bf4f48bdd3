"""Fresh roots of Debian, in which tests install packages and run daemons. As root, with debootstrap and the mirror of this machine.

Roots as they were made stay in ~/.cache/lull-test-packages for the next time.
"""
import glob
import os
import re
import shutil
import subprocess
import sys


def run(*words, **how):
    """What a command prints; the end of everything if it fails."""
    done = subprocess.run(words, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False, **how)
    if done.returncode:
        sys.exit(f"{' '.join(map(str, words))}: status {done.returncode}\n{done.stdout}")
    return done.stdout


def expect(what, is_so, got=""):
    if not is_so:
        sys.exit(f"{what}: {got}")


def mirror():
    """Where this machine has its packages from; None if nothing says so."""
    for path in sorted(glob.glob("/etc/apt/sources.list.d/*.sources")) + ["/etc/apt/sources.list"]:
        if os.path.exists(path):
            with open(path, encoding="utf-8") as file:
                found = re.search(r"^(?:URIs:|deb(?: \[.*\])?) *(\S+)", file.read(), re.M)
            if found:
                return found[1]
    return None


def kept(name):
    """Where a root of this name is kept, or would be."""
    return os.path.join(os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache"), "lull-test-packages", name)


def is_made(name):
    return os.path.exists(f"{kept(name)}/done")


def made(name, make):
    """A root that is kept under this name; make(path) makes it where there is none yet."""
    base = kept(name)
    if not is_made(name):
        shutil.rmtree(base, ignore_errors=True)
        os.makedirs(base)
        make(f"{base}/root")
        open(f"{base}/done", "w", encoding="ascii").close()
    return f"{base}/root"


def bootstrap(release, packages, path):
    """A root of these packages and what every root has."""
    expect("a mirror", mirror(), "/etc/apt names no source of packages; it needs one to make a root")
    run("debootstrap", "--variant=minbase", f"--include={packages}", release, path, mirror())
