#include "export/otlp.h"

#include <inttypes.h>
#include <stdio.h>

void lull_otlp_u64(struct lull_json *j, const char *key, u64 value)
{
	char text[24];

	snprintf(text, sizeof(text), "%" PRIu64, value);
	lull_json_key_text(j, key, text);
}

static void open_value(struct lull_json *j, const char *key)
{
	lull_json_object(j);
	lull_json_key_text(j, "key", key);
	lull_json_key(j, "value");
	lull_json_object(j);
}

static void close_value(struct lull_json *j)
{
	lull_json_end(j);
	lull_json_end(j);
}

void lull_otlp_text(struct lull_json *j, const char *key, const char *value)
{
	open_value(j, key);
	lull_json_key_text(j, "stringValue", value);
	close_value(j);
}

void lull_otlp_number(struct lull_json *j, const char *key, u64 value)
{
	open_value(j, key);
	lull_otlp_u64(j, "intValue", value);
	close_value(j);
}
