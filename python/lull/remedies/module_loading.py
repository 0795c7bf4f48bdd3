"""module-loading: CUDA loads all kernels when it starts

causes: lazy-init
exact: yes
env: CUDA_MODULE_LOADING=EAGER
write: CUDA_MODULE_LOADING=EAGER in the environment
"""
