#include "unit/unit.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "rpc/rpc.h"

/* What is sent. */
struct sent {
	struct lull_rpc_out out;
	char *text;
	size_t len;
};

static void open_sent(struct sent *s)
{
	s->text = NULL;
	s->out = (struct lull_rpc_out){ .to = lull_memstream(&s->text, &s->len) };
}

static void close_sent(struct sent *s, const char *expected)
{
	fclose(s->out.to);
	if (expected)
		assert_string_equal(s->text, expected);
	free(s->text);
}

static void a_request_is_taken_apart(void **state)
{
	static const char text[] = " {\"params\":{\"a\":{\"b\":[1,\"x\\ny\",{}]}},\"method\":"
				   "\"tools/call\",\"id\":\"q\\\"1\",\"jsonrpc\":\"2.0\"} ";
	struct lull_rpc_message m;
	struct lull_rpc_reply r;
	struct lull_jvalue list, item;
	struct lull_jitems items;
	struct lull_str word = LULL_STR_INIT;
	struct sent s;

	(void)state;
	open_sent(&s);
	assert_true(lull_rpc_parse(&m, text, sizeof(text) - 1, &s.out));
	assert_string_equal(m.method.at, "tools/call");
	list = lull_jpick_path(&m.params, (const char *const[]){ "a", "b", NULL });
	assert_int_equal(list.first, '[');
	lull_jitems_init(&items, &list);
	assert_true(lull_jitems_next(&items, NULL, &item));
	assert_int_equal(item.first, '1');
	assert_true(lull_jitems_next(&items, NULL, &item));
	assert_true(lull_jvalue_text(&item, &word));
	assert_string_equal(word.at, "x\ny");
	assert_true(lull_jitems_next(&items, NULL, &item));
	assert_int_equal(item.first, '{');
	assert_false(lull_jvalue_text(&item, &word));
	assert_false(lull_jitems_next(&items, NULL, &item));
	lull_jitems_release(&items);
	assert_int_equal(lull_jpick(&m.params, "b").first, 0);
	assert_int_equal(lull_jpick(&list, "b").first, 0);
	lull_json_u64(lull_rpc_result(&r, &s.out, &m.id), 4);
	lull_rpc_send(&r);
	lull_str_release(&word);
	lull_rpc_message_release(&m);
	close_sent(&s, "{\"jsonrpc\":\"2.0\",\"id\":\"q\\\"1\",\"result\":4}\n");
}

static void messages_with_headers_say_their_length(void **state)
{
	struct lull_rpc_reply r;
	struct sent s;

	(void)state;
	open_sent(&s);
	s.out.has_headers = true;
	lull_json_object(lull_rpc_notify(&r, &s.out, "x"));
	lull_rpc_send(&r);
	close_sent(
		&s,
		"Content-Length: 42\r\n\r\n{\"jsonrpc\":\"2.0\",\"method\":\"x\",\"params\":{}}");
}

static void errors_answer_the_id_if_it_can_be_read(void **state)
{
	static const char text[] = "{\"jsonrpc\":\"2.0\",\"id\":-7,\"method\":[]}";
	struct lull_rpc_message m;
	struct sent s;

	(void)state;
	open_sent(&s);
	assert_false(lull_rpc_parse(&m, text, sizeof(text) - 1, &s.out));
	close_sent(&s, "{\"jsonrpc\":\"2.0\",\"id\":-7,\"error\":{\"code\":-32600,\"message\":"
		       "\"a message needs a method, a string\"}}\n");
}

/* Whatever comes, the answer is one line or none. */
static void damaged_messages_do_no_harm(void **state)
{
	static const char text[] =
		"{\"jsonrpc\":\"2.0\",\"id\":12,\"method\":\"a\",\"params\":{\"b\":"
		"[1,{\"c\":\"\\u00e4\\\"\"}],\"d\":null}}";
	static const char bytes[] = "\"\\{}[],:0x\xff\x01";
	char copy[sizeof(text)];

	(void)state;
	for (size_t i = 0; i < sizeof(text) - 1; i++) {
		for (size_t k = 0; k < sizeof(bytes); k++) {
			struct lull_rpc_message m;
			struct sent s;

			memcpy(copy, text, sizeof(text));
			copy[i] = bytes[k];
			open_sent(&s);
			/* The last one also cuts the text there. */
			if (lull_rpc_parse(&m, copy, bytes[k] ? sizeof(text) - 1 : i, &s.out)) {
				struct lull_jvalue b = lull_jpick(&m.params, "b");
				struct lull_jitems items;

				lull_jitems_init(&items, &b);
				while (lull_jitems_next(&items, NULL, &b))
					lull_jpick(&b, "c");
				lull_jitems_release(&items);
				lull_rpc_message_release(&m);
			}
			close_sent(&s, NULL);
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_request_is_taken_apart),
		cmocka_unit_test(messages_with_headers_say_their_length),
		cmocka_unit_test(errors_answer_the_id_if_it_can_be_read),
		cmocka_unit_test(damaged_messages_do_no_harm),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
