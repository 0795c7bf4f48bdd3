#!/usr/bin/env python3
"""lull in notebooks: what %lull and %%lull do, and the tutorial as a notebook, executed by nbconvert.

Usage: test_notebook.py BUILD [NAME...]

The last needs Debian's python3-ipykernel and python3-nbconvert. The browser's part is test/browser/test_places.mjs.
"""
import contextlib
import html
import html.parser
import io
import json
import os
import re
import shutil
import sys
import types
import warnings

import runner
from runner import expect, skip

BUILD = os.path.abspath(sys.argv[1])
ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
REPORT = os.path.join(ROOT, "examples/reports/sync_item.lull")
PACKAGE = os.path.join(ROOT, "python")
ENVIRONMENT = {"PATH": f"{BUILD}:{BUILD}/examples:{os.environ['PATH']}", "LD_LIBRARY_PATH": f"{BUILD}/sim",
               "LULL_COMMAND": f"{BUILD}/lull", "LULL_READ_LIBRARY": BUILD}

os.environ.update(ENVIRONMENT)
sys.path.insert(0, PACKAGE)
sys.dont_write_bytecode = True
import lull  # noqa: E402
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
                        ("nothing.lull", "nothing.lull"), ("-o 'a", "No closing quotation")):
        shown, _, err = magic(line)
        expect(line, words in err or (shown and words in repr(shown[0])), (err, shown))
    shown, _, _ = magic(f"--no-page {REPORT}")
    expect("without the page", "<iframe" not in shown[0]._repr_html_())


def a_report_object_shows_the_same():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        report = lull.open(REPORT)
    expect("its page", report._repr_html_() == _notebook.Page(REPORT)._repr_html_(), "another")
    why = report.why()
    expect("sentences", Attributes(why._repr_html_()).tags[0][0] == "pre" and "Fix:" in why._repr_html_(), why._repr_html_())
    printed = []
    why._repr_pretty_(types.SimpleNamespace(text=printed.append), False)
    expect("in a terminal", printed == [str(why).rstrip("\n")], printed)


def verdict_of(report):
    """What lull why says: on a busy machine that may be another cause each time."""
    text = runner.run([f"{BUILD}/lull", "why", report], check=True).stdout
    expect("an answer", "GPU" in text, text)
    return text


@contextlib.contextmanager
def kernel_that_may_not_be_recorded():
    """A command that attaches to nothing, as where that is not allowed."""
    with open("refuses", "w", encoding="ascii") as f:
        f.write(f"""#!/bin/sh\n[ "$1" != attach ] || {{ echo 'lull attach: not here' >&2; exit 1; }}\nexec {BUILD}/lull "$@"\n""")
    os.chmod("refuses", 0o755)
    os.environ["LULL_COMMAND"] = os.path.abspath("refuses")
    try:
        yield
    finally:
        os.environ.update(ENVIRONMENT)


def a_cell_whose_kernel_cannot_be_recorded_runs_apart():
    cell = "import subprocess\nprint('from the cell', flush=True)\nsubprocess.run(['train_cuda', '--steps=10'], check=True)"
    with kernel_that_may_not_be_recorded():
        shown, out, err = magic("--no-page", cell)
        expect("its output", "from the cell\n" in out and "Simulated GPU" in out, out)
        expect("it says so", "not here" in err and "as a program of its own" in err and "lull: cell1.lull" in err, err)
        expect("the verdict", repr(shown[0]) == verdict_of("cell1.lull"), shown)
        _, out, err = magic("--no-page", "print(1)\nraise SystemExit(3)")
        expect("a cell that fails is recorded, too", "The cell failed" in err and "lull: cell2.lull" in err, err)
        magic("--no-page -o cell1", "print(1)")
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


def executed(python, name, *before):
    """The cells with code of a notebook after its execution, by a command after these words."""
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, [PACKAGE, os.environ.get("PYTHONPATH")])),
           "JUPYTER_CONFIG_DIR": os.getcwd(), "JUPYTER_DATA_DIR": os.getcwd(), "IPYTHONDIR": os.getcwd()}
    done = runner.run([*before, python, "-m", "nbconvert", "--to", "notebook", "--execute", "--output", "done.ipynb", name],
                      env=env, seconds=300)
    expect("all cells run", done.returncode == 0, done.stderr)
    with open("done.ipynb", encoding="utf-8") as f:
        return [cell for cell in json.load(f)["cells"] if cell["cell_type"] == "code"]


def the_tutorial_runs_in_a_session():
    python = python_with_jupyter()
    for name in ("examples", "doc"):
        os.symlink(os.path.join(ROOT, name), name)
    shutil.copy(os.path.join(ROOT, "doc/tutorial.ipynb"), "tutorial.ipynb")
    cells = executed(python, "tutorial.ipynb", f"{BUILD}/lull", "launch")
    _, shown = outputs(cells[1])
    expect("the verdict and the page of a report", "prepares the batch itself" in shown and "srcdoc=" in shown, shown[:300])
    expect("SQL", "data_load" in outputs(cells[2])[0], outputs(cells[2]))
    expect("the change", "The bottleneck moved" in outputs(cells[3])[0], outputs(cells[3]))
    expect("the gate", "verdict: pass" in outputs(cells[4])[0], outputs(cells[4]))
    text, shown = outputs(cells[-1])
    expect("the cell saw a variable of the notebook, and ran in the kernel", "steps=20" in text and "program of its own" not in text, text)
    expect("its verdict and page", html.escape(verdict_of("cell.lull").rstrip("\n")) in shown and "srcdoc=" in shown, shown[:300])
    expect("its report", os.path.exists("cell.lull"), os.listdir("."))


HOLD = """import ctypes
cu = ctypes.CDLL("libcuda.so.1")
context, memory = ctypes.c_void_p(), ctypes.c_void_p()
assert cu.cuInit(0) == 0 and cu.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0) == 0 and cu.cuCtxSetCurrent(context) == 0
assert cu.cuMemAlloc_v2(ctypes.byref(memory), 4096) == 0"""
COPY = """%%lull -o held --no-page
for i in range(30):
    assert cu.cuMemcpyHtoD_v2(memory, bytes(4096), 4096) == 0"""


def a_kernel_that_holds_the_gpu_is_recorded():
    """Without a session: the kernel attaches to itself, and a cell that is run again replaces its report."""
    python = python_with_jupyter()
    if not runner.can(f"{BUILD}/lull", "attach"):
        skip("programs that run must not be traced here (lull doctor says why)")
    sources = [HOLD, "%load_ext lull", COPY, COPY, "import lull\nprint(len(lull.open('held.lull').copies))\nlull.open('held.lull')"]
    cells = [{"cell_type": "code", "id": f"c{i}", "metadata": {}, "execution_count": None, "outputs": [], "source": text}
             for i, text in enumerate(sources)]
    with open("held.ipynb", "w", encoding="utf-8") as f:
        json.dump({"cells": cells, "metadata": {"kernelspec": {"name": "python3", "display_name": "", "language": "python"}},
                   "nbformat": 4, "nbformat_minor": 5}, f)
    cells = executed(python, "held.ipynb")
    text, shown = outputs(cells[3])
    expect("recorded in the kernel", "program of its own" not in text and "lull: held.lull" in text, text)
    text, shown = outputs(cells[4])
    expect("all copies of the last run", "30\n" in text, text)
    expect("a report shows its page", "srcdoc=" in shown, shown[:300])


if __name__ == "__main__":
    runner.main([a_report_is_its_verdict_and_its_page, names_of_files_are_text, words_after_the_magic_are_checked,
                 a_report_object_shows_the_same, a_cell_whose_kernel_cannot_be_recorded_runs_apart,
                 the_tutorial_runs_in_a_session, a_kernel_that_holds_the_gpu_is_recorded], sys.argv[2:])
