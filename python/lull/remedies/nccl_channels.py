"""nccl-channels: collectives of NCCL use more multiprocessors of the device

causes: collective-exposed
needs: collectives
tolerance: 1e-3 because sums are made in another order
env: NCCL_MIN_NCHANNELS=16
write: NCCL_MIN_NCHANNELS=16 in the environment
"""
