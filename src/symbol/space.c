#include "symbol/space.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* Addresses from here on belong to the kernel, on x86_64 and aarch64. */
#define KERNEL_START (1ULL << 63)

void lull_space_init(struct lull_space *s, struct lull_files *files, u32 pid)
{
	*s = (struct lull_space){ .files = files, .pid = pid };
	lull_vec_init(&s->mappings, sizeof(struct lull_mapping));
}

void lull_space_release(struct lull_space *s)
{
	lull_vec_release(&s->mappings);
}

void lull_space_clear(struct lull_space *s)
{
	s->mappings.n = 0;
}

void lull_space_copy(struct lull_space *to, const struct lull_space *from)
{
	lull_vec_add(&to->mappings, from->mappings.at, from->mappings.n);
}

/* Index of the first mapping that ends after the address. */
static size_t first_behind(const struct lull_space *s, u64 addr)
{
	return lull_vec_upper(&s->mappings, offsetof(struct lull_mapping, end), addr);
}

static void insert(struct lull_space *s, size_t ix, const struct lull_mapping *m)
{
	struct lull_mapping *all;

	lull_vec_push(&s->mappings);
	all = s->mappings.at;
	memmove(all + ix + 1, all + ix, (s->mappings.n - 1 - ix) * sizeof(*all));
	all[ix] = *m;
}

void lull_space_unmap(struct lull_space *s, u64 start, u64 end)
{
	struct lull_mapping *m = s->mappings.at;
	size_t first, last;

	if (end <= start)
		return;
	first = first_behind(s, start);
	if (first < s->mappings.n && m[first].start < start) {
		struct lull_mapping tail = m[first];

		m[first++].end = start;
		if (tail.end > end) {
			tail.start = end;
			insert(s, first, &tail);
			return;
		}
	}
	for (last = first; last < s->mappings.n && m[last].end <= end; last++)
		;
	if (last > first)
		memmove(m + first, m + last, (s->mappings.n - last) * sizeof(*m));
	s->mappings.n -= last - first;
	if (first < s->mappings.n && m[first].start < end)
		m[first].start = end;
}

/* Run-time address minus header address, for a mapping of which we know the file offset. */
static u64 bias_of(const struct lull_mmap *m, const struct lull_elf *elf)
{
	const struct lull_elf_segment *seg = elf ? lull_elf_find_segment(elf, m->file_off) : NULL;

	if (seg)
		return m->start - m->file_off + seg->file_off - seg->vaddr;
	return m->start - m->file_off;
}

void lull_space_map(struct lull_space *s, const struct lull_mmap *m)
{
	struct lull_elf_name name = { .path = m->path, .build_id = m->build_id, .pid = s->pid };
	struct lull_mapping new = { .start = m->start, .end = m->end };

	if (m->end <= m->start)
		return;
	new.file_ix = lull_files_add(s->files, &name);
	new.bias = m->has_bias ? m->bias : bias_of(m, lull_files_get(s->files, new.file_ix)->elf);
	lull_space_unmap(s, m->start, m->end);
	insert(s, first_behind(s, m->start), &new);
}

int lull_space_read_maps(struct lull_space *s, const char *path, struct lull_err *err)
{
	FILE *maps = fopen(path, "re");
	char line[8192];

	if (!maps)
		return lull_fail_errno(err, "opening %s", path);
	while (fgets(line, sizeof(line), maps)) {
		struct lull_mmap m = { 0 };
		char rights[5];
		int path_at = 0;

		if (sscanf(line, "%" SCNx64 "-%" SCNx64 " %4s %" SCNx64 " %*s %*s %n", &m.start,
			   &m.end, rights, &m.file_off, &path_at) < 4 ||
		    !path_at)
			continue;
		line[strcspn(line, "\n")] = '\0';
		m.path = line + path_at;
		if (rights[2] == 'x')
			lull_space_map(s, &m);
	}
	fclose(maps);
	return LULL_OK;
}

const struct lull_mapping *lull_space_find(const struct lull_space *s, u64 addr)
{
	const struct lull_mapping *m = s->mappings.at;
	size_t ix = first_behind(s, addr);

	return ix < s->mappings.n && m[ix].start <= addr ? &m[ix] : NULL;
}

struct lull_pc lull_space_pc(const struct lull_space *s, u64 addr, bool is_return)
{
	u64 inside = addr - (is_return && addr);
	const struct lull_mapping *m = lull_space_find(s, inside);

	if (m && m->file_ix != LULL_FILE_NONE)
		return (struct lull_pc){ addr, inside - m->bias, m->file_ix, LULL_PC_NATIVE };
	return (struct lull_pc){ addr, inside, LULL_FILE_NONE,
				 addr >= KERNEL_START ? LULL_PC_KERNEL : LULL_PC_JIT };
}
