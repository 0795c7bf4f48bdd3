#!/usr/bin/env python3
"""lull in notebooks: what %lull and %%lull do, and the tutorial as a notebook, executed by nbconvert.

Usage: test_notebook.py BUILD [NAME...]

The last needs Debian's python3-ipykernel and python3-nbconvert. The browser's part is test/browser/test_places.mjs.
"""
import contextlib
import html.parser
import io
import json
import os
import re
import shutil
import sys
import types

import runner
from runner import expect, skip

BUILD = os.path.abspath(sys.argv[1])
ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
REPORT = os.path.join(ROOT, "examples/reports/sync_item.lull")
PACKAGE = os.path.join(ROOT, "python")
ENVIRONMENT = {"PATH": f"{BUILD}:{BUILD}/examples:{os.environ['PATH']}", "LD_LIBRARY_PATH": f"{BUILD}/sim",
               "LULL": f"{BUILD}/lull"}

os.environ.update(ENVIRONMENT)
sys.path.insert(0, PACKAGE)
sys.dont_write_bytecode = True
from lull import _notebook  # noqa: E402


class Attributes(html.parser.HTMLParser):
    """All tags with their attributes."""

    def __init__(self, text):
        super().__init__()
        self.tags = []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))


def magic(line, cell=None, session=None):
    """(what is shown, output, errors) of a magic, with a shell that is not there."""
    shown = []
    module = types.ModuleType("IPython.display")
    module.display = shown.append
    sys.modules.update({"IPython": types.ModuleType("IPython"), "IPython.display": module})
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        _notebook.magic(session, line, cell)
    return shown, out.getvalue(), err.getvalue()


def a_report_is_its_verdict_and_its_page():
    page = _notebook.Page(REPORT, height=321)
    expect("the verdict is that of lull why", repr(page) == runner.run([f"{BUILD}/lull", "why", REPORT]).stdout, repr(page))
    runner.run([f"{BUILD}/lull", "export", "-t", "html", "--max-size=2", "-o", "page.html", REPORT], check=True)
    with open("page.html", encoding="utf-8") as f:
        whole = f.read()
    tags = Attributes(page._repr_html_()).tags
    expect("a text and a frame", [tag for tag, _ in tags] == ["pre", "iframe"], [tag for tag, _ in tags])
    frame = tags[1][1]
    expect("the page is in the frame", frame["srcdoc"] == whole, len(frame["srcdoc"]))
    expect("the frame may run scripts, and nothing else", frame["sandbox"] == "allow-scripts", frame["sandbox"])
    expect("its height", "height: 321px" in frame["style"], frame["style"])
    expect("its name", frame["title"] == "lull: sync_item.lull", frame["title"])


def names_of_files_are_text():
    name = '"><script>alert(1)<.lull'
    shutil.copy(REPORT, name.replace("/", "_"))
    tags = Attributes(_notebook.Page(name)._repr_html_()).tags
    expect("no tag comes out of a name", [tag for tag, _ in tags] == ["pre", "iframe"], [tag for tag, _ in tags])


def words_after_the_magic_are_checked():
    for line, cell in (("", None), ("a b", None), ("--no-such a.lull", None), ("word", "pass"), ("-h", None)):
        shown, _, err = magic(line, cell)
        expect(f"help for {line!r}", not shown and "%%lull [-o NAME]" in err, err)
    for line, words in (("-o", "-o needs a value"), ("--height x a.lull", "--height needs a number of pixels"),
                        ("nothing.lull", "nothing.lull")):
        shown, _, err = magic(line)
        expect(line, words in err or (shown and words in repr(shown[0])), (err, shown))
    shown, _, _ = magic(f"--no-page {REPORT}")
    expect("without the page", "<iframe" not in shown[0]._repr_html_())


def a_cell_without_a_session_runs_apart():
    cell = "import subprocess\nprint('from the cell', flush=True)\nsubprocess.run(['train_cuda', '--steps=10'], check=True)"
    shown, out, err = magic("--no-page", cell)
    expect("its output", "from the cell\n" in out and "Simulated GPU" in out, out)
    expect("it says so", "as a program of its own" in err and "lull: cell1.lull" in err, err)
    expect("the verdict", "pageable-copy" in repr(shown[0]), shown)
    _, out, err = magic("--no-page", "print(1)\nraise SystemExit(3)")
    expect("a cell that fails is recorded, too", "The cell failed" in err and "lull: cell2.lull" in err, err)
    expect("the reports", {"cell1.lull", "cell2.lull"} <= set(os.listdir(".")), os.listdir("."))


def python_with_jupyter():
    """A Python that has what notebooks need."""
    for path in ("/usr/bin/python3", sys.executable):
        if os.path.exists(path) and runner.run([path, "-c", "import ipykernel, nbconvert"]).returncode == 0:
            return path
    return skip("no ipykernel and nbconvert here; 'make setup' installs them where it can")


def outputs(cell):
    """(text, html) of a cell."""
    texts = ["".join(o.get("text", "")) for o in cell["outputs"]]
    shown = ["".join(o["data"].get("text/html", "")) for o in cell["outputs"] if "data" in o]
    return re.sub(r"\x1b\[\d*m", "", "".join(texts)), "".join(shown)


def the_tutorial_runs_in_a_session():
    python = python_with_jupyter()
    for name in ("examples", "doc"):
        os.symlink(os.path.join(ROOT, name), name)
    shutil.copy(os.path.join(ROOT, "doc/tutorial.ipynb"), "tutorial.ipynb")
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, [PACKAGE, os.environ.get("PYTHONPATH")])),
           "JUPYTER_CONFIG_DIR": os.getcwd(), "JUPYTER_DATA_DIR": os.getcwd(), "IPYTHONDIR": os.getcwd()}
    done = runner.run([f"{BUILD}/lull", "launch", python, "-m", "nbconvert", "--to", "notebook", "--execute",
                       "--output", "done.ipynb", "tutorial.ipynb"], env=env, seconds=300)
    expect("all cells run", done.returncode == 0, done.stderr)
    with open("done.ipynb", encoding="utf-8") as f:
        cells = [cell for cell in json.load(f)["cells"] if cell["cell_type"] == "code"]
    _, shown = outputs(cells[1])
    expect("the verdict and the page of a report", "prepares the batch itself" in shown and "srcdoc=" in shown, shown[:300])
    expect("SQL", "data_load" in outputs(cells[2])[0], outputs(cells[2]))
    expect("the change", "The bottleneck moved" in outputs(cells[3])[0], outputs(cells[3]))
    expect("the gate", "verdict: pass" in outputs(cells[4])[0], outputs(cells[4]))
    text, shown = outputs(cells[-1])
    expect("the cell saw a variable of the notebook, and ran in the kernel", "steps=20" in text and "program of its own" not in text, text)
    expect("its verdict and page", "pageable-copy" in shown and "srcdoc=" in shown, shown[:300])
    expect("its report", os.path.exists("cell.lull"), os.listdir("."))


if __name__ == "__main__":
    runner.main([a_report_is_its_verdict_and_its_page, names_of_files_are_text, words_after_the_magic_are_checked,
                 a_cell_without_a_session_runs_apart, the_tutorial_runs_in_a_session], sys.argv[2:])
