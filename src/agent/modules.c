/*
 * modules - tell the collector which files are mapped where, so that it can name addresses later.
 *
 * dl_iterate_phdr() walks what the dynamic loader knows: the program, its libraries, everything
 * dlopened so far. It is called at the start of an image and after each dlopen; the loader's own
 * counter of loads tells whether anything is new.
 */
#include "agent/agent.h"

#include <link.h>
#include <string.h>

#include "agent/ring.h"
#include "agent/sys.h"

#define BUILD_ID_MAX 64u

struct scan {
	u64 n_adds; /* loads the loader had done when we looked last */
	u64 n_subs;
	bool is_first; /* first call of this walk: compare the counters */
};

static u64 known_adds, known_subs;

/*
 * Start addresses that were reported, open addressing. A program with more libraries than this has
 * the last of them reported with each scan, which is only wasteful.
 */
#define N_KNOWN 2048u
static u64 known[N_KNOWN];

/* True the first time it sees an address. */
static bool is_news(u64 start_addr)
{
	for (u32 i = 0; i < N_KNOWN; i++) {
		u64 *at = &known[((start_addr >> 12) + i) % N_KNOWN];

		if (*at == start_addr)
			return false;
		if (!*at) {
			*at = start_addr;
			return true;
		}
	}
	return true;
}

static u32 round4(u32 n)
{
	return (n + 3) & ~3u;
}

/* The GNU build id among the notes of one segment. */
static const u8 *find_build_id(const u8 *notes, size_t size_bytes, u32 *len)
{
	size_t off = 0;

	while (off + sizeof(ElfW(Nhdr)) <= size_bytes) {
		const ElfW(Nhdr) *n = (const void *)(notes + off);
		const u8 *name = notes + off + sizeof(*n);
		const u8 *desc = name + round4(n->n_namesz);

		if (n->n_type == NT_GNU_BUILD_ID && n->n_namesz == 4 &&
		    memcmp(name, "GNU", 4) == 0) {
			*len = n->n_descsz < BUILD_ID_MAX ? n->n_descsz : BUILD_ID_MAX;
			return desc;
		}
		off += sizeof(*n) + round4(n->n_namesz) + round4(n->n_descsz);
	}
	return NULL;
}

static void emit(u64 start_addr, u64 end_addr, u64 bias, const char *path, const u8 *id, u32 id_len)
{
	struct lull_thread *t = lull_thread();
	struct lull_wire_module *e;
	u32 path_len = (u32)strnlen(path, 4096);
	u32 size_bytes = (u32)sizeof(*e) + lull_round8(id_len + path_len);

	if (!t)
		return;
	e = lull_reserve(t, LULL_EVENT_module, size_bytes);
	if (!e)
		return;
	e->head.a = path_len;
	e->start_addr = start_addr;
	e->end_addr = end_addr;
	e->bias = bias;
	e->build_id_bytes = id_len;
	e->pad = 0;
	if (id_len)
		memcpy(e + 1, id, id_len);
	memcpy((u8 *)(e + 1) + id_len, path, path_len);
	lull_commit(t, size_bytes);
}

static int visit(struct dl_phdr_info *info, size_t size, void *arg)
{
	struct scan *scan = arg;
	u64 start_addr = UINT64_MAX, end_addr = 0;
	const char *path = info->dlpi_name;
	const u8 *id = NULL;
	u32 id_len = 0;

	(void)size;
	if (scan->is_first && info->dlpi_adds == known_adds && info->dlpi_subs == known_subs)
		return 1;
	/* Something was unloaded: an address may now belong to another file. */
	if (scan->is_first && info->dlpi_subs != known_subs)
		memset(known, 0, sizeof(known));
	scan->is_first = false;
	scan->n_adds = info->dlpi_adds;
	scan->n_subs = info->dlpi_subs;
	for (int i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *p = &info->dlpi_phdr[i];
		u64 at = info->dlpi_addr + p->p_vaddr;

		if (p->p_type == PT_LOAD && (p->p_flags & PF_X)) {
			start_addr = at < start_addr ? at : start_addr;
			end_addr = at + p->p_memsz > end_addr ? at + p->p_memsz : end_addr;
		} else if (p->p_type == PT_NOTE && !id) {
			id = find_build_id((const u8 *)at, p->p_memsz, &id_len);
		}
	}
	if (!path || !*path)
		path = lull_agent.image->exe; /* the program itself has no name here */
	if (end_addr && is_news(start_addr))
		emit(start_addr, end_addr, info->dlpi_addr, path, id, id_len);
	return 0;
}

void lull_modules_forget(void)
{
	known_adds = known_subs = 0;
	memset(known, 0, sizeof(known));
}

void lull_modules_scan(void)
{
	struct scan scan = { .is_first = true };
	int saved = errno;

	if (!lull_agent.has_session || !lull_thread())
		return;
	dl_iterate_phdr(visit, &scan);
	if (!scan.is_first) {
		known_adds = scan.n_adds;
		known_subs = scan.n_subs;
	}
	errno = saved;
}
