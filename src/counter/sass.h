/*
 * sass - machine code of a kernel as text, from the output of `cuobjdump -sass` or `nvdisasm`.
 *
 * What it gives:  the instructions of one function by offset, each with its predicate and the
 *                 registers it names.
 * What it takes:  any text; lines that are no instructions are skipped.
 */
#ifndef LULL_COUNTER_SASS_H
#define LULL_COUNTER_SASS_H

#include "base/types.h"
#include "base/vec.h"

struct lull_sass {
	u64 offset_bytes;
	char text[96];	    /* the instruction, without predicate and semicolon */
	char predicate[8];  /* "@P0", "@!PT"; "" if it has none */
	char registers[48]; /* "R4 R6 UR4", each once, in their order; cut if there are many */
};

/*
 * Add the instructions (struct lull_sass) of a function, by its mangled name, in their order. If
 * the text has it for several chips, those that a device of this compute capability (10 * major +
 * minor, 0 if it is not known) runs; none if it runs none of them.
 */
void lull_sass_parse(const char *text, const char *function, u32 capability, struct lull_vec *to);

/* The instruction at an offset, or NULL. */
const struct lull_sass *lull_sass_at(const struct lull_vec *all, u64 offset_bytes);

#endif
