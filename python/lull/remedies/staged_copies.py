"""staged-copies: large copies from ordinary memory go through pinned memory, and the host does not wait

causes: pageable-copy, exposed-copy, copies, host-sync
exact: yes
mend: staged-copies
write: allocate what is copied with cudaMallocHost(), and copy with cudaMemcpyAsync()

For programs that call cudaMemcpy() themselves. The bytes are copied before the call returns, as without it.
"""
