/*
 * modules - report to the recorder which files are mapped where, so that it can symbolise
 * addresses.
 *
 * A walk over the dynamic loader's list gives the program, its libraries and everything dlopened so
 * far. It is done at the start of an image and after each dlopen; the loader's own counter of loads
 * shows whether anything is new. The result is kept, so that a forked child can report it without
 * calling the loader, whose lock may be held by a thread that does not exist in the child.
 */
#include "agent/core/agent.h"

#include <link.h>
#include <string.h>

#include "agent/core/arena.h"
#include "agent/core/loaded.h"
#include "agent/core/ring.h"
#include "agent/core/sys.h"

#define BUILD_ID_MAX   64u
#define PATH_MAX_BYTES 4096u

/* A file as it was told. Changed under the loader's lock only. */
struct module {
	u64 start_addr, end_addr, bias;
	u32 seen; /* number of the last walk that met it */
	u32 id_len, path_len;
	u32 room;     /* of bytes[] */
	char bytes[]; /* build id, path */
};

/*
 * Files by their start address, open addressing. A program with more libraries than this has the
 * last of them reported with each walk, which is only wasteful. Most programs are short and have
 * few: they do with the first places, in a page that is written anyway.
 */
#define N_KNOWN 2048u
#define N_FIRST 64u

static LULL_EARLY struct {
	u64 n_adds, n_subs; /* loads and unloads the loader had done at the last walk */
	u32 n_walks;	    /* with the one that is on */
	u32 n_used;	    /* places that are taken */
	bool is_large;
	struct module *first[N_FIRST];
} modules;

static struct module *all_known[N_KNOWN]; /* once it is large */

static struct module **places(u32 *n)
{
	*n = modules.is_large ? N_KNOWN : N_FIRST;
	return modules.is_large ? all_known : modules.first;
}

/* Where the file of this start address belongs; NULL if there is no room. */
static struct module **place_of(u64 start_addr)
{
	struct module **gone = NULL, **known;
	u32 n;

	known = places(&n);
	for (u32 i = 0; i < n; i++) {
		struct module **at = &known[((start_addr >> 12) + i) % n];

		if (*at && (*at)->start_addr == start_addr)
			return at;
		if (!*at)
			return gone ? gone : at;
		if (!gone && (*at)->seen + 1 < modules.n_walks)
			gone = at;
	}
	return gone;
}

/* Before the first places are full, go on with all of them. */
static void make_room(void)
{
	if (modules.is_large || modules.n_used < N_FIRST / 2)
		return;
	modules.is_large = true;
	for (u32 i = 0; i < N_FIRST; i++)
		if (modules.first[i])
			*place_of(modules.first[i]->start_addr) = modules.first[i];
}

static bool is_same(const struct module *a, const struct module *b, const u8 *id, const char *path)
{
	return a->end_addr == b->end_addr && a->bias == b->bias && a->id_len == b->id_len &&
	       a->path_len == b->path_len && memcmp(a->bytes, id, a->id_len) == 0 &&
	       memcmp(a->bytes + a->id_len, path, a->path_len) == 0;
}

/* Keep the file; false if the walk before this one met it, too. */
static bool is_news(const struct module *found, const u8 *id, const char *path)
{
	u32 n_bytes = found->id_len + found->path_len;
	struct module **at, *m;

	make_room();
	at = place_of(found->start_addr);
	m = at ? *at : NULL;
	if (m && is_same(m, found, id, path)) {
		bool is_back = m->seen + 1 != modules.n_walks;

		m->seen = modules.n_walks;
		return is_back;
	}
	/* In the place of one that is gone, if that has room for it. */
	if (!m || m->room < n_bytes) {
		u32 room = (n_bytes + 127) & ~127u;

		m = at ? lull_arena_take(sizeof(*m) + room) : NULL;
		if (!m)
			return true;
		m->room = room;
	}
	m->start_addr = found->start_addr;
	m->end_addr = found->end_addr;
	m->bias = found->bias;
	m->seen = modules.n_walks;
	m->id_len = found->id_len;
	m->path_len = found->path_len;
	memcpy(m->bytes, id, m->id_len);
	memcpy(m->bytes + m->id_len, path, m->path_len);
	modules.n_used += !*at;
	*at = m;
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

static void emit(const struct module *m, const u8 *id, const char *path)
{
	struct lull_thread *t = lull_thread();
	struct lull_wire_module *e;
	u32 size_bytes = (u32)sizeof(*e) + lull_round8(m->id_len + m->path_len);

	e = t ? lull_reserve(t, LULL_EVENT_module, size_bytes) : NULL;
	if (!e)
		return;
	e->head.a = m->path_len;
	e->start_addr = m->start_addr;
	e->end_addr = m->end_addr;
	e->bias = m->bias;
	e->build_id_bytes = m->id_len;
	e->pad = 0;
	memcpy(e + 1, id, m->id_len);
	memcpy((u8 *)(e + 1) + m->id_len, path, m->path_len);
	lull_commit(t, size_bytes);
}

/*
 * The loader keeps the path by which it found a file, which may be relative (LD_LIBRARY_PATH). The
 * recorder cannot ask a process that has ended where it stood. Under the loader's lock.
 */
static const char *absolute(const char *path)
{
	static char text[PATH_MAX_BYTES];
	size_t len = strnlen(path, PATH_MAX_BYTES);
	long n;

	if (path[0] == '/' || !strchr(path, '/'))
		return path;
	n = syscall(SYS_getcwd, text, sizeof(text)); /* its length with the NUL */
	if (n < 2 || text[0] != '/' || (size_t)n + len >= sizeof(text))
		return path;
	text[n - 1] = '/';
	memcpy(text + n, path, len + 1);
	return text;
}

static int visit(struct dl_phdr_info *info, size_t size, void *arg)
{
	struct module m = { .start_addr = UINT64_MAX, .bias = info->dlpi_addr };
	const char *path = info->dlpi_name;
	bool *is_first = arg;
	const u8 *id = NULL;

	(void)size;
	if (*is_first) {
		*is_first = false;
		if (info->dlpi_adds == modules.n_adds && info->dlpi_subs == modules.n_subs)
			return 1;
		modules.n_adds = info->dlpi_adds;
		modules.n_subs = info->dlpi_subs;
		modules.n_walks++;
	}
	for (int i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *p = &info->dlpi_phdr[i];
		u64 at = info->dlpi_addr + p->p_vaddr;

		if (p->p_type == PT_LOAD && (p->p_flags & PF_X)) {
			m.start_addr = at < m.start_addr ? at : m.start_addr;
			m.end_addr = at + p->p_memsz > m.end_addr ? at + p->p_memsz : m.end_addr;
		} else if (p->p_type == PT_NOTE && !id) {
			id = find_build_id((const u8 *)at, p->p_memsz, &m.id_len);
		}
	}
	if (!path || !*path)
		path = lull_agent.image->exe; /* the program itself has no name here */
	path = absolute(path);
	m.path_len = (u32)strnlen(path, PATH_MAX_BYTES);
	if (!id)
		id = (const u8 *)"";
	if (m.end_addr && is_news(&m, id, path))
		emit(&m, id, path);
	return 0;
}

void lull_modules_repeat(void)
{
	struct module **known;
	u32 n;

	known = places(&n);
	for (u32 i = 0; i < n; i++) {
		const struct module *m = known[i];

		/* The fork may have interrupted a walk that has not met all of them yet. */
		if (m && m->seen + 1 >= modules.n_walks)
			emit(m, (const u8 *)m->bytes, m->bytes + m->id_len);
	}
}

void lull_modules_again(void)
{
	bool is_first = true;

	modules.n_adds = 0;
	/* A walk in which none was met before: then each is news. */
	modules.n_walks += 2;
	if (lull_agent.has_session && lull_thread())
		lull_loaded_walk(visit, &is_first);
}

void lull_modules_scan(void)
{
	bool is_first = true;
	int saved = errno;

	if (lull_agent.has_session && lull_thread())
		lull_loaded_walk(visit, &is_first);
	errno = saved;
}
