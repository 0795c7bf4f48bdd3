"""nccl-ring: collectives of NCCL use rings

causes: collective-exposed
needs: collectives
group: nccl-algorithm
tolerance: 1e-3 because sums are made in another order
env: NCCL_ALGO=Ring
write: NCCL_ALGO=Ring in the environment
"""
