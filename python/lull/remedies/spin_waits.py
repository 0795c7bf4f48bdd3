"""spin-waits: the CPU spins while it waits for the device

causes: host-sync, kernel-gap
exact: yes
group: waits
mend: spin-waits
asks: yes
write: cudaSetDeviceFlags() before CUDA is used, with the flag for it
"""
FLAG = 1  # CU_CTX_SCHED_SPIN


def apply(trial):
    trial.set_context_flag("spin-waits", FLAG)
