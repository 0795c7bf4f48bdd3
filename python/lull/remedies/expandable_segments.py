"""expandable-segments: PyTorch's allocator grows its blocks and rarely gives them back

causes: allocator
needs: pytorch
exact: yes
env: PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True
write: PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True in the environment
"""
