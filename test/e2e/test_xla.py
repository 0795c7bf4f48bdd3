#!/usr/bin/env python3
"""JAX under a recording: XLA is asked to run without CUDA graphs, or else CUPTI is left alone, on the simulated device.

Usage: test_xla.py BUILD [NAME...]

Packages and plugin are stand-ins: what is tested is what lull does with their names and versions, not XLA. What `lull why`
says of JAX is asked of two recordings of a real device.
"""
import json
import os
import shutil
import sys

import runner

BUILD = os.path.abspath(sys.argv[1])
LULL = os.path.join(BUILD, "lull")
TEST = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
LIBM = "libm.so.6"
FLAG = "--xla_gpu_enable_command_buffer="

PROGRAM = """
import ctypes, os, sys
if "--jax" in sys.argv:
    sys.path.insert(0, "site")
    import jaxlib
print("flags:", os.environ.get("XLA_FLAGS"))
for path in [word for word in sys.argv if word.endswith(".so")]:
    ctypes.CDLL(path)
cuda = ctypes.CDLL("libcuda.so.1")
device, context, memory = ctypes.c_int(), ctypes.c_void_p(), ctypes.c_uint64()
def call(name, *words):
    status = getattr(cuda, name)(*words)
    assert status == 0, (name, status)
call("cuInit", 0)
call("cuDeviceGet", ctypes.byref(device), 0)
call("cuCtxCreate_v2", ctypes.byref(context), 0, device)
call("cuMemAlloc_v2", ctypes.byref(memory), ctypes.c_size_t(4096))
for _ in range(5):
    call("cuMemcpyHtoD_v2", memory, ctypes.create_string_buffer(4096), ctypes.c_size_t(4096))
call("cuCtxSynchronize")
"""


def record(*words, version="0.11.2", flags=None, options=(), python=()):
    """Returns the flags that the program saw, how many copies were recorded, and the names of issues."""
    env = dict(os.environ, LD_LIBRARY_PATH=os.path.join(BUILD, "sim"))
    env.pop("XLA_FLAGS", None)
    if flags is not None:
        env["XLA_FLAGS"] = flags
    os.makedirs("site/jaxlib", exist_ok=True)
    with open("site/jaxlib/__init__.py", "w", encoding="utf-8") as f:
        f.write(f"__version__ = {version!r}\n" if version else "")
    with open("program.py", "w", encoding="utf-8") as f:
        f.write(PROGRAM)
    done = runner.run([LULL, "profile", "-q", "-f", "true", "-o", "r", *options, sys.executable, *python, "program.py", *words],
                      env=env, check=True)
    said = next(line for line in done.stdout.splitlines() if line.startswith("flags:"))
    copies = runner.run([LULL, "query", "-f", "csv:nohdr", "r.lull", "SELECT count(*) FROM memcpy"], check=True).stdout
    issues = runner.run([LULL, "query", "-f", "csv:nohdr", "r.lull", "SELECT name FROM issue"], check=True).stdout
    return said[7:], int(copies), issues.split()


def plugin(folder="jax_plugins/xla_cuda13"):
    """A library by the name of XLA's: another one's code, which does nothing when it is loaded."""
    os.makedirs(folder, exist_ok=True)
    path = os.path.abspath(os.path.join(folder, "_versions.so"))
    source = next((p for p in (f"/lib/{os.uname().machine}-linux-gnu/{LIBM}", f"/usr/lib64/{LIBM}", f"/usr/lib/{LIBM}")
                   if os.path.exists(p)), None)
    if not source:
        runner.skip("no libm.so.6 where Debian and others have it")
    shutil.copy(source, path)
    return path


def jax_is_asked_for_no_graphs_and_the_report_says_so():
    flags, copies, issues = record("--jax", plugin())
    runner.expect("flags", flags == FLAG, flags)
    runner.expect("copies", copies == 5, copies)
    runner.expect("issues", "xla_plain" in issues and "xla_graphs" not in issues, issues)


def flags_of_the_user_are_kept():
    flags, copies, _ = record("--jax", flags="--xla_dump_to=/nowhere")
    runner.expect("both", flags == FLAG + " --xla_dump_to=/nowhere" and copies == 5, (flags, copies))
    for theirs in (FLAG + "FUSION", "/a/file/of flags", " more"):
        flags, _, issues = record("--jax", flags=theirs)
        runner.expect("theirs", flags == theirs and "xla_plain" not in issues, (flags, issues))


def versions_that_may_not_know_the_flag_are_left_alone():
    for version in ("0.4.25", "0.3.1", "", "unknown"):
        flags, copies, issues = record("--jax", version=version)
        runner.expect(f"version {version}", flags == "None" and copies == 5, (flags, copies))
        runner.expect(f"issues of {version}", not {"xla_plain", "torch_partly"} & set(issues), issues)
    for version in ("0.4.26", "0.5.0.dev20250101", "1.0"):
        flags, _, _ = record("--jax", version=version)
        runner.expect(f"version {version}", flags == FLAG, flags)


def no_flag_without_cuda_in_the_recording():
    flags, _, issues = record("--jax", options=["-t", "nvtx,osrt"])
    runner.expect("flags", flags == "None" and "xla_plain" not in issues, (flags, issues))


def where_graphs_stay_cupti_is_left_alone():
    """Python's hooks are not there with -I and --pytorch=none; graphs may also be wanted by the user."""
    flags, copies, issues = record("--jax", plugin(), options=["--pytorch=none"])
    runner.expect("no hooks", flags == "None" and copies == 0 and "xla_graphs" in issues, (flags, copies, issues))
    for folder in ("jax_plugins/xla_cuda13", "site-packages/jax_cuda12_plugin", "site-packages/jaxlib/cuda"):
        _, copies, issues = record(plugin(folder), python=["-I"])
        runner.expect(f"-I, {folder}", copies == 0 and "xla_graphs" in issues, (copies, issues))
    _, copies, issues = record(plugin("my_xla_cuda_test"), python=["-I"])
    runner.expect("another library", copies == 5 and "xla_graphs" not in issues, (copies, issues))
    _, copies, issues = record("--jax", plugin(), flags=FLAG + "FUSION")
    runner.expect("wanted", copies == 0 and "xla_graphs" in issues, (copies, issues))
    _, copies, issues = record(plugin(), python=["-I"], flags=f"{FLAG}FUSION {FLAG} --xla_x")
    runner.expect("the last one counts", copies == 5 and "xla_graphs" not in issues, (copies, issues))


def first_of(name):
    """The first cause, how long a step is in ms, and the text of the answer."""
    report = os.path.join(TEST, "data/jax", name + ".lull")
    said = json.loads(runner.run([LULL, "why", "--format", "json", report], check=True).stdout)
    text = runner.run([LULL, "why", report], check=True).stdout
    return said["first"], said["steps"]["mean_ns"] / 1e6, text


def recordings_of_an_h200_are_answered_in_the_words_of_jax():
    cause, ms, text = first_of("many_floats")
    runner.expect("values read one by one", cause == "host-sync" and 9 < ms < 12, (cause, ms, text))
    runner.expect("its line and fix", "galaxy_deep_regressor.py:79" in text and "jax.device_get()" in text, text)
    cause, ms, text = first_of("eager_adam")
    runner.expect("operators without jit", cause == "launch-bound" and 25 < ms < 40, (cause, ms, text))
    runner.expect("its place and fix", "XlaModule jit_multiply:" in text and "jax.jit around the whole step" in text, text)
    runner.expect("no names for machines", "program_id" not in text and "#" not in text, text)


if __name__ == "__main__":
    runner.main([jax_is_asked_for_no_graphs_and_the_report_says_so, flags_of_the_user_are_kept,
                 versions_that_may_not_know_the_flag_are_left_alone, no_flag_without_cuda_in_the_recording,
                 where_graphs_stay_cupti_is_left_alone, recordings_of_an_h200_are_answered_in_the_words_of_jax], sys.argv[2:])
