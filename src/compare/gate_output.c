#include "compare/gate_output.h"

const struct lull_gate_output *const lull_gate_outputs[] = {
#define GATE_OUTPUT(name) &lull_gate_output_##name,
#include "compare/gate_outputs.def"
#undef GATE_OUTPUT
	NULL,
};
