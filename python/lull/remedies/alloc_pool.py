"""alloc-pool: memory of the device is kept when it is freed, and used again

causes: allocator, host-sync
exact: yes
mend: alloc-pool
write: allocate before the loop and keep it, or use cudaMallocAsync() with a release threshold

For programs that call cudaMalloc() and cudaFree() themselves. cudaFree() no longer waits for the device;
memory is used again once the device is done with it.
"""
