"""Run by the agent in an interpreter that was there before it (lull attach): loads the hooks, or takes them out.

The agent sets `folder`, `agent` (paths) and `is_on`, and runs this on the interpreter's own thread, between two of the
program's instructions. What fails here must leave the program as it is.
"""
import os
import sys


def load_agent(path):
    """The agent, which is in the process already, as a module."""
    from importlib.machinery import ExtensionFileLoader
    from importlib.util import module_from_spec, spec_from_loader
    loader = ExtensionFileLoader("_lull", path)
    module = module_from_spec(spec_from_loader("_lull", loader, origin=path))
    loader.exec_module(module)
    sys.modules["_lull"] = module


def load_hooks(place):
    from importlib.util import module_from_spec, spec_from_file_location
    spec = spec_from_file_location("_lull_hooks", os.path.join(place, "lull", "_hooks.py"))
    hooks = module_from_spec(spec)
    spec.loader.exec_module(hooks)
    sys.modules["_lull_hooks"] = hooks
    hooks.begin(place, is_late=True)


def introduce(module):
    """What the program marks with the package `lull`, if it has imported that, goes to the agent; None: no more."""
    package = sys.modules.get("lull")
    # A program that a session has started has its agent already.
    if hasattr(package, "_agent") and "LULL_SESSION" not in os.environ:
        package._agent = module


def enter(place, path):
    # Builds without the interpreter's lock have other structs; see source_torch.c.
    if not getattr(sys, "_is_gil_enabled", lambda: True)():
        return
    if "_lull" not in sys.modules:
        load_agent(path)
    if "_lull_hooks" not in sys.modules:
        load_hooks(place)
    introduce(sys.modules["_lull"])
    sys.modules["_lull_hooks"].enter_late()


if is_on:  # noqa: F821
    enter(folder, agent)  # noqa: F821
elif "_lull_hooks" in sys.modules:
    introduce(None)
    sys.modules["_lull_hooks"].leave_late()
