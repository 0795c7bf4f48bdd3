/*
 * gate_output - the verdict of a gate in the formats that CI systems read.
 *
 * To add one: gate_X.c with const struct lull_gate_output lull_gate_output_X at its end,
 * GATE_OUTPUT(X) in gate_outputs.def, its option in doc/lull-gate.1.md.
 */
#ifndef LULL_COMPARE_GATE_OUTPUT_H
#define LULL_COMPARE_GATE_OUTPUT_H

#include <stdio.h>

#include "compare/gate.h"

struct lull_gate_output {
	const char *name;
	const char *summary;
	void (*write)(const struct lull_gate *gate, FILE *to);
};

#define GATE_OUTPUT(name) extern const struct lull_gate_output lull_gate_output_##name;
#include "compare/gate_outputs.def"
#undef GATE_OUTPUT

/* All of gate_outputs.def in its order, NULL at the end. */
extern const struct lull_gate_output *const lull_gate_outputs[];

#endif
