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

#include "support/profile.h"
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

/* The number of a key of the entry of this name in a schema's JSON. */
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

/* Rows of the table `collective` that are like this one; texts "" must be absent. */
struct operation {
	u8 source;
	const char *name, *op, *datatype, *algorithm, *comm_name;
	u64 comm, in_bytes, out_bytes, seq;
	i64 peer;
};

static bool is_text(struct lull_reader *r, u32 id, const char *text)
{
	const char *is = id ? lull_reader_string(r, id, NULL) : "";

	return strcmp(is, text) == 0;
}

static size_t count_rows(struct lull_reader *r, const struct operation *o)
{
	struct lull_collective_cols c;
	struct lull_cursor cursor;
	size_t n, found = 0;

	lull_cursor_init(&cursor, r, LULL_TABLE_collective, 0, UINT64_MAX);
	while ((n = lull_cursor_next(&cursor, &c)) > 0)
		for (size_t i = 0; i < n; i++)
			found += c.source[i] == o->source && is_text(r, c.name[i], o->name) &&
				 is_text(r, c.op[i], o->op) &&
				 is_text(r, c.datatype[i], o->datatype) &&
				 is_text(r, c.algorithm[i], o->algorithm) &&
				 is_text(r, c.comm_name[i], o->comm_name) && c.comm[i] == o->comm &&
				 c.in_bytes[i] == o->in_bytes && c.out_bytes[i] == o->out_bytes &&
				 c.seq[i] == o->seq && c.peer[i] == o->peer;
	lull_cursor_release(&cursor);
	return found;
}

static void payloads_become_rows(void **state)
{
	const struct operation reduce = { 1, "AllReduce", "Sum", "", "", "", 0, 4000, 4000, 0, -1 };
	const struct operation send = { 1, "Send", "", "", "", "", 0, 2000, 0, 0, 3 };
	struct lull_reader *r;

	(void)state;
	assert_int_equal(test_profile_run(NULL, "profile -t nvtx -s none -o %%R/payload " LULL_BUILD
						"/e2e/nccl_calls " LULL_NCCL),
			 0);
	r = test_profile_open("payload.lull");
	assert_int_equal(count_rows(r, &reduce), 1);
	assert_int_equal(count_rows(r, &send), 1);
	lull_reader_close(r);
}

/* Network bytes of all rows, and steps. */
static void sum_network(struct lull_reader *r, u64 *n_bytes, u64 *n_steps)
{
	struct lull_collective_cols c;
	struct lull_cursor cursor;
	size_t n;

	*n_bytes = *n_steps = 0;
	lull_cursor_init(&cursor, r, LULL_TABLE_collective, 0, UINT64_MAX);
	while ((n = lull_cursor_next(&cursor, &c)) > 0)
		for (size_t i = 0; i < n; i++) {
			*n_bytes += c.net_bytes[i];
			*n_steps += c.n_steps[i];
		}
	lull_cursor_release(&cursor);
}

static void the_plugin_understands_every_version(void **state)
{
	const struct operation reduce = { 2,  "AllReduce", "",	 "float32", "RING", "world",
					  77, 4000,	   4000, 5,	    -1 };
	const struct operation send = { 2, "Send", "", "float32", "", "world", 77, 2000, 0, 0, 3 };
	struct lull_reader *r;
	u64 n_bytes, n_steps;

	(void)state;
	for (int is_verbose = 0; is_verbose < 2; is_verbose++) {
		assert_int_equal(test_profile_run(NULL,
						  "profile -t nccl%s -s none -f true -o %%R/plugin "
						  "sh -c '" LULL_BUILD
						  "/e2e/nccl_plugin $NCCL_PROFILER_PLUGIN'",
						  is_verbose ? "-verbose" : ""),
				 0);
		r = test_profile_open("plugin.lull");
		assert_int_equal(count_rows(r, &reduce), 6);
		assert_int_equal(count_rows(r, &send), 6);
		sum_network(r, &n_bytes, &n_steps);
		assert_int_equal(n_bytes, is_verbose ? 6 * 4096 : 0);
		assert_int_equal(n_steps, is_verbose ? 6 : 0);
		lull_reader_close(r);
	}
}

static void a_plugin_of_the_user_stays(void **state)
{
	char text[8192];

	(void)state;
	assert_int_equal(test_profile_run(text, "profile -q -t nccl -e NCCL_PROFILER_PLUGIN=mine "
						"-s none -f true -o %%R/mine sh -c 'echo "
						"$NCCL_PROFILER_PLUGIN'"),
			 0);
	assert_non_null(strstr(text, "mine\n"));
}

static void there_is_no_nccl(void **state)
{
	(void)state;
	test_skip("there is no %s (make NCCL=PATH)", LULL_NCCL);
}

int main(void)
{
	const struct CMUnitTest plugin_tests[] = {
		cmocka_unit_test(the_plugin_understands_every_version),
		cmocka_unit_test(a_plugin_of_the_user_stays),
	};
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(collectives_carry_their_message_size),
		cmocka_unit_test(the_reduction_is_an_enumeration),
		cmocka_unit_test(payloads_become_rows),
	};
	const struct CMUnitTest skipped[] = { cmocka_unit_test(there_is_no_nccl) };
	char *argv[] = { LULL_BUILD "/e2e/nccl_calls", LULL_NCCL, NULL };
	int status, failed;

	test_profile_begin();
	failed = cmocka_run_group_tests(plugin_tests, NULL, NULL);
	test_session_open(&session, LULL_SOURCE_NVTX);
	status = test_session_run(&session, LULL_BUILD "/liblull-agent.so", argv);
	if (WIFEXITED(status) && WEXITSTATUS(status) == 3) {
		failed |= cmocka_run_group_tests(skipped, NULL, NULL);
	} else {
		test_session_read(&session, &events);
		failed |= cmocka_run_group_tests(tests, NULL, NULL) || status != 0;
		test_events_release(&events);
	}
	test_session_close(&session);
	test_profile_end();
	return failed;
}
