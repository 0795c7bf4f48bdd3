"""One run of `lull try`: times steps, ends the program after them, and applies remedies.

Takes the place of the agent for _hooks.py where nothing is recorded. Where `lull try` records the
program, the agent stays, and only files that the program saves are kept apart.

The environment says what to do:

    LULL_TRY            folder of this run: PID.log with what was seen, saved/ with files of the program
    LULL_TRY_STEPS      WARMUP,STEPS,BLOCK: steps before measuring, measured steps, steps per block;
                        ,MS: fewer steps than that if these take longer, so that long steps take no hours;
                        ,1: calls of the model are steps, since the program has no others
    LULL_TRY_REMEDIES   files to load, with ":" between them
    LULL_TRY_ASKS       files to ask what they would change, in a run that is recorded; they change nothing
    LULL_TRY_WARM       a socket, if other runs can be forked from this process (_try_warm.py)

A line of the log is a letter and what it says; src/try/try_log.c reads it:

    a NS                the interpreter has started
    r RANK              rank of this process, 0 if it has none
    s NS                a step starts
    u                   it did not, after all
    n NS                PyTorch is loaded
    z NS                the program ends, device included
    v N                 so often it called its model
    m NS                measuring starts here
    b N NS              a block of N steps took so long, device included
    l VALUE             loss of a backward pass, as hexadecimal floating point
    o VALUE             sum of an output, where nothing is trained
    g BYTES             peak of the device memory that PyTorch has reserved
    d REMEDY            this remedy has changed something
    c REMEDY            this remedy, which is only asked, would change something
    q                   the program got far enough to tell for all that were asked
    h TEXT              what a remedy says about its effect
    w REMEDY FILE:LINE TEXT    where the program would be changed, and how
    p LINE              a line of the patch that does so
    k PATH              a file that the program saved; it is in saved/ instead
    i NAME...           modules that runs could share, as well
    f TEXT              why runs cannot be forked after the import of PyTorch
    t TEXT              something did not work
    e                   all steps are measured; the program ends now
"""
import os
import sys
import time

TORCH = 1 << 24  # as in _hooks.py
N_VALUES = 10  # losses that are compared
MOST_WARMUP = 40  # steps that warm-up may take longer than was asked for, until steps are alike
LIKE = 1.5  # the last three steps differ by no more: they are alike
NEVER = 1 << 62  # steps to measure in a run that is measured as a whole
ASKED_STEPS = 10  # after so many steps, remedies that are asked have seen what the program does
LEAST_BLOCKS = 3  # of a run that ends because of the time
N_BLOCKS = 4  # as in src/try/try_prepare.c
N_LOOKS = 4  # calls of a module until the modules that the program calls are known
MOST_MODULES = 8  # a program that calls more calls the layers of its model one by one
PATIENCE = 3  # how often a program may catch SystemExit before it is ended without asking


def _no(*args):
    """For all calls of the agent that mean nothing here."""
    return 0


class Trial:
    """What _hooks.py takes for the agent, and what remedies get."""

    def __init__(self, folder, numbers):
        self.begin_run(folder, numbers)
        self.hooks = None
        self.each_step = []  # functions of remedies
        self.before_end = []
        self.before_files = []  # called before a file that the program saved is used
        self.saves = None  # _try_saves.py
        self.model = []  # functions that get the outermost module before its first calls
        self.rank = int(os.environ.get("RANK") or 0)
        self.n_ranks = int(os.environ.get("WORLD_SIZE") or 1)
        self.is_forked = False
        self.is_asking = False  # remedies may not change anything
        self.loaded_pid = 0

    def begin_run(self, folder, numbers):
        self.folder = folder
        self.n_warmup, self.n_steps, self.n_block = numbers[:3]
        self.most_ns = numbers[3] * 1_000_000 if len(numbers) > 3 else 0  # 0: steps alone count
        self.by_calls = len(numbers) > 4 and numbers[4] == 1
        self.lead, self.n_calls = None, 0  # a reference to the first module with parameters that the program calls
        self.fd = None
        self.pid = 0
        self.said = set()
        self.clear()

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        return _no

    def clear(self):
        self.times = []
        self.n_measured = self.n_in_block = self.n_blocks = self.measured_ns = 0
        self.is_measuring = self.has_ended = self.has_own = False
        self.since = 0
        self.n_raised = 0
        self.values, self.n_values, self.has_loss = [], 0, False
        self.edits = []

    # ---- the log ----

    def write(self, text):
        """Add a line. It is in the file at once: the program may end in any way."""
        if self.pid != os.getpid():
            self.pid = os.getpid()
            path = os.path.join(self.folder, f"{self.pid}.log")
            self.fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
            os.write(self.fd, f"r {self.rank}\n".encode())
        os.write(self.fd, text.replace("\n", " ").encode("utf-8", "replace") + b"\n")

    def trouble(self, what):
        self.write(f"t {what}")

    def once(self, text):
        if text not in self.said:
            self.said.add(text)
            self.write(text)

    # ---- what _hooks.py asks for ----

    def sources(self):
        return TORCH

    def hooked_step(self, number):
        # Steps that the program marks itself count more than those that were found.
        if not self.has_own and not self.by_calls:
            self.on_step()

    def no_step(self):
        if not self.has_own and not self.by_calls and not self.is_measuring and self.times:
            self.times.pop()
            self.write("u")

    def step(self, number):
        if not self.has_own and self.times:
            self.clear()
        self.has_own = True
        self.on_step()

    def is_recording(self):
        return False

    # ---- steps ----

    def loaded(self, torch):
        """PyTorch is there. Programs without steps are measured from here to their end."""
        self.loaded_pid = os.getpid()
        self.write(f"n {time.monotonic_ns()}")

    def on_step(self):
        if self.has_ended:
            self.end()
            return
        for function in list(self.each_step):
            self.attempt(function, self.each_step)
        if self.is_measuring:
            self.measure()
            return
        now = time.monotonic_ns()
        self.write(f"s {now}")
        self.times.append(now)
        if self.is_warm():
            self.sync()
            self.tell_values()
            self.is_measuring = True
            self.tell_rank()
            self.since = time.monotonic_ns()
            self.write(f"m {self.since}")

    def on_call(self, module):
        """The program calls a module that is inside of no other."""
        if self.lead is None and next(iter(module.parameters()), None) is not None:
            import weakref
            self.lead = weakref.ref(module)  # the program may be done with it
        if self.lead is not None and self.lead() is module:
            self.n_calls += 1
            if self.by_calls:
                self.on_step()

    def on_recorded_step(self):
        """The recorder counts the steps; only remedies want to know."""
        self.times.append(time.monotonic_ns())
        for function in list(self.each_step):
            self.attempt(function, self.each_step)
        if self.is_asking and len(self.times) >= ASKED_STEPS:
            self.once("q")

    def asked_until_end(self):
        """The program has ended; one that failed might have done more."""
        if not hasattr(sys, "last_value"):
            self.once("q")

    def attempt(self, function, of, *args):
        """Call a function of a remedy; one that fails is not called again, and the program goes on."""
        try:
            return function(*args)
        except Exception as e:
            of.remove(function)
            self.trouble(f"{type(e).__name__}: {e}")
            return False

    def is_warm(self):
        """Enough steps, and the last three alike. Ranks must agree without asking: for them the number counts."""
        n = len(self.times) - 1
        if self.has_ranks():
            return n >= self.n_warmup
        is_long = self.most_ns and self.times[-1] - self.times[0] >= self.most_ns
        if n < 3 or (n < self.n_warmup and not is_long):
            return False
        last = [b - a for a, b in zip(self.times[-4:], self.times[-3:])]
        return max(last) <= LIKE * min(last) or n >= self.n_warmup + MOST_WARMUP

    @staticmethod
    def distributed():
        """torch.distributed if the program uses it."""
        found = sys.modules.get("torch.distributed")
        is_on = getattr(found, "is_initialized", None)
        return found if is_on and is_on() else None

    def has_ranks(self):
        """Launchers say so in the environment; programs that start their ranks themselves do not."""
        distributed = self.distributed()
        return self.n_ranks > 1 or bool(distributed and distributed.get_world_size() > 1)

    def tell_rank(self):
        distributed = self.distributed()
        if distributed:
            self.write(f"r {distributed.get_rank()}")

    def measure(self):
        self.n_in_block += 1
        # Ranks must end together, and for them the number counts.
        most_ns = 0 if self.most_ns and self.has_ranks() else self.most_ns
        is_long = most_ns and time.monotonic_ns() - self.since >= most_ns // N_BLOCKS
        if self.n_in_block < self.n_block and not is_long:
            return
        self.sync()
        now = time.monotonic_ns()
        self.write(f"b {self.n_in_block} {now - self.since}")
        self.n_measured += self.n_in_block
        self.measured_ns += now - self.since
        self.n_blocks += 1
        self.n_in_block = 0
        self.since = now
        is_over = most_ns and self.measured_ns >= most_ns and self.n_blocks >= LEAST_BLOCKS
        if self.n_measured >= self.n_steps or is_over:
            self.finish()
            self.write("e")
            self.has_ended = True
            self.end()

    @staticmethod
    def cuda():
        """torch.cuda if the program uses a device."""
        cuda = getattr(sys.modules.get("torch"), "cuda", None)
        is_used = getattr(cuda, "is_initialized", None)
        return cuda if is_used and is_used() else None

    def sync(self):
        cuda = self.cuda()
        if cuda:
            cuda.synchronize()

    def end(self):
        """End the program as sys.exit() does; one that goes on regardless ends here."""
        self.n_raised += 1
        if self.n_raised > PATIENCE:
            sys.stdout.flush()
            self.real_exit(0)
        raise SystemExit(0)

    def finish(self):
        """Say what is known at the end; nothing of it may fail."""
        try:
            if self.is_measuring and self.n_in_block and not self.has_ended:
                # The program has fewer steps than were wanted.
                self.sync()
                self.write(f"b {self.n_in_block} {time.monotonic_ns() - self.since}")
                self.n_in_block = 0
            self.tell_values()
            for function in list(self.before_end):
                self.attempt(function, self.before_end)
            if self.loaded_pid == os.getpid() and not self.is_measuring:
                self.sync()
                self.write(f"z {time.monotonic_ns()}")
                self.write(f"v {self.n_calls}")
            cuda = self.cuda()
            if cuda and hasattr(cuda, "max_memory_reserved"):
                self.once(f"g {cuda.max_memory_reserved()}")
            self.tell_patch()
        except Exception as e:
            self.trouble(f"at the end: {e!r}")

    # ---- losses ----

    def saw(self, value, is_loss):
        """Keep a loss or an output of the first steps, where it is; it is read when measuring starts."""
        if self.n_values >= N_VALUES or (self.has_loss and not is_loss):
            return
        try:
            if is_loss and not self.has_loss:
                self.has_loss, self.values, self.n_values = True, [], 0
            tensor = first_tensor(value)
            if tensor is None:
                return
            tensor = tensor.detach()
            whole = tensor.clone() if tensor.numel() == 1 else tensor.double().sum()
            self.values.append(whole)
            self.n_values += 1
        except Exception:
            self.n_values = N_VALUES

    def tell_values(self):
        for value in self.values:
            try:
                self.write(f"{'l' if self.has_loss else 'o'} {float(value).hex()}")
            except Exception:
                break
        self.values = []

    # ---- for remedies ----

    def when_loaded(self, name, function):
        """Call function(module) once the module is loaded, after the hooks of steps."""
        if self.is_forked and name != "torch" and name in sys.modules:
            # Parts of PyTorch; the end of its own import is still to come (_try_warm.py).
            function(sys.modules[name])
            return
        self.hooks.AFTER.setdefault(name, []).append(function)

    def changes(self, remedy):
        """Whether a remedy may change what it has found. Where it is only asked, it may not, and the log says that it would."""
        if self.is_asking:
            self.once(f"c {remedy}")
        return not self.is_asking

    def did(self, remedy):
        """A remedy has changed something; without it the run says nothing about the remedy."""
        self.once(f"d {remedy}")

    def set_switch(self, change):
        """Set a switch of PyTorch at each step, since programs have lines for it; without steps once it is loaded."""
        self.each_step.append(change)
        if self.n_steps == NEVER:
            self.when_loaded("torch", lambda torch: change())

    def set_context_flag(self, remedy, flag):
        """Have PyTorch's contexts made with a flag of cuCtxCreate(), before CUDA is used."""
        def patch(torch):
            original = torch.cuda._lazy_init

            def _lazy_init():
                try:
                    import ctypes
                    if not torch.cuda.is_initialized() and self.changes(remedy):
                        driver = ctypes.CDLL("libcuda.so.1")
                        if driver.cuInit(0) == 0 and driver.cuDevicePrimaryCtxSetFlags_v2(0, flag) == 0:
                            self.did(remedy)
                except (OSError, AttributeError):
                    pass  # without a driver, or with an old one, as without the remedy
                return original()
            torch.cuda._lazy_init = _lazy_init
        self.when_loaded("torch", patch)

    def where(self, remedy, text):
        """Say where the program would be changed: the line outside of packages that called us."""
        frame, is_direct = (None, False) if self.is_measuring else self.caller()
        if frame:
            place = f"{frame.f_code.co_filename}:{frame.f_lineno}"
            self.once(f"w {remedy} {place} {'' if is_direct else 'in what this calls: '}{text}")
        return frame if is_direct else None

    def add_arguments(self, remedy, names, arguments):
        """The same for arguments of a call to one of `names`; a patch if the call is plain to see."""
        text = ", ".join(f"{k}={v!r}" for k, v in arguments.items())
        frame = self.where(remedy, "add " + text)
        place = frame and find_call(frame.f_code.co_filename, frame.f_lineno, names, arguments)
        if place:
            self.edits.append((frame.f_code.co_filename, *place, text))

    def compile_model(self, remedy, write, **how):
        """Compile the modules with parameters that the program calls.

        All at once, when one of them comes for the N_LOOKS-th time: hooks see no calls after the first is compiled. Runs that
        are measured as a whole cannot wait: there it is the first one.
        """
        import weakref
        seen = []  # [module, number of calls]

        def compile(module):
            if not hasattr(module, "compile") or next(iter(module.parameters()), None) is None:
                return False
            found = next((s for s in seen if s[0]() is module), None)
            if found is None:
                if getattr(module, "_compiled_call_impl", None) is not None or not self.changes(remedy):
                    return True
                self.where(remedy, "before this, once: " + write)
                found = [weakref.ref(module), 0]
                seen.append(found)
            if self.is_measuring:
                return True
            found[1] += 1
            if found[1] < N_LOOKS and (self.n_steps != NEVER or self.by_calls):
                return False
            modules = [module] if len(seen) > MOST_MODULES else [s[0]() for s in seen]
            modules = [m for m in modules if m is not None and getattr(m, "_compiled_call_impl", None) is None]
            if modules:
                self.compile_all(modules, how)
                self.did(remedy)
            return True
        self.model.append(compile)

    def compile_all(self, modules, how):
        watch_skips(self)
        for module in modules:
            module.compile(**how)
            self.count_compiled(module)
        self.before_end.append(lambda: compiler_notes(self))

    def count_compiled(self, module):
        """Calls of what is compiled are no longer seen by the hooks, which torch.compile must not find."""
        compiled, thread = module._compiled_call_impl, self.hooks._thread

        def call(*args, **kwargs):
            if not thread.forward:  # the first one is seen
                self.on_call(module)
            return compiled(*args, **kwargs)
        if self.by_calls:
            module._compiled_call_impl = call

    def caller(self):
        """The frame of the program that called, and whether no other package is in between."""
        frame, is_direct = sys._getframe(1), True
        torch = os.path.dirname(getattr(sys.modules.get("torch"), "__file__", None) or "/nowhere/") + os.sep
        while frame is not None:
            file = frame.f_code.co_filename
            is_packaged = "site-packages" in file or "dist-packages" in file
            if not is_packaged and not file.startswith(("<", HERE, STDLIB, torch)):
                return frame, is_direct
            is_direct = is_direct and (not is_packaged or file.startswith(torch))
            frame = frame.f_back
        return None, False

    def tell_patch(self):
        if not self.edits:
            return
        import difflib
        for file in sorted({edit[0] for edit in self.edits}):
            with open(file, encoding="utf-8") as f:
                old = f.read().splitlines(keepends=True)
            new = list(old)
            # From the end on, so that places before stay where they are.
            for _, line, column, text in sorted({e for e in self.edits if e[0] == file}, reverse=True):
                before, after = new[line - 1][:column], new[line - 1][column:]
                comma = "" if before.rstrip().endswith((",", "(")) else ", "
                new[line - 1] = before + comma + text + after
            name = os.path.relpath(file)
            for line in difflib.unified_diff(old, new, "a/" + name, "b/" + name):
                self.write("p " + line.rstrip("\n"))
        self.edits = []


HERE = os.path.dirname(os.path.abspath(__file__)) + os.sep
STDLIB = os.path.dirname(os.path.abspath(os.__file__)) + os.sep


def first_tensor(value):
    """The first tensor of floating point in what a model returned."""
    if hasattr(value, "detach") and hasattr(value, "is_floating_point"):
        return value if value.is_floating_point() else None
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, (tuple, list)):
        for item in value:
            found = first_tensor(item)
            if found is not None:
                return found
    return None


def find_call(file, line, names, arguments):
    """(line, column) before the closing bracket of the one call at this line that may get arguments; None if unsure."""
    import ast
    try:
        with open(file, encoding="utf-8") as f:
            text = f.read()
        calls = []
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.Call) and node.lineno <= line <= node.end_lineno:
                name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
                if name in names:
                    calls.append(node)
    except Exception:
        return None
    if len(calls) != 1 or any(k.arg is None or k.arg in arguments for k in calls[0].keywords):
        return None
    lines = text.splitlines()
    # Columns of ast count bytes.
    column = len(lines[calls[0].end_lineno - 1].encode()[:calls[0].end_col_offset].decode()) - 1
    return calls[0].end_lineno, column


def compiler_notes(trial):
    """Say what the compiler made of the program: without it nobody can tell why nothing was gained."""
    counters = getattr(sys.modules.get("torch._dynamo.utils"), "counters", {})
    stats, skips = counters.get("stats", {}), counters.get("inductor", {}).get("cudagraph_skips", 0)
    breaks = counters.get("graph_break", {})
    graphs = stats.get("unique_graphs", 0)
    trial.once(f"h compiled graphs: {graphs}, of {stats.get('calls_captured', 0)} operators")
    if breaks:
        reason = max(breaks, key=breaks.get)
        trial.once(f"h graph breaks: {sum(breaks.values())}, most because: {str(reason).strip().splitlines()[0][:200]}")
    if skips:
        trial.once(f"h graphs that do not become CUDA graphs: {skips}")
    n = recorded_graphs()
    if n is not None:
        trial.once(f"h CUDA graphs recorded: {n}")


class Listening:
    """A logger of PyTorch that tells us what it is told, also where its level is too low."""

    def __init__(self, trial, logger):
        self.trial, self.logger = trial, logger

    def warning(self, text, *args):
        self.trial.once(f"h {str(text).strip().splitlines()[0][:200]}")
        return self.logger.warning(text, *args)

    def __getattr__(self, name):
        return getattr(self.logger, name)


def watch_skips(trial):
    """Why graphs do not become CUDA graphs is said to a logger: perf_hint_log, in later versions cudagraphs_log."""
    def patch(module):
        for name in ("perf_hint_log", "cudagraphs_log"):
            logger = getattr(module, name, None)
            if logger is not None:
                setattr(module, name, Listening(trial, logger))
    name = "torch._inductor.cudagraph_utils"
    if name in sys.modules:
        patch(sys.modules[name])
    else:
        trial.when_loaded(name, patch)


def recorded_graphs():
    """CUDA graphs that the compiler has recorded in this thread's device; None if it does not say."""
    trees = sys.modules.get("torch._inductor.cudagraph_trees")
    try:
        containers = trees.get_obj(trees.local, "tree_manager_containers")
        managers = [c.tree_manager for c in containers.values() if c.tree_manager is not None]
        return sum(count_nodes(node) for m in managers for nodes in m.roots.values() for node in nodes)
    except Exception:
        return None  # it is not there, or another version


def count_nodes(node):
    return 1 + sum(count_nodes(child) for children in node.children.values() for child in children)


def _seed(torch):
    """The same random numbers in each run, unless the program chooses its own."""
    import random
    random.seed(0)
    numpy = sys.modules.get("numpy")
    if numpy is not None and hasattr(numpy, "random"):
        numpy.random.seed(0)
    if hasattr(torch, "manual_seed"):
        torch.manual_seed(0)


def _watch_losses(trial):
    def autograd(module):
        import functools
        original = module.backward

        @functools.wraps(original)
        def backward(*args, **kwargs):
            if trial.n_values < N_VALUES and not trial.hooks.is_compiling():
                value = args[0] if args else kwargs.get("tensors")
                trial.saw(value, True)
            return original(*args, **kwargs)
        module.backward = backward
    trial.when_loaded("torch.autograd", autograd)
    trial.hooks.seen.output = lambda value: trial.saw(value, False)


def _watch_exit(trial):
    import atexit
    trial.real_exit = real = os._exit

    def _exit(status):
        trial.finish()
        real(status)
    os._exit = _exit
    atexit.register(trial.finish)
    # A forked child has its own steps, or none.
    os.register_at_fork(after_in_child=trial.clear)


def _model_seen(trial):
    def model(module):
        trial.on_call(module)
        for function in list(trial.model):
            if trial.attempt(function, trial.model, module) and function in trial.model:
                trial.model.remove(function)
        # Calls count where there are no steps.
        if not trial.model and not trial.by_calls and len(trial.times) > 1:
            trial.hooks.seen.model = None
    trial.hooks.seen.model = model


def _load_remedies(trial):
    from importlib.util import module_from_spec, spec_from_file_location
    paths = os.environ.get("LULL_TRY_ASKS" if trial.is_asking else "LULL_TRY_REMEDIES", "")
    for i, path in enumerate(filter(None, paths.split(":"))):
        spec = spec_from_file_location(f"_lull_remedy_{i}", path)
        module = module_from_spec(spec)
        try:
            spec.loader.exec_module(module)
            module.apply(trial)
            with open(path, encoding="utf-8") as f:
                says = ".did(" in f.read()
            if not says and not path.startswith(HERE):
                trial.did((module.__doc__ or "").partition(":")[0])
        except Exception as e:
            trial.trouble(f"{os.path.basename(path)}: {type(e).__name__}: {e}")


def _load_all(trial):
    _load_remedies(trial)
    _model_seen(trial)


def begin(hooks):
    """Called before the program, by _hooks.py."""
    try:
        numbers = [int(n) for n in os.environ["LULL_TRY_STEPS"].split(",")]
    except (KeyError, ValueError):
        numbers = [0, NEVER, 1]
    trial = Trial(os.environ["LULL_TRY"], numbers)
    trial.hooks = hooks
    hooks._load("_lull_try_saves", "_try_saves.py").begin(trial)
    if "LULL_SESSION" in os.environ:
        trial.write(f"a {time.monotonic_ns()}")
        hooks.seen.step = trial.on_recorded_step
        trial.is_asking = "LULL_TRY_ASKS" in os.environ
        _load_all(trial)
        if trial.is_asking:
            import atexit
            atexit.register(trial.asked_until_end)
        return
    trial.write(f"a {time.monotonic_ns()}")
    sys.modules["_lull"] = trial
    _watch_exit(trial)
    trial.when_loaded("torch", _seed)
    _watch_losses(trial)
    if "LULL_TRY_WARM" not in os.environ or not hooks._load("_lull_try_warm", "_try_warm.py").begin(trial, _load_all):
        _load_all(trial)
    # Each forked run comes by here.
    trial.when_loaded("torch", trial.loaded)
