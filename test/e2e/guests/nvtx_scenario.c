#include "e2e/guests/nvtx_scenario.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lull.h"
#include "support/guest.h"
#include "wire/wire.h"

static int n_failed;

#define CHECK(condition)                                                                        \
	do {                                                                                    \
		if (!(condition)) {                                                             \
			fprintf(stderr, "%s:%d: not so: %s\n", __FILE__, __LINE__, #condition); \
			n_failed++;                                                             \
		}                                                                               \
	} while (0)

struct pair {
	const struct lull_nvtx_calls *nvtx, *other;
};

/* The bytes of the schemas below. */
struct transfer {
	u64 peer;
	u32 n_items;
	u16 flags;
	u8 op;
	u8 pad;
};

struct named {
	const char *message;
	u64 value;
};

static struct lull_nvtx_event event(const char *message)
{
	return (struct lull_nvtx_event){
		.version = LULL_NVTX_VERSION,
		.size_bytes = sizeof(struct lull_nvtx_event),
		.message_type = LULL_NVTX_MESSAGE_ASCII,
		.message = message,
	};
}

static struct lull_control *control(void)
{
	char path[256];
	void *map;
	int fd;

	snprintf(path, sizeof(path), "%s/control", getenv(LULL_ENV_SESSION));
	fd = open(path, O_RDWR);
	map = mmap(NULL, sizeof(struct lull_control), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	close(fd);
	return map;
}

static void marks(struct pair p)
{
	struct lull_nvtx_event e = event("styled");

	p.nvtx->initialize(NULL);
	p.nvtx->mark_a("mark a");
	p.nvtx->mark_w(L"m\u00e4rk \u20ac \U0001f600");
	e.category = 7;
	e.color_type = LULL_NVTX_COLOR_ARGB;
	e.color = 0xff00ff00;
	p.nvtx->mark_ex(&e);
	for (i32 type = LULL_NVTX_PAYLOAD_U64; type <= LULL_NVTX_PAYLOAD_F32; type++) {
		e = event("payload");
		e.payload_type = type;
		e.payload = 0x1111111122222222u + (u64)type;
		p.nvtx->mark_ex(&e);
	}
}

static void ranges(struct pair p)
{
	struct lull_nvtx_event e = event("third");

	CHECK(p.nvtx->range_push_a("first") == 0);
	CHECK(p.nvtx->range_push_w(L"second \u00fc") == 1);
	CHECK(p.nvtx->range_push_ex(&e) == 2);
	CHECK(p.other->range_push_a("fourth") == 3);
	CHECK(p.nvtx->range_pop() == 3);
	CHECK(p.nvtx->range_pop() == 2);
	CHECK(p.nvtx->range_pop() == 1);
	CHECK(p.nvtx->range_pop() == 0);
	CHECK(p.nvtx->range_pop() < 0);
}

static void domains(struct pair p)
{
	struct lull_nvtx_domain *one = p.nvtx->domain_create_a("one");
	struct lull_nvtx_domain *two = p.nvtx->domain_create_w(L"zw\u00f6");
	struct lull_nvtx_event e = event(NULL);

	CHECK(one && two && one != two);
	CHECK(p.other->domain_create_a("one") == one);
	e.message_type = LULL_NVTX_MESSAGE_REGISTERED;
	e.message = p.nvtx->domain_register_string_a(one, "registered");
	CHECK(e.message && e.message == p.other->domain_register_string_a(one, "registered"));
	CHECK(p.nvtx->domain_range_push_ex(one, &e) == 0);
	CHECK(p.nvtx->domain_range_push_ex(two, &e) == 0);
	e.message = p.nvtx->domain_register_string_w(one, L"w\u00efde");
	CHECK(p.nvtx->domain_range_push_ex(one, &e) == 1);
	CHECK(p.nvtx->domain_range_pop(two) == 0);
	CHECK(p.nvtx->domain_range_pop(one) == 1);
	CHECK(p.nvtx->domain_range_pop(one) == 0);
	p.nvtx->domain_mark_ex(two, &e);
	CHECK(!p.nvtx->domain_resource_create(one, NULL));
	p.nvtx->domain_resource_destroy(NULL);
	p.nvtx->domain_destroy(two);
}

static void names(struct pair p)
{
	struct lull_nvtx_domain *one = p.nvtx->domain_create_a("one");

	p.nvtx->name_category_a(7, "seven");
	p.nvtx->name_category_w(8, L"\u00e4cht");
	p.nvtx->domain_name_category_a(one, 7, "sept");
	p.nvtx->domain_name_category_w(one, 8, L"huit");
	p.nvtx->name_category_a(7, "seven"); /* said already */
	p.nvtx->name_os_thread_a((u32)gettid(), "worker");
	p.nvtx->name_os_thread_w(4711, L"h\u00e9lper");
}

static void *end_ranges(void *arg)
{
	const struct lull_nvtx_calls *nvtx = ((void **)arg)[0];
	const u64 *ids = ((void **)arg)[1];

	nvtx->range_end(ids[0]);
	nvtx->domain_range_end(NULL, ids[1]);
	return NULL;
}

static void starts(struct pair p)
{
	struct lull_nvtx_event e = event("started ex");
	u64 ids[] = {
		p.nvtx->range_start_a("started a"),
		p.nvtx->range_start_ex(&e),
		p.nvtx->range_start_w(L"started w"),
		p.nvtx->domain_range_start_ex(p.nvtx->domain_create_a("one"), &e),
	};
	void *arg[] = { (void *)p.nvtx, ids };
	pthread_t thread;

	for (int i = 0; i < 4; i++)
		for (int j = 0; j <= i; j++)
			CHECK(ids[i] != 0 && (i == j || ids[i] != ids[j]));
	pthread_create(&thread, NULL, end_ranges, arg);
	pthread_join(thread, NULL);
	p.nvtx->range_end(ids[2]);
	p.nvtx->domain_range_end(p.nvtx->domain_create_a("one"), ids[3]);
	p.nvtx->range_end(0);
}

static u64 register_enum(const struct lull_nvtx_calls *nvtx, struct lull_nvtx_domain *domain)
{
	const struct lull_nvtx_enum_entry entries[] = {
		{ "Sum", 0, 0 },
		{ "Max \"quoted\"", 1, 1 },
	};
	const struct lull_nvtx_enum_attr attr = {
		.mask = LULL_NVTX_ENUM_HAS_NAME | LULL_NVTX_ENUM_HAS_ENTRIES |
			LULL_NVTX_ENUM_HAS_N_ENTRIES | LULL_NVTX_ENUM_HAS_BYTES |
			LULL_NVTX_ENUM_HAS_ID,
		.name = "ops",
		.entries = entries,
		.n_entries = 2,
		.size_bytes = 1,
		.schema_id = LULL_NVTX_ID_STATIC + 1,
	};

	return nvtx->payload_enum_register(domain, &attr);
}

static u64 register_transfer(const struct lull_nvtx_calls *nvtx, struct lull_nvtx_domain *domain)
{
	const struct lull_nvtx_entry entries[] = {
		{ .type = LULL_NVTX_TYPE_uint64, .name = "peer", .description = "rank" },
		{ .type = LULL_NVTX_TYPE_uint32, .name = "items" },
		{ .type = LULL_NVTX_TYPE_uint16, .name = "flags" },
		{ .type = LULL_NVTX_ID_STATIC + 1, .name = "op" },
	};
	const struct lull_nvtx_schema_attr attr = {
		.mask = LULL_NVTX_SCHEMA_HAS_NAME | LULL_NVTX_SCHEMA_HAS_TYPE |
			LULL_NVTX_SCHEMA_HAS_ENTRIES | LULL_NVTX_SCHEMA_HAS_N_ENTRIES |
			LULL_NVTX_SCHEMA_HAS_BYTES | LULL_NVTX_SCHEMA_HAS_ID,
		.name = "transfer",
		.type = LULL_NVTX_SCHEMA_STATIC,
		.entries = entries,
		.n_entries = 4,
		.size_bytes = sizeof(struct transfer),
		.schema_id = LULL_NVTX_ID_STATIC,
	};

	return nvtx->payload_schema_register(domain, &attr);
}

static u64 register_named(const struct lull_nvtx_calls *nvtx, struct lull_nvtx_domain *domain)
{
	const struct lull_nvtx_entry entries[] = {
		{ .type = LULL_NVTX_TYPE_cstring,
		  .name = "message",
		  .flags = LULL_NVTX_ENTRY_MESSAGE },
		{ .type = LULL_NVTX_TYPE_uint64, .name = "value" },
	};
	const struct lull_nvtx_schema_attr attr = {
		.mask = LULL_NVTX_SCHEMA_HAS_TYPE | LULL_NVTX_SCHEMA_HAS_ENTRIES |
			LULL_NVTX_SCHEMA_HAS_N_ENTRIES,
		.type = LULL_NVTX_SCHEMA_STATIC,
		.entries = entries,
		.n_entries = 2,
	};

	return nvtx->payload_schema_register(domain, &attr);
}

static void attributes_with_payloads(struct pair p, struct lull_nvtx_domain *domain)
{
	static char large[3000];
	const struct transfer transfer = { .peer = 3, .n_items = 1000, .flags = 5, .op = 1 };
	const struct lull_nvtx_data data[] = {
		{ LULL_NVTX_ID_STATIC, sizeof(transfer), &transfer },
		{ LULL_NVTX_TYPE_cstring, SIZE_MAX, "of any length" },
		{ LULL_NVTX_ID_STATIC, SIZE_MAX, &transfer },
	};
	const struct lull_nvtx_data too_much[] = { { 1023, sizeof(large), large } };
	struct lull_nvtx_event e = event("with payloads");

	e.payload_type = LULL_NVTX_PAYLOAD_EXT;
	e.n_payloads = 3;
	e.payload = (u64)data;
	p.nvtx->domain_range_push_ex(domain, &e);
	p.nvtx->domain_range_pop(domain);
	e = event("too much");
	memset(large, 'x', sizeof(large));
	e.payload_type = LULL_NVTX_PAYLOAD_EXT;
	e.n_payloads = 1;
	e.payload = (u64)too_much;
	p.nvtx->domain_mark_ex(domain, &e);
}

static void payloads(struct pair p)
{
	struct lull_nvtx_domain *one = p.nvtx->domain_create_a("one");
	const struct named named = { .message = "named by its payload", .value = 42 };
	const u64 value = 43;
	struct lull_nvtx_data data = { .size_bytes = sizeof(named), .payload = &named };
	const struct lull_nvtx_data last = { LULL_NVTX_TYPE_uint64, sizeof(value), &value };
	u64 range_id;

	CHECK(register_enum(p.nvtx, one) == LULL_NVTX_ID_STATIC + 1);
	CHECK(register_transfer(p.nvtx, one) == LULL_NVTX_ID_STATIC);
	CHECK(register_transfer(p.other, one) == LULL_NVTX_ID_STATIC);
	data.schema_id = register_named(p.nvtx, one);
	CHECK(data.schema_id >= LULL_NVTX_ID_DYNAMIC);
	attributes_with_payloads(p, one);
	CHECK(p.nvtx->range_push_payload(one, &data, 1) == 0);
	CHECK(p.nvtx->range_pop_payload(one, &last, 1) == 0);
	p.nvtx->mark_payload(one, &data, 1);
	range_id = p.nvtx->range_start_payload(one, &data, 1);
	CHECK(range_id != 0);
	p.nvtx->range_end_payload(one, range_id, &last, 1);
}

static void extensions(struct pair p)
{
	const struct lull_nvtx_counter_attr counter = { .struct_bytes = sizeof(counter),
							.name = "c" };
	const struct lull_nvtx_scope_attr scope = { .struct_bytes = sizeof(scope),
						    .path = "a/b",
						    .scope_id = LULL_NVTX_ID_STATIC + 5 };
	u64 id = p.nvtx->counter_register(NULL, &counter);

	CHECK(id >= LULL_NVTX_ID_DYNAMIC);
	CHECK(p.nvtx->counter_register(NULL, &counter) != id);
	p.nvtx->counter_sample_int64(NULL, id, -1);
	p.nvtx->counter_sample_float64(NULL, id, 0.5);
	p.nvtx->counter_sample(NULL, id, &id, sizeof(id));
	p.nvtx->counter_sample_no_value(NULL, id, 1);
	p.nvtx->counter_batch_submit(NULL, NULL);
	CHECK(p.nvtx->scope_register(NULL, &scope) == scope.scope_id);
	CHECK(p.nvtx->time_domain_register(NULL, NULL) >= LULL_NVTX_ID_DYNAMIC);
	CHECK(p.nvtx->timestamp_get() != 0);
	p.nvtx->event_submit(NULL, NULL, 0);
	p.nvtx->event_batch_submit(NULL, NULL);
}

/* Threads that register the same at once agree on the handles. */
static void *register_all(void *arg)
{
	const struct pair *p = arg;
	struct lull_nvtx_event e = event(NULL);

	e.message_type = LULL_NVTX_MESSAGE_REGISTERED;
	for (u32 i = 0; i < 2000; i++) {
		char name[32];
		struct lull_nvtx_domain *domain;

		snprintf(name, sizeof(name), "domain %u", i % 20);
		domain = (i & 1 ? p->nvtx : p->other)->domain_create_a(name);
		snprintf(name, sizeof(name), "name %u", i % 500);
		e.message = p->nvtx->domain_register_string_a(domain, name);
		snprintf(name, sizeof(name), "category %u", i % 30);
		p->nvtx->domain_name_category_a(domain, i % 30, name);
		CHECK(domain && e.message);
		CHECK(p->nvtx->domain_range_push_ex(domain, &e) == 0);
		CHECK(p->nvtx->domain_range_pop(domain) == 0);
	}
	return NULL;
}

static void threads(struct pair p)
{
	pthread_t all[8];

	for (size_t i = 0; i < LULL_COUNT_OF(all); i++)
		pthread_create(&all[i], NULL, register_all, &p);
	for (size_t i = 0; i < LULL_COUNT_OF(all); i++)
		pthread_join(all[i], NULL);
}

static void nonsense_names(struct pair p)
{
	struct lull_nvtx_schema_attr schema = { 0 };
	struct lull_nvtx_data data = { .schema_id = 12345,
				       .size_bytes = SIZE_MAX,
				       .payload = NULL };

	p.nvtx->mark_a(NULL);
	p.nvtx->mark_w(NULL);
	p.nvtx->mark_payload(NULL, NULL, 3);
	p.nvtx->mark_payload(NULL, &data, 1);
	p.nvtx->range_end(p.nvtx->range_start_a(NULL));
	CHECK(!p.nvtx->domain_create_a(NULL));
	CHECK(!p.nvtx->domain_create_w(L""));
	CHECK(!p.nvtx->domain_register_string_a(NULL, NULL));
	CHECK(!p.nvtx->domain_register_string_w(NULL, NULL));
	CHECK(!p.nvtx->payload_schema_register(NULL, NULL));
	CHECK(!p.nvtx->payload_schema_register(NULL, &schema));
	CHECK(!p.nvtx->payload_enum_register(NULL, NULL));
	p.nvtx->name_category_a(1, NULL);
	p.nvtx->name_category_w(1, NULL);
	p.nvtx->name_os_thread_a(0, NULL);
	p.nvtx->name_os_thread_w(0, NULL);
}

/* Nothing here is right; nothing of it may hurt. */
static void nonsense(struct pair p)
{
	struct lull_nvtx_event e = event("not to be read");
	char foreign[64] = { 0 };

	nonsense_names(p);
	CHECK(p.nvtx->range_push_a(NULL) == 0);
	CHECK(p.nvtx->range_push_w(NULL) == 1);
	CHECK(p.nvtx->range_push_ex(NULL) == 2);
	e.size_bytes = 16;
	CHECK(p.nvtx->range_push_ex(&e) == 3);
	e = event("not to be read");
	e.version = 99;
	CHECK(p.nvtx->range_push_ex(&e) == 4);
	e = event(NULL);
	e.message_type = LULL_NVTX_MESSAGE_REGISTERED;
	CHECK(p.nvtx->range_push_ex(&e) == 5);
	e.message = foreign;
	e.payload_type = LULL_NVTX_PAYLOAD_EXT;
	e.n_payloads = 3;
	CHECK(p.nvtx->domain_range_push_ex((struct lull_nvtx_domain *)foreign, &e) == 6);
	e.message_type = 77;
	e.payload_type = 77;
	e.n_payloads = -1;
	CHECK(p.nvtx->range_push_ex(&e) == 7);
	for (int level = 7; level >= 0; level--)
		CHECK(p.nvtx->range_pop() == level);
}

/* A recording begins and ends while ranges are open. */
static void stray(struct pair p)
{
	struct lull_control *c = control();
	u64 range_id = p.nvtx->range_start_a("of recording 1");

	CHECK(p.nvtx->range_push_a("of recording 1") == 0);
	atomic_store(&c->record, 0);
	CHECK(p.nvtx->range_push_a("of none") == LULL_NVTX_UNTRACKED);
	CHECK(p.nvtx->range_start_a("of none") == 0);
	atomic_store(&c->record, 2);
	p.nvtx->range_end(range_id);
	CHECK(p.nvtx->range_push_a("of recording 2") == 0);
	CHECK(p.nvtx->range_pop() == 0);
	CHECK(p.nvtx->range_pop() < 0);
	CHECK(p.nvtx->range_pop() < 0);
}

static void forks(struct pair p)
{
	struct lull_nvtx_domain *one = p.nvtx->domain_create_a("one");
	struct lull_nvtx_event e = event(NULL);
	int status = -1;
	pid_t pid;

	e.message_type = LULL_NVTX_MESSAGE_REGISTERED;
	e.message = p.nvtx->domain_register_string_a(one, "registered before");
	p.nvtx->domain_name_category_a(one, 3, "third");
	register_enum(p.nvtx, one);
	p.nvtx->range_push_a("parent");
	pid = fork();
	if (pid == 0) {
		CHECK(p.nvtx->domain_range_push_ex(one, &e) == 0);
		CHECK(p.nvtx->domain_create_a("one") == one);
		CHECK(p.nvtx->domain_create_a("of the child") != NULL);
		CHECK(p.nvtx->domain_range_pop(one) == 0);
		_exit(n_failed != 0);
	}
	waitpid(pid, &status, 0);
	CHECK(status == 0);
	p.nvtx->range_pop();
}

/* The range "epoch" begins and ends recordings; the test sets what else counts. */
static void capture(struct pair p)
{
	struct lull_nvtx_event e = event("epoch");
	struct lull_nvtx_domain *one = p.nvtx->domain_create_a("one");
	u64 range_id;

	p.nvtx->range_push_a("before");
	for (int i = 0; i < 2; i++) {
		p.nvtx->range_push_a("epoch");
		p.nvtx->range_push_a("epoch"); /* an inner one ends nothing */
		p.nvtx->mark_a("inside push");
		p.nvtx->range_pop();
		p.nvtx->mark_a("inside push");
		p.nvtx->range_pop();
		p.nvtx->mark_a("between");
		guest_wait_for_recorder();
	}
	range_id = p.nvtx->range_start_a("epoch");
	p.nvtx->mark_a("inside start");
	p.nvtx->range_end(p.nvtx->range_start_a("epoch"));
	p.nvtx->mark_a("inside start");
	p.nvtx->range_end(range_id);
	guest_wait_for_recorder();
	p.nvtx->domain_range_push_ex(one, &e);
	p.nvtx->mark_a("inside domain");
	p.nvtx->domain_range_pop(one);
	guest_wait_for_recorder();
	lull_push("epoch");
	lull_mark("inside lull");
	lull_pop();
	p.nvtx->mark_a("after");
	p.nvtx->range_pop();
}

int nvtx_scenario(const struct lull_nvtx_calls *nvtx, const struct lull_nvtx_calls *other,
		  const char *what)
{
	static const struct {
		const char *name;
		void (*run)(struct pair p);
	} parts[] = {
		{ "marks", marks },	      { "ranges", ranges },	{ "domains", domains },
		{ "names", names },	      { "starts", starts },	{ "payloads", payloads },
		{ "extensions", extensions }, { "nonsense", nonsense }, { "stray", stray },
		{ "forks", forks },	      { "capture", capture },	{ "threads", threads },
	};
	bool is_found = false;

	for (size_t i = 0; i < LULL_COUNT_OF(parts); i++) {
		if (what && strcmp(what, parts[i].name) == 0) {
			parts[i].run((struct pair){ nvtx, other });
			is_found = true;
		}
	}
	CHECK(is_found);
	return n_failed != 0;
}
