/*
 * What NVTX clients say arrives in shared memory. Each test runs a part of nvtx_scenario.c under
 * the agent: with nvtx_raw, which needs no headers, and with nvtx_client where NVIDIA's are
 * installed.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "agent/nvtx/nvtx_abi.h"
#include "support/session.h"
#include "support/skip.h"

#define AGENT LULL_BUILD "/liblull-agent.so"

static const char *client;

/* The session of the present test; read by run(). */
static struct test_session session;
static struct test_events events;

static int open_session(void **state)
{
	(void)state;
	test_session_open(&session, LULL_SOURCE_NVTX | LULL_SOURCE_ANNOTATE);
	return 0;
}

static int close_session(void **state)
{
	(void)state;
	test_events_release(&events);
	test_session_close(&session);
	return 0;
}

static void run(const char *part)
{
	char *argv[] = { (char *)client, (char *)part, NULL };
	int status = test_session_run(&session, AGENT, argv);

	if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
		fail_msg("%s %s: wait status %#x", client, part, (unsigned)status);
	test_session_read(&session, &events);
	assert_int_equal(events.n_dropped, 0);
}

static const struct test_event *need(u32 type, const char *name, u32 n)
{
	const struct test_event *e = test_events_find(&events, type, name, n);

	if (!e)
		fail_msg("no event of type %u with the name \"%s\" (%u)", type, name, n);
	return e;
}

static const struct lull_wire_label *label_of(const struct test_event *e)
{
	return test_events_label(&events, e->pid, e->range->label);
}

static const char *domain_of(const struct test_event *e)
{
	return test_events_text(&events, e->pid, label_of(e)->domain);
}

/* The n-th event of a type, from 0. */
static const struct test_event *nth(u32 type, u32 n)
{
	for (size_t i = 0; i < events.n; i++)
		if (events.all[i].type == type && n-- == 0)
			return &events.all[i];
	fail_msg("too few events of type %u", type);
	return NULL;
}

static void marks_carry_names_colours_and_payloads(void **state)
{
	const struct test_event *e;

	(void)state;
	run("marks");
	assert_int_equal(label_of(need(LULL_EVENT_mark, "mark a", 0))->api, 1);
	need(LULL_EVENT_mark, "m\xc3\xa4rk \xe2\x82\xac \xf0\x9f\x98\x80", 0);
	e = need(LULL_EVENT_mark, "styled", 0);
	assert_int_equal(label_of(e)->head.a, 7);
	assert_int_equal(label_of(e)->color, 0xff00ff00);
	assert_null(test_event_payload(e, 0));
	for (u32 type = 1; type <= 6; type++) {
		u64 value = 0x1111111122222222u + type;
		const struct lull_wire_payload *p;

		p = test_event_payload(need(LULL_EVENT_mark, "payload", type - 1), 0);
		assert_non_null(p);
		assert_int_equal(p->type, type);
		assert_int_equal(p->value, type < 4 ? value : (u32)value);
	}
	assert_int_equal(test_events_count(&events, LULL_EVENT_mark), 9);
}

static void ranges_nest_by_level(void **state)
{
	static const char *const names[] = { "first", "second \xc3\xbc", "third", "fourth" };

	(void)state;
	run("ranges");
	for (u32 i = 0; i < 4; i++) {
		const struct test_event *push = need(LULL_EVENT_push, names[i], 0);

		assert_int_equal(push->head->a, i);
		assert_int_equal(nth(LULL_EVENT_pop, 3 - i)->head->a, i);
		assert_true(push->head->counter <= nth(LULL_EVENT_pop, 3 - i)->head->counter);
	}
	assert_int_equal(test_events_count(&events, LULL_EVENT_pop), 4);
}

static void domains_have_levels_of_their_own(void **state)
{
	(void)state;
	run("domains");
	assert_int_equal(need(LULL_EVENT_push, "registered", 0)->head->a, 1 << 16);
	assert_string_equal(domain_of(need(LULL_EVENT_push, "registered", 0)), "one");
	assert_int_equal(need(LULL_EVENT_push, "registered", 1)->head->a, 2 << 16);
	assert_string_equal(domain_of(need(LULL_EVENT_push, "registered", 1)), "zw\xc3\xb6");
	assert_int_equal(need(LULL_EVENT_push,
			      "w\xc3\xaf"
			      "de",
			      0)
				 ->head->a,
			 1 << 16 | 1);
	assert_int_equal(nth(LULL_EVENT_pop, 0)->head->a, 2 << 16);
	assert_int_equal(nth(LULL_EVENT_pop, 1)->head->a, 1 << 16 | 1);
	assert_int_equal(need(LULL_EVENT_mark,
			      "w\xc3\xaf"
			      "de",
			      0)
				 ->head->a,
			 2 << 16);
}

static void expect_category(u32 n, const char *domain, u32 number, const char *name)
{
	const struct test_event *e = nth(LULL_EVENT_category, n);

	assert_int_equal(e->head->a, number);
	assert_string_equal(test_events_text(&events, e->pid, e->category->domain), domain);
	assert_string_equal(test_events_text(&events, e->pid, e->category->name), name);
}

static void names_arrive_without_a_recording(void **state)
{
	const struct test_event *e;

	(void)state;
	atomic_store(&session.control->record, 0);
	run("names");
	expect_category(0, "", 7, "seven");
	expect_category(1, "", 8,
			"\xc3\xa4"
			"cht");
	expect_category(2, "one", 7, "sept");
	expect_category(3, "one", 8, "huit");
	assert_int_equal(test_events_count(&events, LULL_EVENT_category), 4);
	e = nth(LULL_EVENT_thread_label, 0);
	assert_int_equal(e->thread_name->tid, e->tid);
	assert_memory_equal(e->thread_name + 1, "worker", e->head->a);
	e = nth(LULL_EVENT_thread_label, 1);
	assert_int_equal(e->thread_name->tid, 4711);
	assert_memory_equal(e->thread_name + 1, "h\xc3\xa9lper", e->head->a);
}

static const struct test_event *end_of(const struct test_event *start)
{
	for (size_t i = 0; i < events.n; i++)
		if (events.all[i].type == LULL_EVENT_end &&
		    events.all[i].end->range_id == start->start->range_id)
			return &events.all[i];
	fail_msg("range %#llx does not end", (unsigned long long)start->start->range_id);
	return NULL;
}

static void started_ranges_end_on_any_thread(void **state)
{
	const struct test_event *a, *ex, *w, *domain;

	(void)state;
	run("starts");
	a = need(LULL_EVENT_start, "started a", 0);
	ex = need(LULL_EVENT_start, "started ex", 0);
	w = need(LULL_EVENT_start, "started w", 0);
	domain = need(LULL_EVENT_start, "started ex", 1);
	assert_int_not_equal(end_of(a)->tid, a->tid);
	assert_int_not_equal(end_of(ex)->tid, ex->tid);
	assert_int_equal(end_of(w)->tid, w->tid);
	assert_int_equal(domain->head->a, 1 << 16);
	assert_int_equal(end_of(domain)->head->a, 1 << 16);
	assert_int_equal(test_events_count(&events, LULL_EVENT_end), 4);
}

static void expect_schema(u32 n, u64 schema_id, u32 kind, u64 size_bytes, const char *name,
			  const char *json)
{
	const struct test_event *e = nth(LULL_EVENT_schema, n);

	if (schema_id)
		assert_int_equal(e->schema->schema_id, schema_id);
	assert_int_equal(e->schema->kind, kind);
	assert_int_equal(e->schema->size_bytes, size_bytes);
	assert_string_equal(test_events_text(&events, e->pid, e->schema->name), name);
	assert_string_equal(test_events_text(&events, e->pid, e->schema->domain), "one");
	assert_int_equal(e->head->a, strlen(json));
	assert_memory_equal(e->schema + 1, json, strlen(json));
}

static void schemas_and_enumerations_arrive_as_json(void **state)
{
	(void)state;
	run("payloads");
	expect_schema(0, LULL_NVTX_ID_STATIC + 1, 128, 1, "ops",
		      "[{\"name\":\"Sum\",\"value\":0},"
		      "{\"name\":\"Max \\\"quoted\\\"\",\"value\":1,\"flag\":true}]");
	expect_schema(1, LULL_NVTX_ID_STATIC, 1, 16, "transfer",
		      "[{\"name\":\"peer\",\"type\":\"uint64\",\"size\":8,\"offset\":0,"
		      "\"description\":\"rank\"},"
		      "{\"name\":\"items\",\"type\":\"uint32\",\"size\":4,\"offset\":8},"
		      "{\"name\":\"flags\",\"type\":\"uint16\",\"size\":2,\"offset\":12},"
		      "{\"name\":\"op\",\"type\":\"schema\",\"schema\":16777217,\"size\":1,"
		      "\"offset\":14}]");
	expect_schema(2, 0, 1, 0, "",
		      "[{\"name\":\"message\",\"type\":\"cstring\",\"offset\":0,\"flags\":1024},"
		      "{\"name\":\"value\",\"type\":\"uint64\",\"size\":8,\"offset\":8}]");
	assert_int_equal(test_events_count(&events, LULL_EVENT_schema), 3);
}

static void expect_payload(const struct test_event *e, u32 n, u64 schema_id, const void *bytes,
			   u32 n_bytes)
{
	const struct lull_wire_payload *p = test_event_payload(e, n);

	assert_non_null(p);
	assert_int_equal(p->type, LULL_PAYLOAD_EXTENDED);
	assert_int_equal(p->value, schema_id);
	assert_int_equal(p->n_bytes, n_bytes);
	assert_memory_equal(p + 1, bytes, n_bytes);
}

static void payloads_are_copied_up_to_the_limit(void **state)
{
	static const u8 transfer[] = { 3, 0, 0, 0, 0, 0, 0, 0, 0xe8, 3, 0, 0, 5, 0, 1, 0 };
	const struct test_event *e;

	(void)state;
	run("payloads");
	e = need(LULL_EVENT_push, "with payloads", 0);
	expect_payload(e, 0, LULL_NVTX_ID_STATIC, transfer, sizeof(transfer));
	expect_payload(e, 1, LULL_NVTX_TYPE_cstring, "of any length", 13);
	expect_payload(e, 2, LULL_NVTX_ID_STATIC, transfer, sizeof(transfer));
	assert_null(test_event_payload(e, 3));
	e = need(LULL_EVENT_mark, "too much", 0);
	assert_int_equal(test_event_payload(e, 0)->n_bytes, 1024);
	assert_int_equal(((const char *)(test_event_payload(e, 0) + 1))[1023], 'x');
	assert_int_equal(events.issues[LULL_ISSUE_payload_cut], 1);
}

static void payload_calls_take_their_name_from_the_payload(void **state)
{
	const u64 value = 43;
	const struct test_event *e;

	(void)state;
	run("payloads");
	e = need(LULL_EVENT_push, "named by its payload", 0);
	assert_int_equal(test_event_payload(e, 0)->n_bytes, 16);
	need(LULL_EVENT_mark, "named by its payload", 0);
	e = need(LULL_EVENT_start, "named by its payload", 0);
	expect_payload(end_of(e), 0, LULL_NVTX_TYPE_uint64, &value, sizeof(value));
	expect_payload(nth(LULL_EVENT_pop, 1), 0, LULL_NVTX_TYPE_uint64, &value, sizeof(value));
}

static void extensions_are_accepted_and_counted(void **state)
{
	(void)state;
	run("extensions");
	assert_int_equal(events.issues[LULL_ISSUE_nvtx_ignored], 7);
}

static void nonsense_does_no_harm(void **state)
{
	(void)state;
	run("nonsense");
	assert_int_equal(test_events_count(&events, LULL_EVENT_push), 8);
	assert_int_equal(test_events_count(&events, LULL_EVENT_pop), 8);
	assert_null(test_events_find(&events, LULL_EVENT_push, "not to be read", 0));
}

static void ranges_of_an_earlier_recording_do_not_end_in_a_later(void **state)
{
	(void)state;
	run("stray");
	assert_int_equal(test_events_count(&events, LULL_EVENT_push), 2);
	assert_int_equal(test_events_count(&events, LULL_EVENT_pop), 1);
	assert_int_equal(test_events_count(&events, LULL_EVENT_start), 1);
	assert_int_equal(test_events_count(&events, LULL_EVENT_end), 0);
	assert_int_equal(need(LULL_EVENT_push, "of recording 2", 0)->head->a, 0);
}

static void a_forked_child_has_an_image_of_its_own(void **state)
{
	const struct test_event *parent, *child, *e;
	u32 n_categories = 0, n_schemas = 0;

	(void)state;
	run("forks");
	assert_int_equal(events.n_images, 2);
	parent = need(LULL_EVENT_push, "parent", 0);
	child = need(LULL_EVENT_push, "registered before", 0);
	assert_int_not_equal(parent->pid, child->pid);
	assert_string_equal(domain_of(child), "one");
	for (e = events.all; e < events.all + events.n; e++) {
		n_categories += e->pid == child->pid && e->type == LULL_EVENT_category;
		n_schemas += e->pid == child->pid && e->type == LULL_EVENT_schema;
	}
	assert_int_equal(n_categories, 1);
	assert_int_equal(n_schemas, 1);
}

static void threads_register_without_harm(void **state)
{
	u32 n_pushes = 0, n_ix = 0;

	(void)state;
	run("threads");
	for (size_t i = 0; i < events.n; i++) {
		const struct test_event *e = &events.all[i];
		int name;

		if (e->type != LULL_EVENT_push)
			continue;
		n_pushes++;
		n_ix = e->head->a >> 16 > n_ix ? e->head->a >> 16 : n_ix;
		assert_int_equal(e->head->a & 0xffff, 0);
		/* Each name belongs to one domain: 500 names, 20 domains. The text is static. */
		name = atoi(test_events_name(&events, e) + strlen("name "));
		assert_int_equal(name % 20, atoi(domain_of(e) + strlen("domain ")));
	}
	assert_int_equal(n_pushes, 8 * 2000);
	assert_int_equal(n_ix, 20);
}

static void the_agent_needs_no_preload(void **state)
{
	char *argv[] = { "/usr/bin/env", "-u", "LD_PRELOAD", (char *)client, "marks", NULL };

	(void)state;
	assert_int_equal(test_session_run(&session, AGENT, argv), 0);
	test_session_read(&session, &events);
	need(LULL_EVENT_mark, "mark a", 0);
}

static void watch(const char *domain, u32 repeats)
{
	struct lull_control *c = session.control;

	atomic_store(&c->record, 0);
	atomic_store(&c->next_record, 5);
	strcpy(c->capture_range, "epoch");
	strcpy(c->capture_domain, domain);
	c->capture_repeats = repeats;
	atomic_store(&c->watch, 1);
}

static void expect_captures(u32 n)
{
	assert_int_equal(atomic_load(&session.control->capture_began), n);
	assert_int_equal(atomic_load(&session.control->capture_ended), n);
	assert_int_equal(atomic_load(&session.control->record), 0);
	assert_null(test_events_find(&events, LULL_EVENT_push, "before", 0));
	assert_null(test_events_find(&events, LULL_EVENT_mark, "between", 0));
	assert_null(test_events_find(&events, LULL_EVENT_mark, "after", 0));
}

static void a_range_of_the_default_domain_begins_and_ends_recordings(void **state)
{
	(void)state;
	watch("", 0);
	run("capture");
	expect_captures(4);
	assert_int_equal(need(LULL_EVENT_push, "epoch", 0)->head->a, 0);
	assert_int_equal(need(LULL_EVENT_push, "epoch", 1)->head->a, 1);
	need(LULL_EVENT_mark, "inside push", 3);
	need(LULL_EVENT_mark, "inside start", 1);
	need(LULL_EVENT_mark, "inside lull", 0);
	assert_null(test_events_find(&events, LULL_EVENT_mark, "inside domain", 0));
	assert_int_equal(test_events_count(&events, LULL_EVENT_push), 5);
	assert_int_equal(test_events_count(&events, LULL_EVENT_pop), 5);
	assert_int_equal(test_events_count(&events, LULL_EVENT_end), 2);
}

static void a_range_of_a_named_domain_begins_and_ends_recordings(void **state)
{
	(void)state;
	watch("one", 0);
	run("capture");
	expect_captures(1);
	need(LULL_EVENT_mark, "inside domain", 0);
	assert_int_equal(test_events_count(&events, LULL_EVENT_push), 1);
}

static void ranges_begin_no_more_recordings_than_asked_for(void **state)
{
	(void)state;
	watch("*", 2);
	run("capture");
	expect_captures(2);
	need(LULL_EVENT_mark, "inside push", 3);
	assert_null(test_events_find(&events, LULL_EVENT_mark, "inside start", 0));
}

static void a_session_without_nvtx_leaves_nvtx_off(void **state)
{
	char *argv[] = { LULL_BUILD "/e2e/nvtx_raw", "marks", NULL };

	(void)state;
	session.control->sources = LULL_SOURCE_ANNOTATE;
	/* nvtx_raw says that it has no tool. */
	assert_int_equal(WEXITSTATUS(test_session_run(&session, AGENT, argv)), 2);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, open_session, close_session)

static void the_client_is_not_built(void **state)
{
	(void)state;
	test_skip("NVIDIA's NVTX headers are not installed, so there is no %s", client);
}

static int run_with(const char *path)
{
	const struct CMUnitTest tests[] = {
		TEST(marks_carry_names_colours_and_payloads),
		TEST(ranges_nest_by_level),
		TEST(domains_have_levels_of_their_own),
		TEST(names_arrive_without_a_recording),
		TEST(started_ranges_end_on_any_thread),
		TEST(schemas_and_enumerations_arrive_as_json),
		TEST(payloads_are_copied_up_to_the_limit),
		TEST(payload_calls_take_their_name_from_the_payload),
		TEST(extensions_are_accepted_and_counted),
		TEST(nonsense_does_no_harm),
		TEST(ranges_of_an_earlier_recording_do_not_end_in_a_later),
		TEST(a_forked_child_has_an_image_of_its_own),
		TEST(threads_register_without_harm),
		TEST(the_agent_needs_no_preload),
		TEST(a_range_of_the_default_domain_begins_and_ends_recordings),
		TEST(a_range_of_a_named_domain_begins_and_ends_recordings),
		TEST(ranges_begin_no_more_recordings_than_asked_for),
		TEST(a_session_without_nvtx_leaves_nvtx_off),
	};

	const struct CMUnitTest skipped[] = { cmocka_unit_test(the_client_is_not_built) };

	client = path;
	if (access(path, X_OK) != 0)
		return cmocka_run_group_tests_name(path, skipped, NULL, NULL);
	return cmocka_run_group_tests_name(path, tests, NULL, NULL);
}

int main(void)
{
	return run_with(LULL_BUILD "/e2e/nvtx_raw") + run_with(LULL_BUILD "/e2e/nvtx_client");
}
