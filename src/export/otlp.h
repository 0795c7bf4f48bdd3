/*
 * otlp - parts of OpenTelemetry's JSON that spans and metrics share.
 *
 * Numbers:        of 64 bits are texts in the JSON of protocol buffers.
 */
#ifndef LULL_EXPORT_OTLP_H
#define LULL_EXPORT_OTLP_H

#include "text/json.h"

/* One attribute of an open array of them. */
void lull_otlp_text(struct lull_json *j, const char *key, const char *value);
void lull_otlp_number(struct lull_json *j, const char *key, u64 value);

/* A key with 64 bits, such as a time. */
void lull_otlp_u64(struct lull_json *j, const char *key, u64 value);

#endif
