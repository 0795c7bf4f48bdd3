"""blocking-waits: the CPU sleeps while it waits for the device

causes: os-scheduling, gil
exact: yes
group: waits
mend: blocking-waits
asks: yes
write: cudaSetDeviceFlags() before CUDA is used, with the flag for it
"""
FLAG = 4  # CU_CTX_SCHED_BLOCKING_SYNC


def apply(trial):
    trial.set_context_flag("blocking-waits", FLAG)
