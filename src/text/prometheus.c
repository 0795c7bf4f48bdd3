#include "text/prometheus.h"

void lull_prom_family(struct lull_str *to, const char *name, const char *type, const char *help)
{
	lull_str_addf(to, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, type);
}

void lull_prom_label(struct lull_str *to, const char *name, const char *value)
{
	lull_str_addf(to, "%s=\"", name);
	for (; *value; value++) {
		if (*value == '\n')
			lull_str_puts(to, "\\n");
		else if (*value == '"' || *value == '\\')
			lull_str_addf(to, "\\%c", *value);
		else
			lull_str_add(to, value, 1);
	}
	lull_str_puts(to, "\"");
}
