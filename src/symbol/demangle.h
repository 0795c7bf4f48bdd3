/*
 * demangle - symbol names as the programmer wrote them.
 *
 * C++ names go through __cxa_demangle of libsupc++.a, which is linked statically and needs nothing
 * but libc: the program does not depend on libstdc++.so. Rust's names in the older scheme, which is
 * C++'s with a hash at the end and escapes inside, are cleaned up; those in the newer one (_R...)
 * are read by demangle_rust.
 *
 * Ownership: results are the caller's. Threads: any. Cost: grows with the name.
 */
#ifndef LULL_SYMBOL_DEMANGLE_H
#define LULL_SYMBOL_DEMANGLE_H

#include <stddef.h>

/* The readable form, or a copy of the name if it is not mangled. Free with free(). */
char *lull_demangle(const char *name);

/*
 * The bare name of a readable function, such as gemm of "void (anonymous namespace)::gemm<float,
 * (int)4>(float *)": the last word before the parameters that is outside of template arguments.
 * Points into `name`; *len receives its length.
 */
const char *lull_base_name(const char *name, size_t *len);

#endif
