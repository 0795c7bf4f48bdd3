#!/usr/bin/env python3
"""lull attach: programs that were started without lull are recorded, left as they were, and recorded again.

Usage: test_attach.py BUILD [NAME...]
"""
import atexit
import ctypes
import ctypes.util
import json
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import time

import runner
import stand_in_torch
from runner import expect, run, skip, until, until_file

BUILD = os.path.abspath(sys.argv[1])
LULL = os.path.abspath(os.environ.get("LULL", os.path.join(BUILD, "lull")))

# Counts rounds until a file tells it to end; a thread waits, another sleeps.
GUEST = """
import os, sys, threading, time
def square(n):
    return sum(i * i for i in range(n))
def sleeper():
    while True:
        time.sleep(0.002)
never = threading.Event()
threading.Thread(target=never.wait, daemon=True).start()
threading.Thread(target=sleeper, daemon=True).start()
while not never._cond._waiters:  # it has taken the memory that it takes
    time.sleep(0.001)
n, open_before = 0, len(os.listdir("/proc/self/fd"))
while not os.path.exists("end"):
    assert square(300) == 8955050
    n += 1
    if n == 10:
        open("ready", "w").close()
print(len(os.listdir("/proc/self/fd")) - open_before)
sys.exit(3)
"""


# The same, but mostly asleep.
CALM = GUEST.replace("    n += 1\n", "    n += 1\n    time.sleep(0.002)\n")

# Launches kernels with the simulated device until a file tells it to end. It pauses: a program that never does calls CUDA
# all the time, and there is no moment at which CUPTI can be left.
CUDA = """
import ctypes, os, sys, time
cu = ctypes.CDLL("libcuda.so.1")
def ok(result):
    assert result == 0, result
context, module, function, stream, memory = (ctypes.c_void_p() for _ in range(5))
ok(cu.cuInit(0))
ok(cu.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0))
ok(cu.cuCtxSetCurrent(context))
ok(cu.cuModuleLoadData(ctypes.byref(module), b".version 7.0\\n.target sm_70\\n.address_size 64\\n.visible .entry add_one(.param .u64 p)\\n{ ret; }\\n"))
ok(cu.cuModuleGetFunction(ctypes.byref(function), module, b"add_one"))
ok(cu.cuStreamCreate(ctypes.byref(stream), 1))
ok(cu.cuMemAlloc_v2(ctypes.byref(memory), 4))
argument = (ctypes.c_void_p * 1)(ctypes.addressof(memory))
n, open_before = 0, len(os.listdir("/proc/self/fd"))
while not os.path.exists("end"):
    for _ in range(20):
        ok(cu.cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, stream, argument, None))
    ok(cu.cuStreamSynchronize(stream))
    time.sleep(0.002)
    n += 1
    if n >= 10 and not os.path.exists("ready"):
        open("ready", "w").close()
print(len(os.listdir("/proc/self/fd")) - open_before)
sys.exit(3)
"""


def guest(text=GUEST, python=sys.executable, **how):
    for name in ("ready", "end"):
        if os.path.exists(name):
            os.unlink(name)
    p = runner.start([python, "-c", text], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **how)
    until_file("ready")
    return p


def rounds(name="ready"):
    """Let the program begin and end a round; it makes the file at the end of each, if there is none."""
    for _ in range(2):
        os.unlink(name)
        until_file(name)


def end(p, status=3):
    """It ends as it would have without lull, and has no descriptor of ours."""
    open("end", "w").close()
    out, err = runner.finish(p)
    expect("the end of the program", p.returncode == status and out == "0\n", (p.returncode, out, err))


def attach(p, *words, lull=LULL):
    """To a process, or to one by its number."""
    return run([lull, "attach", "-f", "-o", "a", *words, str(getattr(p, "pid", p))])


def attach_until(p, is_enough, *words, ms=300, lull=LULL):
    """
    Attach for longer and longer, until the report has what it has to have: on a busy machine the program, and whoever samples
    it, may not get to run in a third of a second. What lull said at last, and how often it was attached.
    """
    for n in range(1, 5):
        r = attach(p, "-d", f"{ms * 4 ** (n - 1)}ms", *words, lull=lull)
        expect("the status", r.returncode == 0, r.stderr)
        if is_enough():
            break
    return r, n


def need_attach():
    """Programs that are no children may be traced here; with Yama's ptrace_scope of 1 only root's lull can."""
    if not runner.can(LULL, "attach"):
        skip("programs that run must not be traced here (lull doctor says why)")


def info():
    return run([LULL, "info", "a.lull"], check=True).stdout


def n_rows(*tables):
    """Rows of these tables, as lull info counts them."""
    found = dict(re.findall(r"^ (\w+) +([\d,]+) ", info(), re.M))
    return [int(found.get(table, "0").replace(",", "")) for table in tables]


def threads(p):
    names = set()
    for tid in os.listdir(f"/proc/{p.pid}/task"):
        try:
            with open(f"/proc/{p.pid}/task/{tid}/comm", encoding="utf-8") as f:
                names.add(f.read().strip())
        except OSError:
            pass  # it has ended
    return names


def is_left(p):
    """No thread of ours: the last one says that it leaves a moment before it ends."""
    return not any(name.startswith("lull") for name in threads(p))


def maps(p):
    with open(f"/proc/{p.pid}/maps", encoding="utf-8") as f:
        return f.read().splitlines()


def is_recording(p):
    return "recording to" in "".join(said(run([LULL, "status", "--session", f"attach-{p.pid}"])))


def until_recording(p):
    until(lambda: is_recording(p), "it records")


def said(r):
    return r.stdout, r.stderr


def rows(table, report="a.lull"):
    r = run([LULL, "query", "-f", "json", report, f"select count(*) as n from {table}"], check=True)
    return json.loads(r.stdout)[0]["n"]


def stats(name, report="a.lull"):
    return run([LULL, "stats", "-r", name, report], check=True).stdout


def refused(pid, *sentence):
    before = os.path.exists("r.lull")
    r = run([LULL, "attach", "-d", "1s", "-o", "r", str(pid)])
    expect("the refusal", r.returncode == 1 and all(part in r.stderr for part in sentence), (r.returncode, r.stderr))
    expect("one sentence", r.stderr.count("\n") == 1, r.stderr)
    expect("no report", os.path.exists("r.lull") == before)


def a_program_that_runs_is_recorded():
    p = guest()
    tables = ["pysample", "usage", "oscall", "gil_wait"]
    tables += [table for table, check in (("sample", "samples"), ("sched", "switches")) if runner.can(LULL, check)]
    r, _ = attach_until(p, lambda: all(n_rows(*tables)))
    expect("what is said", f"process {p.pid} continues" in r.stderr and "lull: next: lull stats " in r.stderr, r.stderr)
    expect("its name", re.search(rf"^ python\S* +{p.pid} +running ", info(), re.M), info())
    for table, n in zip(tables, n_rows(*tables)):
        expect(f"rows of {table}", n, info())
    end(p)


def nothing_stays_but_the_library():
    p = guest()
    expect("the first", attach(p, "-d", "200ms").returncode == 0)
    until(lambda: is_left(p), "no thread of ours")
    first = maps(p)
    for _ in range(4):
        r = attach(p, "-d", "100ms")
        expect("again", r.returncode == 0, r.stderr)
    until(lambda: is_left(p) and not any("/lull-" in m for m in maps(p)), "no session's memory")
    again = maps(p)
    expect("mapped once", len([m for m in again if "liblull-agent" in m]) == len([m for m in first if "liblull-agent" in m]))
    end(p)


# A training loop with a stand-in for PyTorch, which says at its end whether all is as it was.
TRAIN = """
import os, sys, time
sys.path.insert(0, "stand-in")
import torch, torch._dynamo
class Model(torch.nn.Module):
    def forward(self, x): return x
def places():
    return (torch.nn.Module.__call__, torch.autograd.backward, torch.optim.Optimizer.zero_grad, torch.save,
            torch.utils.data.DataLoader.__iter__, list(sys.meta_path), len(torch.optim.optimizer._pre),
            torch._dynamo.eval_frame.OptimizedModule(model)(5))
model, opt, n = Model(), torch.optim.SGD([1]), 0
before, open_before = places(), len(os.listdir("/proc/self/fd"))
for batch in torch.utils.data.DataLoader(range(100000)):
    torch.autograd.backward(model(batch))
    opt.step()
    time.sleep(0.001)
    n += 1
    if n == 10:
        open("ready", "w").close()
    if os.path.exists("end"):
        break
print(len(os.listdir("/proc/self/fd")) - open_before)
sys.exit(3 if places() == before else 4)
"""


def phases_of_pytorch_and_nothing_stays():
    stand_in_torch.write("stand-in", "2.11")
    p = guest(TRAIN)
    for _ in range(2):
        # Two steps or more have each phase in them, wherever the recording began.
        attach_until(p, lambda: n_rows("step")[0] >= 2)
        expect("steps and ranges", all(n_rows("step", "range")), info())
    names = run([LULL, "query", "a.lull", "select distinct name from label"], check=True).stdout
    expect("phases", all(name in names for name in ("forward", "backward", "optimizer", "data")), names)
    r = attach(p, "--steps", "3")
    expect("the status", r.returncode == 0, r.stderr)
    expect("three steps", len(re.findall(r"^ +\d+ +[\d,]+ +[\d,]+ +\d+", stats("steps"), re.M)) == 3, stats("steps"))
    attach_until(p, lambda: rows("window"), "--duty", "40%", ms=2000)
    expect("windows", rows("window") >= 1)
    end(p)


def a_class_that_inherits_a_call_does_so_again():
    """Compiled models of older versions have the call of all modules."""
    stand_in_torch.write("stand-in", "2.1")
    p = guest(TRAIN)
    for _ in range(2):
        attach_until(p, lambda: n_rows("step")[0] >= 2)
        expect("steps", n_rows("step")[0] >= 2, info())
    end(p)


def counted(key):
    """What the simulated CUPTI counted, once the program has ended."""
    found = re.search(rf"\b{key}\D*(\d+)", open("state", encoding="ascii").read())
    return int(found[1]) if found else None


def simulated(text, **variables):
    return guest(text, env={**os.environ, "LD_LIBRARY_PATH": os.path.join(BUILD, "sim"),
                            "LULL_SIM_STATE": os.path.abspath("state"), **variables})


def cuda_is_recorded_and_left():
    p = simulated(CUDA)
    n_attached = 0
    for i in range(3):
        r, n = attach_until(p, lambda: n_rows("kernel")[0] >= 20)
        n_attached += n
        n_kernels, n_contexts = n_rows("kernel", "cuda_context")
        expect("kernels", n_kernels >= 20 and n_contexts == 1, info())
        expect("nothing lost", "none lost" in r.stderr, r.stderr)
        sums = stats("cuda_gpu_kern_sum")
        expect("their name", "add_one" in sums, sums)
        linked = stats("cuda_kern_exec_sum")
        expect("their calls", "cuLaunchKernel" in linked, linked)
        until(lambda: is_left(p), "no thread of ours")
    end(p)
    expect("CUPTI was left each time", counted("finalized") == n_attached, open("state", encoding="ascii").read())


def a_forked_child_has_no_cupti():
    """A worker that forks while its parent is recorded: CUPTI is the parent's, and the worker can be attached to itself."""
    forks = """    if os.path.exists("fork") and not os.path.exists("child"):
        pid = os.fork()
        if not pid:
            for name in ("libm.so.6", "libresolv.so.2", "libz.so.1"):
                try:
                    ctypes.CDLL(name)
                except OSError:
                    pass
            open("loaded", "w").close()
            while not os.path.exists("end"):
                time.sleep(0.01)
            os._exit(0)
        with open("child", "w") as f:
            f.write(str(pid) + "\\n")
    n += 1
"""
    p = simulated(CUDA.replace("    n += 1\n", forks, 1))
    a = runner.start([LULL, "attach", "-f", "-o", "a", str(p.pid)], stderr=subprocess.PIPE, text=True)
    until_recording(p)
    rounds()
    open("fork", "w").close()
    until_file("loaded")
    until(lambda: os.path.exists("child") and open("child", encoding="ascii").read().endswith("\n"), "the child is named")
    child = int(open("child", encoding="ascii").read())
    names = {open(f"/proc/{child}/task/{t}/comm", encoding="utf-8").read().strip() for t in os.listdir(f"/proc/{child}/task")}
    expect("nobody fetches records in the child", "lull-flush" not in names, names)
    expect("detached", run([LULL, "detach", str(p.pid)]).returncode == 0)
    runner.finish(a)
    expect("none lost", rows("kernel") > 0, info())
    r = attach(child, "-d", "50ms")
    expect("the child alone", r.returncode == 0, r.stderr)
    end(p)
    for name in ("fork", "child", "loaded"):
        os.unlink(name)


# The same training, but not on the main thread, which waits for it and runs no Python.
PARKED = f"text = {TRAIN!r}" + """
import sys, threading
def work():
    global status
    try:
        exec(compile(text, "train.py", "exec"), {"__name__": "__main__"})
    except SystemExit as end:
        status = end.code
thread = threading.Thread(target=work)
thread.start()
thread.join()
sys.exit(status)
"""


def a_main_thread_that_waits_need_not_come():
    stand_in_torch.write("stand-in", "2.11")
    p = guest(PARKED)
    for _ in range(2):
        attach_until(p, lambda: n_rows("step")[0] >= 2, ms=1500)
        expect("steps and ranges", all(n_rows("step", "range")), info())
    end(p)


def a_report_that_is_there_keeps_the_program_untouched():
    p = guest()
    open("there.lull", "w").close()
    r = run([LULL, "attach", "-o", "there", "-d", "50ms", str(p.pid)])
    expect("refused", r.returncode == 1 and "there.lull exists already; remove it, or" in r.stderr, r.stderr)
    with open(f"/proc/{p.pid}/maps", encoding="utf-8") as f:
        expect("nothing of ours in it", "liblull" not in f.read())
    end(p)


def programs_with_graphs_keep_cupti():
    """CUPTI must not leave them and come back."""
    launch = CUDA[CUDA.index("    for _ in range(20):"):CUDA.index("    ok(cu.cuStreamSynchronize")]
    make = """graph, exec_ = ctypes.c_void_p(), ctypes.c_void_p()
ok(cu.cuStreamBeginCapture_v2(stream, 0))
ok(cu.cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, stream, argument, None))
ok(cu.cuStreamEndCapture(stream, ctypes.byref(graph)))
ok(cu.cuGraphInstantiateWithFlags(ctypes.byref(exec_), graph, ctypes.c_uint64(0)))
n, open_before"""
    text = CUDA.replace(launch, "    ok(cu.cuGraphLaunch(exec_, stream))\n").replace("n, open_before", make, 1)
    p = simulated(text)
    for _ in range(2):
        r, _ = attach_until(p, lambda: max(rows("kernel"), rows("graph")) >= 10)
        expect("nothing is lost", "none lost" in r.stderr, r.stderr)
        expect("its work", max(rows("kernel"), rows("graph")) >= 10, info())
    end(p)
    expect("CUPTI was not left", not counted("finalized"), open("state", encoding="ascii").read())


# Two threads with a stream each, which are in CUDA calls at any time.
TWO = CUDA.replace("import ctypes, os, sys, time", "import ctypes, os, sys, threading, time").replace("""while not os.path.exists("end"):
    for _ in range(20):
""", """def work():
    stream = ctypes.c_void_p()
    ok(cu.cuCtxSetCurrent(context))
    ok(cu.cuStreamCreate(ctypes.byref(stream), 1))
    while not os.path.exists("end"):
        for _ in range(20):
            ok(cu.cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, stream, argument, None))
        ok(cu.cuStreamSynchronize(stream))
for _ in range(2):
    threading.Thread(target=work).start()
while not os.path.exists("end"):
    for _ in range(0):
""").replace("    ok(cu.cuStreamSynchronize(stream))\n    time.sleep(0.002)\n", "    time.sleep(0.002)\n")


def record_two(p, *words, times=4, ms=300):
    """Recordings in which each call has a number of its own."""
    linked = """select count(*), count(distinct k.lane), count(distinct k.correlation), sum(k.correlation in
                (select correlation from cuda_call)), (select count(distinct lane) from cuda_call) from kernel k"""

    def counts():
        out = run([LULL, "query", "-f", "csv", "a.lull", linked], check=True).stdout
        return [int(word or 0) for word in out.splitlines()[-1].split(",")]

    def is_of_both():
        n, n_streams, _, _, n_threads = counts()
        return n >= 100 and n_streams == 2 and n_threads == 2

    for _ in range(times):
        r, _ = attach_until(p, is_of_both, *words, ms=ms)
        expect("nothing is lost", "none lost" in r.stderr, r.stderr)
        n, n_streams, n_numbers, n_linked, n_threads = out = counts()
        expect("two streams, two threads", n_streams == 2 and n_threads == 2, out)
        # What was launched just before the recording has no call in it.
        expect("calls of all kernels", n >= 100 and n_linked >= n - 50, out)
        expect("a number for each call", n_numbers == n, out)
        until(lambda: is_left(p), "no thread of ours")


def state():
    """All that the simulated CUPTI counted."""
    with open("state", encoding="ascii") as f:
        return f.read()


def threads_that_share_the_device_keep_cupti():
    """Another thread may enter a call while CUPTI is left, and what it uses is freed then. But nothing of it is on."""
    p = simulated(TWO, LULL_SIM_CALL_NS="20000")
    record_two(p)
    end(p)
    expect("CUPTI was not left", not counted("finalized"), state())
    expect("nothing is on", not any(map(counted, ("calls_on", "kinds_on"))), state())
    expect("no call without its end", not counted("endless"), state())


def callbacks_stay_on_for_threads_on_their_way():
    """A thread that has no CPU between CUPTI's look whether a call is wanted and our callback is in that call all the same."""
    p = simulated(TWO, LULL_SIM_CALL_NS="20000", LULL_SIM_LATE_US="300")
    record_two(p, times=2)
    record_two(p, "--duty", "40%", times=1, ms=2000)
    end(p)
    expect("no call without its end", not counted("endless"), state())


def callbacks_that_were_never_silent_stay_on():
    """There always is a thread on its way when a recording ends; the next one begins while threads are in calls."""
    p = simulated(TWO, LULL_SIM_CALL_NS="2000000", LULL_SIM_LATE_US="2000")
    record_two(p, times=6)
    end(p)
    expect("no call without its end", not counted("endless"), state())


def ranges(report="a.lull"):
    out = run([LULL, "query", "-f", "csv", report, "select name, count(*) from ranges group by name"]).stdout
    return {line.split(",")[0]: int(line.split(",")[1]) for line in out.split()[1:]}


def nvtx(name, *words):
    """Ranges of a program whose first call of NVTX found no tool; it has none again when it is left."""
    path = os.path.join(BUILD, "e2e", name)
    if not os.path.exists(path):
        skip("NVTX's headers are not installed")
    for file in ("ready", "end", "go", "seen"):
        if os.path.exists(file):
            os.unlink(file)
    p = runner.start([path, *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    until_file("ready")
    return p


def has_both_ranges():
    found = ranges()
    return found.get("outer", 0) > 10 and found.get("inner", 0) > 10


def ranges_of_nvtx_are_recorded_and_left():
    p = nvtx("nvtx_late")
    for _ in range(2):
        r, _ = attach_until(p, has_both_ranges)
        expect("what is said", "none lost" in r.stderr, r.stderr)
        expect("both ranges", has_both_ranges(), ranges())
    expect("not if they are not wanted", attach(p, "-d", "100ms", "-t", "osrt").returncode == 0 and not ranges(), ranges())
    end(p)


def ranges_of_nvtx_without_the_headers():
    p = nvtx("nvtx_late_own")
    attach_until(p, has_both_ranges)
    expect("both ranges", has_both_ranges(), ranges())
    end(p)


def attach_before_nvtx(name, how):
    """Attach to a program, and let it make its first call of NVTX then."""
    p = nvtx(name, how)
    a = runner.start([LULL, "attach", "-f", "-o", "a", str(p.pid)], stderr=subprocess.PIPE, text=True)
    until_recording(p)
    open("go", "w").close()
    until_file("seen")
    for _ in range(2):
        rounds("seen")
    expect("detached", run([LULL, "detach", str(p.pid)]).returncode == 0)
    runner.finish(a)
    return p


def nvtx_that_is_called_first_while_attached():
    for name in ("nvtx_late_own", "nvtx_late"):
        if not os.path.exists(os.path.join(BUILD, "e2e", name)):
            continue
        p = attach_before_nvtx(name, "later")
        expect("its very first range", ranges().get("first") == 1, ranges())
        attach_until(p, has_both_ranges)
        expect("again", has_both_ranges(), ranges())
        end(p)


def nvtx_that_does_not_ask_is_found():
    p = attach_before_nvtx("nvtx_late_own", "deaf")
    expect("ranges", ranges().get("outer", 0) > 1, ranges())
    end(p)


def detach_ends_it():
    p = guest(CALM)
    a = runner.start([LULL, "attach", "-f", "-o", "a", str(p.pid)], stderr=subprocess.PIPE, text=True)
    until(lambda: "lull-attach" in threads(p), "the agent is in")
    until_recording(p)
    refused(p.pid, "is recorded by lull already", "lull sessions")
    r = run([LULL, "detach", str(p.pid)])
    expect("detached", r.returncode == 0 and "the program continues" in r.stderr, (r.returncode, r.stderr))
    out, err = runner.finish(a)
    expect("the report", a.returncode == 0 and "a.lull" in err, (a.returncode, err))
    r = run([LULL, "detach", str(p.pid)])
    expect("nobody there", r.returncode == 1 and "nobody has attached" in r.stderr, r.stderr)
    end(p)


def ctrl_c_ends_it():
    p = guest(CALM)
    a = runner.start([LULL, "attach", "-f", "-o", "a", str(p.pid)], stderr=subprocess.PIPE, text=True,
                     preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL))
    until_recording(p)
    a.send_signal(signal.SIGINT)
    out, err = runner.finish(a)
    expect("the report", a.returncode == 0 and "a.lull" in err, (a.returncode, err))
    end(p)


def the_end_of_the_program_ends_it():
    p = guest(CALM)
    a = runner.start([LULL, "attach", "-f", "-o", "a", str(p.pid)], stderr=subprocess.PIPE, text=True)
    until_recording(p)
    end(p)
    out, err = runner.finish(a)
    expect("the report", a.returncode == 0 and "a.lull" in err, (a.returncode, err))
    expect("what is said", f"process {p.pid} has ended" in err and "continues" not in err, err)


def a_recorder_that_dies_is_left():
    p = guest(CALM)
    a = runner.start([LULL, "attach", "-f", "-o", "a", str(p.pid)], stderr=subprocess.PIPE, text=True)
    until_recording(p)
    a.kill()
    a.wait()
    until(lambda: "lull-attach" not in threads(p), "the agent leaves by itself")
    expect("and comes again", attach(p, "-d", "100ms").returncode == 0)
    end(p)


def compiled(name, source, *flags, compiler="gcc", named=None, **how):
    if not shutil.which(compiler):
        skip(f"no {compiler}")
    with open(f"{name}.c", "w", encoding="ascii") as f:
        f.write(source)
    subprocess.run([compiler, "-o", name, f"{name}.c", *flags], check=True)
    p = runner.start([f"./{name}"], **how)
    # It gets its name a moment after Python has heard that it runs.
    until(lambda: p.poll() is not None or (named or name) in threads(p), "it has its name")
    return p


WAITS = "#include <unistd.h>\nint main(void) { for (;;) pause(); }\n"


def syscall_of(p):
    with open(f"/proc/{p.pid}/syscall", encoding="ascii") as f:
        return f.read().split()[0]


def a_wait_that_was_interrupted_before():
    """After Ctrl-Z the kernel continues a sleep by a call that nobody else can make."""
    p = runner.start(["sleep", "1000"])
    until(lambda: threads(p) == {"sleep"} and syscall_of(p).isdigit(), "it sleeps")
    before = syscall_of(p)
    p.send_signal(signal.SIGSTOP)
    until(lambda: "T (stopped)" in open(f"/proc/{p.pid}/status", encoding="utf-8").read(), "it is stopped")
    p.send_signal(signal.SIGCONT)
    until(lambda: syscall_of(p).isdigit(), "it sleeps again")
    expect("by another call", syscall_of(p) != before, before)
    for _ in range(3):
        r = attach(p, "-d", "50ms")
        expect("the status", r.returncode == 0, r.stderr)
    until(lambda: p.poll() is not None or syscall_of(p).isdigit(), "it sleeps on")
    expect("it sleeps still", p.poll() is None and syscall_of(p) == before, syscall_of(p))
    p.kill()


# It waits for data on a socket with a timeout, where the kernel does not make calls again.
TIMED = """#include <stdio.h>
#include <sys/socket.h>
#include <sys/time.h>
int main(void)
{
	struct timeval limit = { 1000, 0 };
	int ends[2];
	char c;

	socketpair(AF_UNIX, SOCK_STREAM, 0, ends);
	setsockopt(ends[0], SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
	fclose(fopen("ready", "w"));
	recv(ends[0], &c, 1, 0);
	return 0;
}
"""


def a_socket_with_a_timeout_waits_on():
    p = compiled("timed", TIMED)
    until_file("ready")
    until(lambda: syscall_of(p).isdigit(), "it waits")
    for _ in range(5):
        r = attach(p, "-d", "20ms")
        expect("the status", r.returncode == 0, r.stderr)
    expect("it waits still", p.poll() is None, p.returncode)
    p.kill()


def python_that_has_not_begun_is_left_alone():
    """A program that only links the interpreter's library."""
    library = ctypes.util.find_library("python3.{}".format(sys.version_info[1]))
    if not library:
        skip("no libpython here")
    source = WAITS.replace("int main(void) {", f'#include <dlfcn.h>\nint main(void) {{ dlopen("{library}", RTLD_NOW | RTLD_GLOBAL);')
    p = compiled("idle", source, "-ldl")
    until(lambda: any("libpython" in m for m in maps(p)) and syscall_of(p).isdigit(), "it has the library")
    for _ in range(2):
        r = attach(p, "-d", "100ms")
        expect("the status", r.returncode == 0, r.stderr)
    expect("it is there", p.poll() is None, p.returncode)
    p.kill()


# Has a thread such as an agent's that has left all but its last instructions, until a file tells it to end.
LEAVES = """#include <pthread.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <unistd.h>
static void *leave(void *unused)
{
	prctl(PR_SET_NAME, "lull-attach");
	fclose(fopen("ready", "w"));
	while (access("leave", F_OK))
		usleep(1000);
	return unused;
}
int main(void)
{
	pthread_t thread;

	pthread_create(&thread, 0, leave, 0);
	for (;;)
		pause();
}
"""


def an_agent_that_leaves_is_waited_for():
    """Longer than for one whose session is there."""
    p = compiled("leaves", LEAVES, "-lpthread")
    until_file("ready")
    a = runner.start([LULL, "attach", "-f", "-o", "a", "-d", "20ms", str(p.pid)], stderr=subprocess.PIPE, text=True)
    time.sleep(2)
    open("leave", "w").close()
    _, err = runner.finish(a)
    expect("the status", a.returncode == 0, err)
    p.kill()


# Two threads that wait for each other through pipes.
PIPES = """#include <pthread.h>
#include <unistd.h>
static int there[2], back[2];
static void *answer(void *unused)
{
	char byte;

	while (read(there[0], &byte, 1) == 1 && write(back[1], &byte, 1) == 1)
		;
	return unused;
}
int main(void)
{
	pthread_t thread;
	char byte = 'x';

	if (pipe(there) || pipe(back) || pthread_create(&thread, 0, answer, 0))
		return 1;
	for (;;) {
		usleep(1000);
		if (write(there[1], &byte, 1) != 1 || read(back[0], &byte, 1) != 1)
			return 1;
	}
}
"""


def words_of(p, path):
    """All words in the memory that the process has of this file, and may have written to."""
    words = []
    with open(f"/proc/{p.pid}/mem", "rb") as memory:
        for line in maps(p):
            if line.endswith(path) and " r--p " in line or line.endswith(path) and " rw-p " in line:
                first, last = (int(x, 16) for x in line.split()[0].split("-"))
                memory.seek(first)
                data = memory.read(last - first)
                words += [int.from_bytes(data[i:i + 8], "little") for i in range(0, len(data), 8)]
    return words


def calls_of_the_c_library(flag):
    p = compiled("pipes", PIPES, "-lpthread", f"-Wl,-z,{flag}")
    until(lambda: len(threads(p)) and len(os.listdir(f"/proc/{p.pid}/task")) == 2, "it has its thread")
    def has_calls():
        return all(re.search(rf" {name}$", stats("osrt_sum"), re.M) for name in ("read", "usleep"))

    for _ in range(2):
        attach_until(p, has_calls)
        expect("calls of read and usleep", has_calls(), stats("osrt_sum"))
    ours = [[int(x, 16) for x in m.split()[0].split("-")] for m in maps(p) if "liblull-agent" in m]
    left = [w for w in words_of(p, "/pipes") for first, last in ours if first <= w < last]
    expect("no entry of ours", ours and not left, left)
    expect("it goes on", p.poll() is None)


def calls_are_seen_and_entries_put_back():
    calls_of_the_c_library("now")


def entries_that_are_not_bound_yet_too():
    calls_of_the_c_library("lazy")


# Calls MPI by name, and by addresses that it looks up each time and once.
MPI = """#include <dlfcn.h>
#include <mpi.h>
#include <stdio.h>
#include <unistd.h>
typedef int barrier(MPI_Comm comm);
int main(void)
{
	barrier *kept = 0;
	int from = 3, to;

	MPI_Init(NULL, NULL);
	while (access("end", F_OK)) {
		barrier *found = (barrier *)dlsym(RTLD_DEFAULT, "MPI_Barrier");

		kept = kept ? kept : access("go", F_OK) ? 0 : found;
		to = 0;
		MPI_Allreduce(&from, &to, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
		if (to != 3 || found(MPI_COMM_WORLD) || (kept && kept(MPI_COMM_WORLD)))
			return 1;
		usleep(1000);
		fclose(fopen("ready", "w"));
	}
	MPI_Finalize();
	return 3;
}
"""


def calls_of_mpi(flag):
    for name in ("ready", "end", "go"):
        if os.path.exists(name):
            os.unlink(name)
    p = compiled("mpi", MPI, f"-Wl,-z,{flag}", compiler="mpicc.mpich")
    until_file("ready")
    for n in range(2):
        a = runner.start([LULL, "attach", "-f", "-o", "a", "-t", "mpi", str(p.pid)], stderr=subprocess.PIPE, text=True)
        until_recording(p)
        open("go", "w").close()
        rounds()
        expect("detached", run([LULL, "detach", str(p.pid)]).returncode == 0)
        _, err = runner.finish(a)
        expect("the status", a.returncode == 0, err)
        sums = stats("mpi_event_sum")
        expect(f"calls, time {n}", "MPI_Allreduce" in sums and "MPI_Barrier" in sums, sums)
        ours = [[int(x, 16) for x in m.split()[0].split("-")] for m in maps(p) if "liblull-agent" in m]
        left = [w for w in words_of(p, "/mpi") for first, last in ours if first <= w < last]
        expect("no entry of ours", ours and not left, left)
        # It has looked some up, and they may still be called.
        os.unlink("ready")
        until_file("ready")
    open("end", "w").close()
    expect("the end of the program", p.wait(runner.limit()) == 3, p.returncode)


def calls_of_mpi_are_seen_and_entries_put_back():
    calls_of_mpi("now")
    calls_of_mpi("lazy")


def a_lively_program_survives_many():
    """ATTACHES in the environment sets how many (default 8); tools/attach-soak looks closer."""
    for name in ("ready", "end"):
        if os.path.exists(name):
            os.unlink(name)
    p = runner.start([os.path.join(BUILD, "e2e/lively")], stdout=subprocess.PIPE, text=True)
    until_file("ready")
    fds = len(os.listdir(f"/proc/{p.pid}/fd"))
    first = 0
    for i in range(int(os.environ.get("ATTACHES") or 8)):
        r = attach(p, "-d", "20ms", "-q", "--python-sampling=false")
        expect(f"attachment {i}", r.returncode == 0 and p.poll() is None, (r.returncode, p.poll(), r.stderr))
        if i == 3:
            first = len(maps(p))
    # It maps and opens files itself, now and then.
    until(lambda: len(maps(p)) < first + 10, f"no mapping more each time than {first} and a few")
    until(lambda: len(os.listdir(f"/proc/{p.pid}/fd")) <= fds + 2, f"no descriptor more than {fds}")
    open("end", "w").close()
    out, _ = runner.finish(p)
    expect("it computed the same", p.returncode == 5 and out == "0 1\n", (p.returncode, out))


# Its only thread is in the loader nearly all the time.
LOADS = """
import _ctypes, os, sys
n, open_before = 0, len(os.listdir("/proc/self/fd"))
while not os.path.exists("end"):
    for _ in range(20):
        _ctypes.dlclose(_ctypes.dlopen(sys.argv[1], 2))
    n += 1
    if n == 2:
        open("ready", "w").close()
print(len(os.listdir("/proc/self/fd")) - open_before)
sys.exit(3)
"""


def a_program_that_loads_files_goes_on():
    """The agent must not ask the loader for anything while it looks at the loaded files."""
    for name in ("ready", "end"):
        if os.path.exists(name):
            os.unlink(name)
    p = runner.start([sys.executable, "-c", LOADS, os.path.join(BUILD, "e2e/part/libneighbour.so")], stdout=subprocess.PIPE,
                     stderr=subprocess.PIPE, text=True, env={**os.environ, "LD_LIBRARY_PATH": os.path.join(BUILD, "sim")})
    until_file("ready")
    for _ in range(16):
        r = attach(p, "-d", "20ms")
        # It may not come to a safe point for seconds; then nothing was changed.
        expect("the status", r.returncode == 0 or "nothing was changed" in r.stderr, r.stderr)
    end(p)


# Has its C library and its loader mapped once more, as data, below where they are.
READS = """
import ctypes, mmap
lines = [line.split() for line in open("/proc/self/maps")]
for name in ("libc.so", "ld-linux"):
    start, path = next((int(l[0].split("-")[0], 16), l[5]) for l in lines if len(l) > 5 and os.path.basename(l[5]).startswith(name))
    size = os.path.getsize(path)
    libc = ctypes.CDLL(None)
    libc.mmap.restype = ctypes.c_void_p
    libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_long]
    fd = os.open(path, os.O_RDONLY)
    at = libc.mmap(start - (1 << 30), size, mmap.PROT_READ, mmap.MAP_PRIVATE, fd, 0)
    assert 0 < at < start, (at, start)
    os.close(fd)
"""


def files_of_the_program_that_are_data_too():
    p = guest(GUEST.replace("import os, sys, threading, time\n", "import os, sys, threading, time\n" + READS))
    for _ in range(2):
        r = attach(p, "-d", "50ms")
        expect("the status", r.returncode == 0, r.stderr)
    end(p)


def static_programs_are_refused():
    refused(compiled("static", WAITS, "-static").pid, "(static)", "is linked statically")


def a_program_that_has_just_started():
    """Its loader waits for a library, and the C library comes after that."""
    os.mkfifo("late.so")
    p = runner.start(["sleep", "1000"], env={**os.environ, "LD_PRELOAD": os.path.abspath("late.so")}, stderr=subprocess.DEVNULL)
    runner.until(lambda: open(f"/proc/{p.pid}/comm", encoding="ascii").read() == "sleep\n", "the exec")
    a = runner.start([LULL, "attach", "-f", "-o", "a", "-d", "50ms", str(p.pid)], stderr=subprocess.PIPE, text=True)
    time.sleep(0.3)  # it finds no C library so far
    open("late.so", "wb").close()
    _, err = runner.finish(a)
    expect("the status", a.returncode == 0, err)
    p.kill()
    p.wait()


def programs_of_musl_are_refused():
    refused(compiled("musl", WAITS, compiler="musl-gcc").pid, "(musl)", "musl")


# A filter that refuses a system call, or ends the program for it, if its third argument has one of these bits, in which it waits, or runs a program that does.
SANDBOX = """#include <errno.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <linux/seccomp.h>
#include <linux/filter.h>
#include <unistd.h>
#ifndef ANSWER
#define ANSWER SECCOMP_RET_ERRNO | EPERM
#endif
int main(int argc, char **argv) {
	struct sock_filter lines[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, REFUSED, 0, 3),
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[2])),
		BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, BITS, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, ANSWER),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog filter = { sizeof(lines) / sizeof(*lines), lines };
	prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
	if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter) != 0)
		return 1;
	if (argc > 1)
		execv(argv[1], argv + 1);
	for (;;)
		pause();
}
"""


def is_filtered(pid):
    with open(f"/proc/{pid}/status", encoding="utf-8") as f:
        return "Seccomp:\t2" in f.read()


def a_filter_that_does_not_matter():
    """Only root is told what is in it."""
    p = compiled("sandboxed", SANDBOX, "-DREFUSED=SYS_reboot", "-DBITS=1")
    until(lambda: is_filtered(p.pid), "it is in its sandbox")
    if os.geteuid() != 0:
        refused(p.pid, "seccomp", "only root")
    else:
        for _ in range(2):
            r = attach(p, "-d", "50ms")
            expect("the status", r.returncode == 0, r.stderr)
    expect("it is there", p.poll() is None, p.returncode)
    p.kill()


def a_filter_that_would_end_the_program():
    """One of its own, and one of its parent's. What it would end the program for is MADV_POPULATE_WRITE."""
    flags = ("-DREFUSED=SYS_madvise", "-DBITS=16", "-DANSWER=SECCOMP_RET_KILL_PROCESS")
    p = compiled("deadly", SANDBOX, *flags)
    until(lambda: is_filtered(p.pid), "it is in its sandbox")
    refused(p.pid, "seccomp")
    expect("it is there", p.poll() is None, p.returncode)
    p.kill()
    compiled("waits", WAITS).kill()
    parent = runner.start(["./deadly", "/bin/sh", "-c", "./waits & echo $! > child; wait; echo $? > status"])
    until(lambda: os.path.exists("child") and open("child", encoding="ascii").read().endswith("\n"), "the child is named")
    child = int(open("child", encoding="ascii").read())
    until(lambda: "waits" in open(f"/proc/{child}/comm", encoding="ascii").read(), "it runs")
    refused(child, "seccomp")
    expect("it is there", not os.path.exists("status") and is_filtered(child))
    os.kill(child, signal.SIGKILL)
    parent.wait(runner.limit())
    os.unlink("child")


# Waits in a coroutine, with a small stack; says at the end whether anything was written below that.
COROUTINE = """#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <ucontext.h>
#include <unistd.h>
#define BELOW (256 << 10)
#define STACK 6144
static ucontext_t outside, inside;
static unsigned char *memory;
static int ends[2];
static void body(void)
{
	char byte;

	while (read(ends[0], &byte, 1) < 0)
		;
}
int main(void)
{
	long n_written = 0;

	memory = malloc(BELOW + STACK);
	memset(memory, 0x5a, BELOW);
	if (pipe(ends))
		return 1;
	if (!fork()) {
		while (access("end", F_OK))
			usleep(1000);
		_exit(write(ends[1], "x", 1) != 1);
	}
	getcontext(&inside);
	inside.uc_stack.ss_sp = memory + BELOW;
	inside.uc_stack.ss_size = STACK;
	inside.uc_link = &outside;
	makecontext(&inside, body, 0);
	fclose(fopen("ready", "w"));
	swapcontext(&outside, &inside);
	for (long i = 0; i < BELOW; i++)
		n_written += memory[i] != 0x5a;
	return n_written ? 9 : 3;
}
"""


def a_coroutine_is_left_alone():
    """Its stack may be too small for what is put there, and belongs to something else below."""
    for name in ("ready", "end"):
        if os.path.exists(name):
            os.unlink(name)
    p = compiled("coroutine", COROUTINE)
    until_file("ready")
    until(lambda: syscall_of(p) == "0" or os.uname().machine != "x86_64", "it waits")
    refused(p.pid, "a coroutine's", "nothing was changed")
    open("end", "w").close()
    expect("nothing below was written", p.wait(runner.limit()) == 3, p.returncode)


EXECS = """#include <unistd.h>
int main(int argc, char **argv)
{
	if (!access("end", F_OK))
		return 3;
	usleep(1000);
	execv("/proc/self/exe", argv);
	return 1;
}
"""


def a_program_that_becomes_another_one():
    """What was found in the one is nowhere in the other."""
    if os.path.exists("end"):
        os.unlink("end")
    p = compiled("execs", EXECS, named="exe")
    for _ in range(12):
        r = attach(p, "-d", "20ms")
        expect("a status", r.returncode in (0, 1), (r.returncode, r.stderr))
        expect("it goes on", p.poll() is None, (p.returncode, r.stderr))
    open("end", "w").close()
    expect("its end", p.wait(runner.limit()) == 3, p.returncode)


VFORKS = """#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>
static __attribute__((noinline)) void wait_for_end(void)
{
	while (access("end", F_OK))
		usleep(1000);
}
int main(void)
{
	pid_t child = vfork();
	int status;

	if (!child) {
		FILE *file = fopen("child", "w");

		fprintf(file, "%d\\n", (int)getpid());
		fclose(file);
		wait_for_end();
		_exit(0);
	}
	return waitpid(child, &status, 0) == child && !status ? 3 : 4;
}
"""


def the_child_of_a_vfork_is_its_parents():
    for name in ("child", "end"):
        if os.path.exists(name):
            os.unlink(name)
    p = compiled("vforks", VFORKS)
    until(lambda: os.path.exists("child") and open("child", encoding="ascii").read().endswith("\n"), "the child is named")
    child = int(open("child", encoding="ascii").read())
    refused(child, f"has the memory of process {p.pid}")
    expect("nothing of ours in it", not any("liblull" in m for m in maps(p)))
    open("end", "w").close()
    expect("its end", p.wait(runner.limit()) == 3, p.returncode)
    os.unlink("child")


def in_a_container(name, *flags):
    """The first process of a container, whose filter of system calls its parent does not have."""
    if run(["unshare", "--pid", "--fork", "true"]).returncode != 0:
        skip("no namespaces here")
    with open(f"{name}.c", "w", encoding="ascii") as f:
        f.write(SANDBOX)
    with open("guest.py", "w", encoding="ascii") as f:
        f.write(GUEST)
    for file in ("ready", "end"):
        if os.path.exists(file):
            os.unlink(file)
    subprocess.run(["gcc", "-o", name, f"{name}.c", *flags], check=True)
    p = runner.start(["unshare", "--pid", "--fork", f"./{name}", sys.executable, "guest.py"], stdout=subprocess.PIPE,
                     stderr=subprocess.PIPE, text=True)
    until_file("ready")
    inside = runner.children(p.pid)[0]
    expect("it has the filter, its parent has none", is_filtered(inside) and not is_filtered(p.pid))
    return p, inside


def the_first_program_of_a_container_with_a_filter():
    p, inside = in_a_container("container", "-DREFUSED=SYS_reboot", "-DBITS=1")
    for _ in range(2):
        attach_until(inside, lambda: rows("pysample"))
        expect("Python stacks", rows("pysample") > 0, info())
    end(p)


def a_container_that_forbids_what_is_needed():
    """One sentence, and the program goes on."""
    p, inside = in_a_container("strict", "-DREFUSED=SYS_mprotect", "-DBITS=4")  # memory with code
    mapped = lambda: sum(1 for line in open(f"/proc/{inside}/maps", encoding="utf-8"))
    before = mapped()
    for _ in range(3):
        refused(inside, "Operation not permitted")
    expect("no page of ours stays", mapped() == before, (before, mapped()))
    end(p)


def what_is_no_program_is_refused():
    refused(999999999 % (1 << 22) | 1 << 21, "there is no process")
    p = runner.start(["true"])
    until(lambda: "State:\tZ" in open(f"/proc/{p.pid}/status").read(), "it has ended")
    refused(p.pid, "has ended")
    p = guest(CALM)
    refused(next(int(t) for t in os.listdir(f"/proc/{p.pid}/task") if int(t) != p.pid), f"is a thread of process {p.pid}")
    end(p)


def a_traced_program_is_refused():
    p = guest(CALM)
    child = os.fork()
    if not child:
        libc = ctypes.CDLL(None, use_errno=True)
        libc.ptrace(0x4206, p.pid, None, None)  # PTRACE_SEIZE
        open("traced", "w").close()
        time.sleep(600)
    try:
        until_file("traced")
        refused(p.pid, f"is traced by process {child}")
    finally:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
    end(p)


def a_stopped_program_is_refused():
    p = guest(CALM)
    p.send_signal(signal.SIGSTOP)
    until(lambda: "State:\tT" in open(f"/proc/{p.pid}/status").read(), "it stops")
    refused(p.pid, "is stopped")
    p.send_signal(signal.SIGCONT)
    end(p)


def a_program_without_its_main_thread_is_refused():
    p = compiled("headless", "#include <pthread.h>\n#include <unistd.h>\nstatic void *f(void *a) { for (;;) pause(); return a; }\n"
                 "int main(void) { pthread_t t; pthread_create(&t, 0, f, 0); pthread_exit(0); }\n", "-pthread")
    until(lambda: "State:\tZ" in open(f"/proc/{p.pid}/status").read(), "its main thread ends")
    refused(p.pid, "its main thread has ended while others go on")


def a_program_whose_root_is_empty_is_refused():
    if os.geteuid() != 0:
        skip("only root can have another root")
    os.makedirs("bare", exist_ok=True)
    p = compiled("rooted", "#include <unistd.h>\nint main(void) { for (chroot(\"bare\"), chdir(\"/\"); ;) pause(); }\n", "-w")
    until(lambda: os.readlink(f"/proc/{p.pid}/root") != "/", "it has another root")
    refused(p.pid, "no place for buffers", "in the root of the program")


def for_others():
    """A copy of lull that every user can start, wherever this tree lies, and a folder in which every user can write."""
    if os.geteuid() != 0:
        skip("only root can be another user")
    folder = tempfile.mkdtemp(prefix="lull-others-")
    os.chmod(folder, 0o755)
    os.chmod(".", 0o777)
    for path in (LULL, os.path.join(BUILD, "liblull-agent.so")):
        os.chmod(shutil.copy(path, folder), 0o755)
    atexit.register(shutil.rmtree, folder, True)
    return os.path.join(folder, "lull")


def another_users_program_is_refused():
    lull = for_others()
    p = guest(CALM)
    r = run([lull, "attach", "-d", "1s", "-o", "/nowhere/r", str(p.pid)],
            preexec_fn=lambda: os.setuid(65534))
    expect("the refusal", r.returncode == 1 and "belongs to another user" in r.stderr, (r.returncode, r.stderr))
    end(p)


def a_program_that_hides_its_memory_is_refused():
    lull = for_others()
    hides = GUEST.replace("import os,", "import ctypes\nctypes.CDLL(None).prctl(4, 0, 0, 0, 0)  # PR_SET_DUMPABLE\nimport os,", 1)
    p = guest(hides, python="/usr/bin/python3", preexec_fn=lambda: os.setuid(65534))
    r = run([lull, "attach", "-d", "1s", "-o", "r", str(p.pid)], preexec_fn=lambda: os.setuid(65534))
    expect("the refusal", r.returncode == 1 and ("not dumpable" in r.stderr or "ptrace_scope" in r.stderr), (r.returncode, r.stderr))
    end(p)


def root_without_the_right_is_told_so():
    without = ["setpriv", "--bounding-set=-sys_ptrace", "--inh-caps=-sys_ptrace"]
    if os.geteuid() != 0 or not shutil.which("setpriv") or run([*without, "true"]).returncode != 0:
        skip("only root can give rights up")
    p = guest(CALM)
    r = run([*without, LULL, "attach", "-d", "1s", "-o", "r", str(p.pid)])
    expect("the refusal", r.returncode == 1 and "--cap-add SYS_PTRACE" in r.stderr, (r.returncode, r.stderr))
    end(p)


def root_attaches_to_the_program_of_a_user():
    lull = for_others()
    p = guest(python="/usr/bin/python3", preexec_fn=lambda: os.setuid(65534))
    r, _ = attach_until(p, lambda: rows("pysample"), lull=lull)
    expect("the report", rows("pysample") > 0, r.stderr)
    end(p)


def a_program_in_a_container_is_recorded():
    """Other mounts and process numbers: it sees neither our shared memory nor the agent's file."""
    if run(["unshare", "--mount", "--pid", "--fork", "--mount-proc", "true"]).returncode != 0:
        skip("no namespaces here")
    for name in ("ready", "end"):
        if os.path.exists(name):
            os.unlink(name)
    os.makedirs("own", exist_ok=True)
    for path in (LULL, os.path.join(BUILD, "liblull-agent.so")):
        shutil.copy(path, "own")
    with open("guest.py", "w", encoding="ascii") as f:
        f.write(GUEST)
    script = (f"mount -t tmpfs none /dev/shm; mount -t tmpfs none {shlex.quote(os.path.abspath('own'))}; "
              f"exec unshare --pid --fork --mount-proc {shlex.quote(sys.executable)} guest.py")
    p = runner.start(["unshare", "--mount", "sh", "-c", script], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    until_file("ready")
    inside = runner.children(p.pid)[0]
    for _ in range(2):
        attach_until(inside, lambda: rows("pysample"), lull=os.path.abspath("own/lull"))
        expect("its number here", re.search(rf"^ python\S* +{inside} ", info(), re.M), info())
        expect("Python stacks", rows("pysample") > 0, info())
    with open(f"/proc/{inside}/maps", encoding="utf-8") as f:
        copies = {line.split()[-1] for line in f if ".lull-agent-" in line}
    expect("one copy of the agent", len(copies) == 1, copies)
    for path in copies:
        os.unlink(f"/proc/{inside}/root{path}")
    end(p)


TESTS = (
    a_program_that_runs_is_recorded,
    nothing_stays_but_the_library,
    cuda_is_recorded_and_left,
    a_forked_child_has_no_cupti,
    a_report_that_is_there_keeps_the_program_untouched,
    a_main_thread_that_waits_need_not_come,
    programs_with_graphs_keep_cupti,
    threads_that_share_the_device_keep_cupti,
    callbacks_stay_on_for_threads_on_their_way,
    callbacks_that_were_never_silent_stay_on,
    phases_of_pytorch_and_nothing_stays,
    a_class_that_inherits_a_call_does_so_again,
    ranges_of_nvtx_are_recorded_and_left,
    ranges_of_nvtx_without_the_headers,
    nvtx_that_is_called_first_while_attached,
    nvtx_that_does_not_ask_is_found,
    detach_ends_it,
    ctrl_c_ends_it,
    the_end_of_the_program_ends_it,
    a_recorder_that_dies_is_left,
    an_agent_that_leaves_is_waited_for,
    calls_are_seen_and_entries_put_back,
    entries_that_are_not_bound_yet_too,
    calls_of_mpi_are_seen_and_entries_put_back,
    a_lively_program_survives_many,
    a_wait_that_was_interrupted_before,
    a_socket_with_a_timeout_waits_on,
    python_that_has_not_begun_is_left_alone,
    a_program_that_loads_files_goes_on,
    files_of_the_program_that_are_data_too,
    static_programs_are_refused,
    a_program_that_has_just_started,
    programs_of_musl_are_refused,
    a_filter_that_does_not_matter,
    a_filter_that_would_end_the_program,
    a_coroutine_is_left_alone,
    a_program_that_becomes_another_one,
    the_child_of_a_vfork_is_its_parents,
    the_first_program_of_a_container_with_a_filter,
    a_container_that_forbids_what_is_needed,
    what_is_no_program_is_refused,
    a_traced_program_is_refused,
    a_stopped_program_is_refused, a_program_without_its_main_thread_is_refused,
    a_program_whose_root_is_empty_is_refused,
    another_users_program_is_refused,
    a_program_that_hides_its_memory_is_refused,
    root_without_the_right_is_told_so,
    root_attaches_to_the_program_of_a_user,
    a_program_in_a_container_is_recorded,
)

if __name__ == "__main__":
    runner.main(TESTS, sys.argv[2:], before=need_attach)
