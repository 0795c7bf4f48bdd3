"""lull in notebooks: `%load_ext lull`, then `%%lull` records a cell, and `%lull REPORT` shows a report.

A cell is recorded in the kernel, where it sees all variables of the notebook and the memory of its GPU: by the session
that the kernel was started in (`lull launch jupyter lab`), or the kernel attaches to itself. Where that is not allowed,
the cell runs as a program of its own. What is shown is the answer of `lull why` and the page of the report, in a frame
that can run scripts and nothing else: no network, no access to the notebook.
"""
import html
import os
import shlex
import subprocess
import sys
import tempfile

import lull
from lull import _library, _show

HELP = """%%lull [-o NAME] [--height PIXELS] [--no-page]: record this cell, say why the GPU waits, show the page; a report of
    this name is overwritten
%lull [--height PIXELS] [--no-page] REPORT: the same for a report that is there"""

# Megabytes of a page inside of a notebook, which stores it; lull leaves out detail until it fits.
PAGE_MB = 2


class Trouble(Exception):
    """Something went wrong; the sentence says what."""


def command():
    """The path of the lull command."""
    try:
        return _library.command()
    except lull.Error as error:
        raise Trouble(str(error)) from None


def run(*words):
    """What the command prints; Trouble with its own sentence if it fails."""
    done = subprocess.run([command(), *words], stdin=subprocess.DEVNULL, capture_output=True, text=True, errors="replace",
                          check=False)
    if done.returncode:
        lines = done.stderr.strip().splitlines()
        raise Trouble(lines[-1] if lines else f"lull {words[0]} ended with status {done.returncode}")
    return done.stdout


class Page:
    """A report as a notebook shows it: what `lull why` says, and its page."""

    def __init__(self, path, height=600, has_page=True):
        self.path, self.height = path, height
        try:
            self.verdict = run("why", path)
        except Trouble as trouble:
            self.verdict = f"{trouble}\n"
        self.page = self._export() if has_page else None

    def _export(self):
        with tempfile.TemporaryDirectory(prefix="lull-") as folder:
            name = os.path.join(folder, "page.html")
            run("export", "--type=html", f"--max-size={PAGE_MB}", f"--output={name}", self.path)
            with open(name, encoding="utf-8") as f:
                return f.read()

    def __repr__(self):
        return self.verdict

    def _repr_html_(self):
        text = _show.text_as_html(self.verdict)
        if self.page is None:
            return text
        # The page is text of this attribute, so it needs no server, also in VS Code and Colab.
        return (f'{text}<iframe title="lull: {html.escape(os.path.basename(self.path), quote=True)}" '
                f'sandbox="allow-scripts" style="width: 100%; height: {self.height}px; border: 0" '
                f'srcdoc="{html.escape(self.page, quote=True)}"></iframe>')


class Options:
    """The words after the magic."""

    def __init__(self, line):
        self.output, self.height, self.has_page, self.words = None, 600, True, []
        try:
            words = shlex.split(line)
        except ValueError as error:  # a quote that is not closed
            raise Trouble(f"{error}\n{HELP}") from None
        while words:
            word = words.pop(0)
            if word in ("-o", "--output", "--height"):
                if not words:
                    raise Trouble(f"{word} needs a value")
                value = words.pop(0)
                if word == "--height" and not value.isdecimal():
                    raise Trouble("--height needs a number of pixels")
                self.output, self.height = (self.output, int(value)) if word == "--height" else (value, self.height)
            elif word == "--no-page":
                self.has_page = False
            elif word in ("-h", "--help") or word.startswith("-"):
                raise Trouble(HELP)
            else:
                self.words.append(word)


def new_name():
    """A name for a report that is not there yet: cell1.lull, cell2.lull, ..."""
    number = 1
    while os.path.exists(f"cell{number}.lull"):
        number += 1
    return f"cell{number}.lull"


def record_here(shell, cell, path):
    """Run the cell in this kernel, recorded; None if this kernel cannot be."""
    part = lull.profile(path)
    try:
        part.__enter__()
    except lull.Error as error:
        print(f"{error}\nSo the cell runs as a program of its own and sees no variables of the notebook. `lull launch jupyter "
              "lab` starts kernels that can be recorded.", file=sys.stderr)
        return None
    try:
        return shell.run_cell(cell).success
    finally:
        part.__exit__(None, None, None)


def record_apart(cell, path):
    """Run the cell as a program of its own."""
    with tempfile.TemporaryDirectory(prefix="lull-") as folder:
        name = os.path.join(folder, "cell.py")
        with open(name, "w", encoding="utf-8") as f:
            f.write(cell)
        env = {**os.environ, "PYTHONPATH": os.pathsep.join([os.getcwd(), os.environ.get("PYTHONPATH", "")])}
        done = subprocess.run([command(), "profile", "-q", f"--output={path}", "--force-overwrite", sys.executable, name],
                              stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                              errors="replace", env=env, check=False)
    print(done.stdout, end="")
    if not os.path.exists(path):
        raise Trouble(f"nothing was recorded; the program ended with status {done.returncode}")
    return done.returncode == 0


def record(shell, cell, path):
    """Run the cell, recorded: here if that can be. Cells are run again and again: the last one counts."""
    if os.path.exists(path):
        os.unlink(path)
    is_well = record_here(shell, cell, path)
    if is_well is None:
        is_well = record_apart(cell, path)
    if not is_well:
        print("The cell failed; the report has what came before.", file=sys.stderr)


def magic(shell, line, cell=None):
    """%lull and %%lull."""
    from IPython.display import display
    try:
        options = Options(line)
        if cell is None:
            if len(options.words) != 1:
                raise Trouble(HELP)
            path = options.words[0]
        else:
            if options.words:
                raise Trouble(HELP)
            path = options.output or new_name()
            path += "" if path.endswith(".lull") else ".lull"
            record(shell, cell, path)
            print(f"lull: {path}", file=sys.stderr)
        display(Page(path, options.height, options.has_page))
    except (Trouble, lull.Error) as trouble:
        print(f"lull: {trouble}", file=sys.stderr)


def load(shell):
    """What %load_ext calls."""
    shell.register_magic_function(lambda line, cell=None: magic(shell, line, cell), "line_cell", "lull")
