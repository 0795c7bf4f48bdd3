"""Loaded by each Python that lull profile starts, because it is first in PYTHONPATH.

Loads lull's hooks into the interpreter, then the sitecustomize that Python would have loaded
without lull, if there is one.
"""
import sys


def _begin():
    # The folder is only needed to find this file: what the program imports must not change.
    import os
    folder = os.path.dirname(os.path.abspath(__file__))
    sys.path[:] = [p for p in sys.path if not p or os.path.abspath(p) != folder]
    from importlib.util import module_from_spec, spec_from_file_location
    spec = spec_from_file_location("_lull_hooks", os.path.join(folder, "lull", "_hooks.py"))
    hooks = module_from_spec(spec)
    sys.modules["_lull_hooks"] = hooks
    spec.loader.exec_module(hooks)
    hooks.begin(folder)


def _chain():
    from importlib.machinery import PathFinder
    from importlib.util import module_from_spec
    spec = PathFinder.find_spec("sitecustomize", sys.path)
    if spec is None or spec.loader is None:
        # As without lull: site.py ignores a missing sitecustomize.
        raise ImportError("No module named 'sitecustomize'", name="sitecustomize")
    module = module_from_spec(spec)
    sys.modules["sitecustomize"] = module
    spec.loader.exec_module(module)


try:
    _begin()
except BaseException:  # an error of lull must never stop the program
    pass
_chain()
