"""Found through PYTHONPATH by programs that lull profile starts.

Loads lull's hooks into the interpreter, then does what would have happened without it: the next
sitecustomize, if there is one, is loaded in the place of this one.
"""
import sys


def _begin():
    # The folder was named for this file alone: what the program imports must not change.
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
        # As without us: site.py passes over a sitecustomize that is not there.
        raise ImportError("No module named 'sitecustomize'", name="sitecustomize")
    module = module_from_spec(spec)
    sys.modules["sitecustomize"] = module
    spec.loader.exec_module(module)


try:
    _begin()
except BaseException:  # the program comes first, whatever is wrong with us
    pass
_chain()
