"""Has XLA run without CUDA graphs while lull records CUDA.

XLA changes the nodes of its graphs ("command buffers") between launches, and CUPTI, which records
kernels, may then corrupt memory: programs of JAX end with CUDA_ERROR_LAUNCH_FAILED. XLA's own
profiler leaves graphs out for this reason; so does a flag that XLA reads when it starts. Where it
is not set, the agent leaves CUPTI alone (src/agent/cuda/cuda_xla.c).
"""
import os

FLAG = "--xla_gpu_enable_command_buffer="

# XLA ends the program over a flag that it does not know.
OLDEST = (0, 4, 26)


def _numbers(version):
    parts = []
    for part in version.split(".")[:3]:
        digits = "".join(ch for ch in part if ch.isdigit())
        parts.append(int(digits or 0))
    return tuple(parts)


def ask(jaxlib):
    """Called with the package jaxlib, which has its version and has not started XLA yet."""
    flags = os.environ.get("XLA_FLAGS", "").strip()
    # Without a dash it is the name of a file with flags, which we do not change.
    if FLAG in flags or (flags and not flags.startswith("-")):
        return
    if _numbers(getattr(jaxlib, "__version__", "")) < OLDEST:
        return
    # In front: XLA reads no further than to the first word that is no flag.
    os.environ["XLA_FLAGS"] = (FLAG + " " + flags).strip()
