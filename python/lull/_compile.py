"""Graph breaks and recompilations, as torch.compile itself explains them.

_hooks.py loads this file when a program uses torch._dynamo. Each of them becomes a mark of the report:

    graph break at FILE:LINE, FUNCTION: REASON      a graph ends here, and Python goes on
    recompile at FILE:LINE, FUNCTION: REASON        a guard of the function that begins here has failed
    not compiled at FILE:LINE, FUNCTION: REASON     the function that begins here runs without torch.compile

src/model/thread/compile_note.c reads them. Nothing here is traced or runs in compiled code: it is called only while Dynamo itself
works. What a version lacks is left out, and no error of ours reaches the program.
"""
import functools
import os
import re

REASON_MAX = 240  # letters
N_MAX = 5000  # marks of a process: a program that compiles in each step must not fill its report

# Exceptions of torch._dynamo.exc that say why a function is not compiled, by name: not every version has all.
REFUSALS = ("Unsupported", "RecompileLimitExceeded", "FailOnRecompileLimitHit", "FailOnCacheLimitHit")


class _Notes:
    mark = None  # of the agent
    package = ""  # the folder of torch
    n = 0


def reason_of(text):
    """One line of what Dynamo says; from 2.7 on the first line is the kind, and the object comes later."""
    lines = [line.strip() for line in str(text).splitlines() if line.strip()]
    first = re.sub(r"^\d+/\d+: *|^- +", "", lines[0]) if lines else "no reason given"
    first = re.sub(r"\s+# .*$", "", first)  # where Dynamo made the guard, in its own sources
    for line in lines[1:]:
        found = re.match(r"Developer debug context: *(\S.*)", line)
        if found:
            first += " (" + found[1] + ")"
    return first if len(first) <= REASON_MAX else first[:REASON_MAX - 3] + "..."


def place_of(stack):
    """(file, line, function) of the innermost frame that is the program's, else of the innermost."""
    frames = list(stack or ())
    for frame in reversed(frames):
        if not frame.filename.startswith(_Notes.package):
            return frame.filename, frame.lineno, frame.name
    return (frames[-1].filename, frames[-1].lineno, frames[-1].name) if frames else None


def code_place(code):
    # A function that goes on after a break has the name of the first part after its own prefix.
    name = re.sub(r"^torch_dynamo_resume_in_(.*)_at_\d+$", r"\1", code.co_name)
    return code.co_filename, code.co_firstlineno, name


def note(kind, place, reason):
    if place is None or _Notes.n >= N_MAX:
        return
    _Notes.n += 1
    _Notes.mark("%s at %s:%d, %s: %s" % (kind, *place, reason_of(reason)))


def _on_graph(args, kwargs):
    """OutputGraph.compile_subgraph(): a graph is complete, for a reason that is given by place or name."""
    for value in (*args, *kwargs.values()):
        stack = getattr(value, "user_stack", None)
        if stack is None or not hasattr(value, "reason"):
            continue
        # Before 2.1 there is no word for the end of a function, which is no break.
        if getattr(value, "graph_break", True) and value.reason != "return_value":
            note("graph break", place_of(stack), value.reason)
        return


def watch_graphs(function):
    @functools.wraps(function)
    def compile_subgraph(*args, **kwargs):
        try:
            _on_graph(args[1:], kwargs)
        except Exception:
            pass
        return function(*args, **kwargs)
    return compile_subgraph


def watch_reasons(function):
    """guards.get_and_maybe_log_recompilation_reasons(cache entry, frame, ...), which is asked before each recompilation."""
    @functools.wraps(function)
    def reasons(*args, **kwargs):
        found = function(*args, **kwargs)
        try:
            if not kwargs.get("skip_logging"):
                frame = args[1] if len(args) > 1 else kwargs["frame"]
                note("recompile", code_place(frame.f_code), found[0] if found else "")
        except Exception:
            pass
        return found
    return reasons


def _refusal(error):
    for e in (error, error.__cause__, error.__context__):
        if type(e).__name__ in REFUSALS:
            return e
    return None


def watch_frames(function, failures):
    """convert_frame._compile(code, ...). `failures`: reasons by code, where they are not told otherwise (2.0)."""
    @functools.wraps(function)
    def _compile(*args, **kwargs):
        try:
            known = failures.get(args[0]) if failures is not None else None
            if known:
                last = known[-1]
                note("recompile", code_place(args[0]), last[0] if isinstance(last, list) and last else last)
        except Exception:
            pass
        try:
            return function(*args, **kwargs)
        except Exception as error:
            try:
                why = _refusal(error)
                if why is not None:
                    note("not compiled", code_place(args[0]), getattr(why, "msg", None) or why)
            except Exception:
                pass
            raise
    return _compile


def begin(torch, mark):
    _Notes.mark = mark
    _Notes.package = os.path.join(os.path.dirname(os.path.abspath(torch.__file__)), "")
