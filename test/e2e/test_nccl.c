/*
 * The real NCCL tells its collectives through NVTX payloads, and what arrives is enough to decode
 * them.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include <cmocka.h>

#include "support/session.h"

static struct test_session session;
static struct test_events events;

static const struct test_event *find_schema(u64 schema_id)
{
	for (size_t i = 0; i < events.n; i++)
		if (events.all[i].type == LULL_EVENT_schema &&
		    events.all[i].schema->schema_id == schema_id)
			return &events.all[i];
	return NULL;
}

/* The number behind a key of the entry of this name in a schema's JSON. */
static long json_number(const struct test_event *schema, const char *name, const char *key)
{
	char *json = strndup((const char *)(schema->schema + 1), schema->head->a);
	char *at = strstr(json, name);
	long value;

	assert_non_null(at);
	at = strstr(at, key);
	assert_non_null(at);
	value = strtol(at + strlen(key), NULL, 10);
	free(json);
	return value;
}

static void expect_message(const char *function, u64 n_bytes)
{
	const struct test_event *push = test_events_find(&events, LULL_EVENT_push, function, 0),
				*schema;
	const struct lull_wire_label *label;
	const struct lull_wire_payload *payload;
	u64 value;

	assert_non_null(push);
	label = test_events_label(&events, push->pid, push->range->label);
	assert_string_equal(test_events_text(&events, push->pid, label->domain), "NCCL");
	payload = test_event_payload(push, 0);
	assert_non_null(payload);
	schema = find_schema(payload->value);
	assert_non_null(schema);
	assert_int_equal(schema->schema->size_bytes, payload->n_bytes);
	memcpy(&value,
	       (const u8 *)(payload + 1) + json_number(schema, "Message size", "\"offset\":"),
	       sizeof(value));
	assert_int_equal(value, n_bytes);
}

static void collectives_carry_their_message_size(void **state)
{
	(void)state;
	expect_message("ncclAllReduce", 4000);
	expect_message("ncclSend", 2000);
}

static void the_reduction_is_an_enumeration(void **state)
{
	const struct test_event *push =
		test_events_find(&events, LULL_EVENT_push, "ncclAllReduce", 0);
	const struct test_event *schema = find_schema(test_event_payload(push, 0)->value);
	const struct test_event *names =
		find_schema((u64)json_number(schema, "Reduction operation", "\"schema\":"));

	(void)state;
	assert_non_null(names);
	assert_int_equal(names->schema->kind, 128);
	assert_int_equal(json_number(names, "\"Sum\"", "\"value\":"), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(collectives_carry_their_message_size),
		cmocka_unit_test(the_reduction_is_an_enumeration),
	};
	char *argv[] = { LULL_BUILD "/e2e/nccl_calls", LULL_NCCL, NULL };
	int status, failed;

	test_session_open(&session, LULL_SOURCE_NVTX);
	status = test_session_run(&session, LULL_BUILD "/liblull-agent.so", argv);
	if (WIFEXITED(status) && WEXITSTATUS(status) == 3) {
		fprintf(stderr, "SKIPPED: no NCCL library here (make NCCL=PATH)\n");
		test_session_close(&session);
		return 0;
	}
	test_session_read(&session, &events);
	failed = cmocka_run_group_tests(tests, NULL, NULL) || status != 0;
	test_events_release(&events);
	test_session_close(&session);
	return failed;
}
