"""one-thread: operators on the CPU use one thread each

causes: os-scheduling, input-pipeline, host-compute
tolerance: 1e-3
env: OMP_NUM_THREADS=1
env: MKL_NUM_THREADS=1
write: OMP_NUM_THREADS=1 in the environment
"""
