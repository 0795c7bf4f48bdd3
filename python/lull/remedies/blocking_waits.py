"""blocking-waits: the CPU sleeps while it waits for the device

causes: os-scheduling, gil
exact: yes
group: waits
write: cudaSetDeviceFlags() before CUDA is used, with the flag for it
"""
import ctypes

FLAG = 4  # CU_CTX_SCHED_BLOCKING_SYNC


def apply(trial):
    def patch(torch):
        original = torch.cuda._lazy_init

        def _lazy_init():
            if not torch.cuda.is_initialized():
                driver = ctypes.CDLL("libcuda.so.1")
                if driver.cuInit(0) == 0 and driver.cuDevicePrimaryCtxSetFlags_v2(0, FLAG) == 0:
                    trial.did("blocking-waits")
            return original()
        torch.cuda._lazy_init = _lazy_init
    trial.when_loaded("torch", patch)
