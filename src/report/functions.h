/*
 * functions - the cells that weigh and name a function, for reports over samples.
 */
#ifndef LULL_REPORT_FUNCTIONS_H
#define LULL_REPORT_FUNCTIONS_H

#include "base/out.h"
#include "model/callpath.h"

/* Four cells: its share of all weight, alone and with what it calls, and the two weights. */
void lull_function_put_weight(struct lull_out *out, const struct lull_callpath *c,
			      const struct lull_function *function);

/* The file or layer a function is in: name of the library, [kernel], [jit]; "" if unknown. */
void lull_function_put_module(struct lull_out *out, const struct lull_callpath *c,
			      const struct lull_function *function);

/* Its name, or its address if it has none. */
void lull_function_put_name(struct lull_out *out, const struct lull_callpath *c,
			    const struct lull_function *function);

/* file:line of the place where most of its weight is; empty if unknown. */
void lull_function_put_place(struct lull_out *out, const struct lull_callpath *c,
			     const struct lull_function *function);

#endif
