"""connections: more hardware queues, so that streams do not wait for each other

causes: kernel-gap, exposed-copy, collective-exposed
needs: streams
exact: yes
env: CUDA_DEVICE_MAX_CONNECTIONS=32
write: CUDA_DEVICE_MAX_CONNECTIONS=32 in the environment
"""
