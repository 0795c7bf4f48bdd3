/*
 * demangle_rust - names of Rust's newer mangling scheme (_R..., "v0"), as they were written.
 *
 * Ownership: the result is the caller's. Threads: any. Cost: grows with the readable name, which is
 * at most a few KiB.
 */
#ifndef LULL_SYMBOL_DEMANGLE_RUST_H
#define LULL_SYMBOL_DEMANGLE_RUST_H

/*
 * The path of the function, such as "<words::Vocabulary>::add::{closure#0}", or NULL if the name is
 * not mangled so, is damaged, or is too long. Free with free().
 */
char *lull_demangle_rust(const char *name);

#endif
