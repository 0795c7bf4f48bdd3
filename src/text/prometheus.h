/*
 * prometheus - pieces of the text that Prometheus reads.
 *
 *	lull_prom_family(&to, "lull_steps_total", "counter", "Steps that ended.");
 *	lull_str_puts(&to, "lull_steps_total{");
 *	lull_prom_label(&to, "job", name);
 */
#ifndef LULL_TEXT_PROMETHEUS_H
#define LULL_TEXT_PROMETHEUS_H

#include "base/str.h"

/* The two lines that stand before a family's values. */
void lull_prom_family(struct lull_str *to, const char *name, const char *type, const char *help);

/* name="value", with what the format wants escaped. */
void lull_prom_label(struct lull_str *to, const char *name, const char *value);

#endif
