"""huge-pages: memory that malloc() gives lies in huge pages

causes: page-faults, host-compute, cpu-offload, pageable-copy
exact: yes
env: GLIBC_TUNABLES=glibc.malloc.hugetlb=1
write: GLIBC_TUNABLES=glibc.malloc.hugetlb=1 in the environment (glibc 2.35 or later)
"""
