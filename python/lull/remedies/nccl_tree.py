"""nccl-tree: collectives of NCCL use trees

causes: collective-exposed
needs: collectives
group: nccl-algorithm
tolerance: 1e-3 because sums are made in another order
env: NCCL_ALGO=Tree
write: NCCL_ALGO=Tree in the environment
"""
