"""nccl-buffers: collectives of NCCL have larger buffers

causes: collective-exposed
needs: collectives
exact: yes
env: NCCL_BUFFSIZE=16777216
write: NCCL_BUFFSIZE=16777216 in the environment
"""
