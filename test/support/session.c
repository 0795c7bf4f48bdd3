#include "support/session.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/loader.h"
#include "support/patience.h"

#define N_IMAGES 64u

/* A chunk and where it is, for sorting. */
struct chunk_at {
	const struct lull_chunk *chunk;
	const u8 *data;
};

void test_session_open(struct test_session *s, u32 sources)
{
	char path[96];
	int fd;

	snprintf(s->path, sizeof(s->path), "%s/lull-test-XXXXXX",
		 access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp");
	assert_non_null(mkdtemp(s->path));
	snprintf(path, sizeof(path), "%s/control", s->path);
	fd = open(path, O_RDWR | O_CREAT, 0600);
	assert_true(fd >= 0);
	assert_int_equal(ftruncate(fd, sizeof(*s->control)), 0);
	s->control = mmap(NULL, sizeof(*s->control), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	assert_true(s->control != MAP_FAILED);
	close(fd);
	s->control->magic = LULL_WIRE_MAGIC;
	s->control->collector_pid = (u32)getpid();
	s->control->sources = sources;
	atomic_store(&s->control->record, 1);
	atomic_store(&s->control->next_record, 2);
}

/* What the recorder does when a report is closed: the next capture range may begin another. */
static void hand_out_ticket(struct lull_control *c)
{
	if (!atomic_load(&c->next_record) && !atomic_load(&c->record))
		atomic_store(&c->next_record, 5 + atomic_load(&c->capture_ended));
}

/* The agent's path, or that of a link to it where the loader could not take it from LD_PRELOAD. */
static void find_agent(const struct test_session *s, const char *agent, char *path)
{
	char link[96];

	assert_non_null(realpath(agent, path));
	if (!strpbrk(path, LULL_PRELOAD_GAPS))
		return;
	snprintf(link, sizeof(link), "%s/agent.so", s->path);
	assert_true(symlink(path, link) == 0 || errno == EEXIST);
	snprintf(path, PATH_MAX, "%s", link);
}

int test_session_run(struct test_session *s, const char *agent, char *const argv[])
{
	char real[PATH_MAX];
	u64 end_ns = test_patience_end_ns();
	int status = -1;
	pid_t pid;

	find_agent(s, agent, real);
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		setenv("LD_PRELOAD", real, 1);
		setenv("NVTX_INJECTION64_PATH", real, 1);
		setenv(LULL_ENV_SESSION, s->path, 1);
		execv(argv[0], argv);
		_exit(127);
	}
	while (waitpid(pid, &status, WNOHANG) == 0) {
		hand_out_ticket(s->control);
		if (!test_patience_pause(end_ns)) {
			kill(pid, SIGKILL);
			waitpid(pid, &status, 0);
			fail_msg("%s did not end within %u s", argv[0], test_patience_s());
		}
	}
	return status;
}

static int compare_chunks(const void *a, const void *b)
{
	const struct lull_chunk *x = ((const struct chunk_at *)a)->chunk,
				*y = ((const struct chunk_at *)b)->chunk;

	if (x->slot != y->slot)
		return x->slot < y->slot ? -1 : 1;
	if (x->level != y->level)
		return x->level < y->level ? -1 : 1;
	return x->seq < y->seq ? -1 : x->seq > y->seq;
}

static void add(struct test_events *events, struct test_event e)
{
	/* Doubles at every power of two. */
	if ((events->n & (events->n - 1)) == 0) {
		size_t room = events->n ? events->n * 2 : 1;

		events->all = realloc(events->all, room * sizeof(*events->all));
		assert_non_null(events->all);
	}
	events->all[events->n++] = e;
}

static void read_chunk(struct test_events *events, const struct lull_image *image,
		       const struct chunk_at *at)
{
	const struct lull_slot *slots = (const void *)((const u8 *)image + LULL_IMAGE_SLOTS_OFF);
	u32 committed = atomic_load(&at->chunk->committed);
	u32 off = 0;

	while (off < committed) {
		const struct lull_event *e = (const void *)(at->data + off);

		assert_true(e->size_bytes >= sizeof(*e) && e->size_bytes % 8 == 0);
		add(events, (struct test_event){ .pid = image->pid,
						 .tid = slots[at->chunk->slot].tid,
						 .type = e->type,
						 .level = at->chunk->level,
						 .head = e });
		off += e->size_bytes;
	}
	assert_int_equal(off, committed);
}

static void read_image(struct test_events *events, const struct lull_image *image)
{
	const struct lull_chunk *chunks = (const void *)((const u8 *)image + LULL_IMAGE_CHUNKS_OFF);
	const struct lull_slot *slots = (const void *)((const u8 *)image + LULL_IMAGE_SLOTS_OFF);
	u32 n_used = atomic_load(&image->n_used), n = 0;
	struct chunk_at *at = calloc(n_used + 1, sizeof(*at));

	assert_non_null(at);
	assert_int_equal(image->magic, LULL_WIRE_MAGIC);
	for (u32 i = 0; i < n_used; i++) {
		u32 state = atomic_load(&chunks[i].state);

		if (state != LULL_CHUNK_OWNED && state != LULL_CHUNK_FULL)
			continue;
		at[n].chunk = &chunks[i];
		at[n++].data =
			(const u8 *)image + LULL_IMAGE_DATA_OFF + (size_t)i * LULL_CHUNK_BYTES;
	}
	qsort(at, n, sizeof(*at), compare_chunks);
	for (u32 i = 0; i < n; i++)
		read_chunk(events, image, &at[i]);
	for (u32 i = 0; i < LULL_N_ISSUES; i++)
		events->issues[i] += atomic_load(&image->issues[i]);
	for (u32 i = 0; i < image->n_slots_ready; i++)
		events->n_dropped += atomic_load(&slots[i].n_dropped);
	free(at);
}

void test_session_read(const struct test_session *s, struct test_events *events)
{
	struct dirent *entry;
	DIR *dir = opendir(s->path);

	*events = (struct test_events){ .maps = calloc(N_IMAGES, sizeof(void *)) };
	assert_non_null(dir);
	assert_non_null(events->maps);
	while ((entry = readdir(dir))) {
		char path[sizeof(s->path) + sizeof(entry->d_name) + 2];
		struct stat st;
		void *map;
		int fd;

		if (!strstr(entry->d_name, ".image"))
			continue;
		snprintf(path, sizeof(path), "%s/%s", s->path, entry->d_name);
		fd = open(path, O_RDONLY);
		assert_int_equal(fstat(fd, &st), 0);
		map = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_SHARED, fd, 0);
		assert_true(map != MAP_FAILED);
		close(fd);
		assert_true(events->n_images < N_IMAGES);
		events->maps[events->n_images++] = map;
		read_image(events, map);
	}
	closedir(dir);
}

void test_session_close(struct test_session *s)
{
	struct dirent *entry;
	DIR *dir = opendir(s->path);

	while (dir && (entry = readdir(dir)))
		unlinkat(dirfd(dir), entry->d_name, 0);
	if (dir)
		closedir(dir);
	rmdir(s->path);
	munmap(s->control, sizeof(*s->control));
}

const char *test_events_text(const struct test_events *events, u32 pid, u64 hash)
{
	static char text[65536];

	if (!hash)
		return "";
	for (size_t i = 0; i < events->n; i++) {
		const struct test_event *e = &events->all[i];

		if (e->pid != pid || e->type != LULL_EVENT_string || e->string->hash != hash)
			continue;
		assert_true(e->head->a < sizeof(text));
		memcpy(text, e->string + 1, e->head->a);
		text[e->head->a] = '\0';
		return text;
	}
	return NULL;
}

const struct lull_wire_label *test_events_label(const struct test_events *events, u32 pid, u64 hash)
{
	for (size_t i = 0; i < events->n; i++) {
		const struct test_event *e = &events->all[i];

		if (e->pid == pid && e->type == LULL_EVENT_label && e->label->hash == hash)
			return e->label;
	}
	return NULL;
}

const char *test_events_name(const struct test_events *events, const struct test_event *e)
{
	/* push, start and mark have their label at the same place. */
	const struct lull_wire_label *label = test_events_label(events, e->pid, e->range->label);

	return label ? test_events_text(events, e->pid, label->name) : NULL;
}

const struct test_event *test_events_find(const struct test_events *events, u32 type,
					  const char *name, u32 n)
{
	for (size_t i = 0; i < events->n; i++) {
		const struct test_event *e = &events->all[i];
		const char *text = e->type == type ? test_events_name(events, e) : NULL;

		if (text && strcmp(text, name) == 0 && n-- == 0)
			return e;
	}
	return NULL;
}

size_t test_events_count(const struct test_events *events, u32 type)
{
	size_t n = 0;

	for (size_t i = 0; i < events->n; i++)
		n += events->all[i].type == type;
	return n;
}

static size_t fixed_bytes(u32 type)
{
	switch (type) {
	case LULL_EVENT_push:
	case LULL_EVENT_mark:
		return sizeof(struct lull_wire_range);
	case LULL_EVENT_start:
		return sizeof(struct lull_wire_start);
	case LULL_EVENT_end:
		return sizeof(struct lull_wire_end);
	default:
		return sizeof(struct lull_event);
	}
}

const struct lull_wire_payload *test_event_payload(const struct test_event *e, u32 n)
{
	size_t off = fixed_bytes(e->type);

	while (off + sizeof(struct lull_wire_payload) <= e->head->size_bytes) {
		const struct lull_wire_payload *p = (const void *)((const u8 *)e->head + off);

		if (n-- == 0)
			return p;
		off += sizeof(*p) + ((p->n_bytes + 7u) & ~7u);
	}
	return NULL;
}

void test_events_release(struct test_events *events)
{
	for (u32 i = 0; i < events->n_images; i++) {
		const struct lull_image *image = events->maps[i];

		munmap(events->maps[i],
		       LULL_IMAGE_DATA_OFF + (size_t)image->n_chunks * LULL_CHUNK_BYTES);
	}
	free(events->maps);
	free(events->all);
	*events = (struct test_events){ 0 };
}
