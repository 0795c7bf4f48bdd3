"""Records parts of itself with lull.profile(); run.py looks into the reports.

Usage: parts.py PREFIX PARTS

Each part makes COPIES copies that it waits for, and then launches KERNELS kernels that it does not wait for: some 20 ms
of work are queued when the part ends. The reports are PREFIX0.lull, PREFIX1.lull, ...
"""
import ctypes
import sys

COPIES, KERNELS, CYCLES = 30, 100, 400000
PTX = b"""
.version 6.0
.target sm_50
.address_size 64
.visible .entry spin(.param .u64 cycles)
{
	.reg .u64 %rd<5>;
	.reg .pred %p1;
	ld.param.u64 %rd1, [cycles];
	mov.u64 %rd2, %clock64;
again:
	mov.u64 %rd3, %clock64;
	sub.u64 %rd4, %rd3, %rd2;
	setp.lt.u64 %p1, %rd4, %rd1;
	@%p1 bra again;
	ret;
}
"""


def main(prefix, n_parts):
    import lull  # run.py reads the numbers above without it
    cu = ctypes.CDLL("libcuda.so.1")

    def call(name, *arguments):
        result = getattr(cu, name)(*arguments)
        if result:
            sys.exit(f"{name}: {result}")

    context, memory, module, kernel, stream = (ctypes.c_void_p() for _ in range(5))
    call("cuInit", 0)
    call("cuDevicePrimaryCtxRetain", ctypes.byref(context), 0)
    call("cuCtxSetCurrent", context)
    call("cuMemAlloc_v2", ctypes.byref(memory), 4096)
    call("cuModuleLoadData", ctypes.byref(module), PTX)
    call("cuModuleGetFunction", ctypes.byref(kernel), module, b"spin")
    call("cuStreamCreate", ctypes.byref(stream), 1)
    cycles = ctypes.c_uint64(CYCLES)
    arguments = (ctypes.c_void_p * 1)(ctypes.addressof(cycles))
    for i in range(n_parts):
        with lull.profile(f"{prefix}{i}.lull"):
            for _ in range(COPIES):
                call("cuMemcpyHtoD_v2", memory, bytes(4096), 4096)
            for _ in range(KERNELS):
                call("cuLaunchKernel", kernel, 1, 1, 1, 1, 1, 1, 0, stream, arguments, None)
        call("cuStreamSynchronize", stream)


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
