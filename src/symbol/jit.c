#include "symbol/jit.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/sort.h"

/*
 * jitdump, all numbers in the byte order of the machine:
 *
 *	header   u32 magic, version, total_size, machine, pad, pid; u64 timestamp, flags
 *	record   u32 id, total_size; u64 timestamp; then by id
 *	  0 load u32 pid, tid; u64 vma, code_addr, code_size, code_index; name with NUL; code
 *	  1 move u32 pid, tid; u64 vma, old_code_addr, new_code_addr, code_size, code_index
 */
#define DUMP_MAGIC	  0x4a695444u
#define DUMP_HEADER_BYTES 40
#define RECORD_BYTES	  16
#define LOAD_NAME_OFF	  (RECORD_BYTES + 40)
#define MOVE_BYTES	  (RECORD_BYTES + 48)

enum { RECORD_LOAD = 0, RECORD_MOVE = 1 };

struct function {
	u64 start;
	u64 end;
	u64 time_ns;
	u64 seq; /* order of arrival, decides when times do not */
	size_t name_off;
};

void lull_jit_init(struct lull_jit *j)
{
	*j = (struct lull_jit){ 0 };
	lull_vec_init(&j->functions, sizeof(struct function));
	lull_vec_init(&j->max_end, sizeof(u64));
}

void lull_jit_release(struct lull_jit *j)
{
	lull_vec_release(&j->functions);
	lull_vec_release(&j->max_end);
	lull_str_release(&j->names);
}

static void add(struct lull_jit *j, u64 start, u64 n_bytes, u64 time_ns, size_t name_off)
{
	struct function *f;

	if (!n_bytes || start + n_bytes < start)
		return;
	f = lull_vec_push(&j->functions);
	*f = (struct function){ start, start + n_bytes, time_ns, j->functions.n, name_off };
	j->is_sorted = false;
}

static size_t add_name(struct lull_jit *j, const char *name, size_t len)
{
	size_t off = j->names.len;

	lull_str_add(&j->names, name, len);
	lull_str_add(&j->names, "", 1);
	return off;
}

int lull_jit_read_map(struct lull_jit *j, const char *path, struct lull_err *err)
{
	FILE *f = fopen(path, "re");
	char *line = NULL;
	size_t cap = 0;
	ssize_t len;

	if (!f)
		return lull_fail_errno(err, "opening %s", path);
	while ((len = getline(&line, &cap, f)) > 0) {
		u64 start, n_bytes;
		int name_at = 0;

		if (line[len - 1] == '\n')
			line[--len] = '\0';
		if (sscanf(line, "%" SCNx64 " %" SCNx64 " %n", &start, &n_bytes, &name_at) < 2 ||
		    !name_at || !line[name_at])
			continue;
		add(j, start, n_bytes, 0, add_name(j, line + name_at, (size_t)(len - name_at)));
	}
	free(line);
	fclose(f);
	return LULL_OK;
}

static u32 u32_at(const u8 *p)
{
	u32 v;

	memcpy(&v, p, sizeof(v));
	return v;
}

static u64 u64_at(const u8 *p)
{
	u64 v;

	memcpy(&v, p, sizeof(v));
	return v;
}

static void read_load(struct lull_jit *j, const u8 *record, size_t n_bytes)
{
	const char *name = (const char *)record + LOAD_NAME_OFF;
	size_t len;

	if (n_bytes <= LOAD_NAME_OFF)
		return;
	len = strnlen(name, n_bytes - LOAD_NAME_OFF);
	add(j, u64_at(record + RECORD_BYTES + 16), u64_at(record + RECORD_BYTES + 24),
	    u64_at(record + 8), add_name(j, name, len));
}

/*
 * The same function somewhere else from now on. The function that moved is the last one loaded
 * there.
 */
static void read_move(struct lull_jit *j, const u8 *record, size_t n_bytes)
{
	const struct function *f = j->functions.at;
	u64 from;

	if (n_bytes < MOVE_BYTES)
		return;
	from = u64_at(record + RECORD_BYTES + 16);
	for (size_t i = j->functions.n; i-- > 0;)
		if (f[i].start == from) {
			add(j, u64_at(record + RECORD_BYTES + 24),
			    u64_at(record + RECORD_BYTES + 32), u64_at(record + 8), f[i].name_off);
			return;
		}
}

static int read_records(struct lull_jit *j, const u8 *at, size_t n_bytes, struct lull_err *err)
{
	size_t off;

	if (n_bytes < DUMP_HEADER_BYTES || u32_at(at) != DUMP_MAGIC ||
	    u32_at(at + 8) < DUMP_HEADER_BYTES)
		return lull_fail(err, LULL_E_FORMAT, "not a jitdump file");
	for (off = u32_at(at + 8); off <= n_bytes && n_bytes - off >= RECORD_BYTES;) {
		const u8 *record = at + off;
		u32 record_bytes = u32_at(record + 4);

		/* A program that was killed leaves a record half written. */
		if (record_bytes < RECORD_BYTES || record_bytes > n_bytes - off)
			break;
		if (u32_at(record) == RECORD_LOAD)
			read_load(j, record, record_bytes);
		else if (u32_at(record) == RECORD_MOVE)
			read_move(j, record, record_bytes);
		off += record_bytes;
	}
	return LULL_OK;
}

int lull_jit_read_dump(struct lull_jit *j, const char *path, struct lull_err *err)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	struct stat st;
	void *at;
	int rc;

	if (fd < 0)
		return lull_fail_errno(err, "opening %s", path);
	if (fstat(fd, &st) || !S_ISREG(st.st_mode) || !st.st_size) {
		close(fd);
		return lull_fail(err, LULL_E_FORMAT, "%s: not a jitdump file", path);
	}
	at = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
	close(fd);
	if (at == MAP_FAILED)
		return lull_fail_errno(err, "mapping %s", path);
	rc = read_records(j, at, (size_t)st.st_size, err);
	munmap(at, (size_t)st.st_size);
	return rc ? lull_err_wrap(err, "%s", path) : LULL_OK;
}

/*
 * The pid that the process knows itself by, which in a container is another: the last one of NSpid.
 */
static u32 inner_pid(u32 pid)
{
	char path[64], line[256];
	u32 inner = pid;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%" PRIu32 "/status", pid);
	f = fopen(path, "re");
	while (f && fgets(line, sizeof(line), f))
		if (!strncmp(line, "NSpid:", 6) && strrchr(line, '\t'))
			inner = (u32)strtoul(strrchr(line, '\t'), NULL, 10);
	if (f)
		fclose(f);
	return inner;
}

int lull_jit_read_process(struct lull_jit *j, u32 pid, struct lull_err *err)
{
	char path[128];

	snprintf(path, sizeof(path), "/proc/%" PRIu32 "/root/tmp/perf-%" PRIu32 ".map", pid,
		 inner_pid(pid));
	if (!lull_jit_read_map(j, path, err))
		return LULL_OK;
	snprintf(path, sizeof(path), "/tmp/perf-%" PRIu32 ".map", pid);
	if (!lull_jit_read_map(j, path, err))
		return LULL_OK;
	return lull_fail(err, LULL_E_NOT_FOUND, "process %" PRIu32 " has no /tmp/perf-PID.map",
			 pid);
}

static int compare(const void *a, const void *b)
{
	const struct function *x = a, *y = b;

	if (x->start != y->start)
		return x->start < y->start ? -1 : 1;
	return x->seq < y->seq ? -1 : x->seq > y->seq;
}

static void sort(struct lull_jit *j)
{
	const struct function *f = j->functions.at;
	u64 end = 0;

	if (j->is_sorted || !j->functions.n)
		return;
	lull_sort(j->functions.at, j->functions.n, sizeof(*f), compare);
	j->max_end.n = 0;
	for (size_t i = 0; i < j->functions.n; i++) {
		end = f[i].end > end ? f[i].end : end;
		lull_vec_add(&j->max_end, &end, 1);
	}
	j->is_sorted = true;
}

static bool is_later(const struct function *a, const struct function *b)
{
	return !b || a->time_ns > b->time_ns || (a->time_ns == b->time_ns && a->seq > b->seq);
}

const char *lull_jit_find(struct lull_jit *j, u64 addr, u64 time_ns)
{
	const struct function *f, *best = NULL;
	const u64 *max_end;
	size_t n;

	sort(j);
	f = j->functions.at;
	max_end = j->max_end.at;
	n = lull_vec_upper(&j->functions, offsetof(struct function, start), addr);
	while (n-- > 0 && max_end[n] > addr)
		if (f[n].end > addr && f[n].time_ns <= time_ns && is_later(&f[n], best))
			best = &f[n];
	return best ? j->names.at + best->name_off : NULL;
}
