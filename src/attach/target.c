/*
 * target - what can be known of a process before it is stopped, and why it cannot be entered.
 *
 * Functions are looked up in the memory of the process, not in files: files may be in another mount
 * namespace, or have been replaced by an upgrade.
 */
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include "attach/attach_int.h"
#include "base/file.h"
#include "base/loader.h"
#include "base/str.h"

bool lull_attach_read(pid_t pid, u64 addr, void *to, size_t n_bytes)
{
	struct iovec local = { to, n_bytes }, remote = { (void *)addr, n_bytes };

	return process_vm_readv(pid, &local, 1, &remote, 1, 0) == (ssize_t)n_bytes;
}

bool lull_attach_status(pid_t pid, const char *key, char *to, size_t room)
{
	struct lull_str text = LULL_STR_INIT;
	char path[64], find[64];
	const char *at = NULL;

	snprintf(path, sizeof(path), "/proc/%d/status", (int)pid);
	snprintf(find, sizeof(find), "\n%s:\t", key);
	*to = '\0';
	if (lull_file_read(path, &text))
		at = strstr(text.at, find);
	if (at) {
		at += strlen(find);
		snprintf(to, room, "%.*s", (int)strcspn(at, "\n"), at);
	}
	lull_str_release(&text);
	return at != NULL;
}

/* Where the functions lie differs from one program to the next, and from one start to the next. */
bool lull_attach_is_same(const struct lull_attach_target *t)
{
	const u64 at[] = { t->calls.mmap, t->calls.sigreturn };
	u8 code[sizeof(t->code[0])];

	for (size_t i = 0; i < LULL_COUNT_OF(at); i++)
		if (!lull_attach_read(t->pid, at[i], code, sizeof(code)) ||
		    memcmp(code, t->code[i], sizeof(code)) != 0)
			return false;
	return true;
}

/* A mapped file of the process, with what its dynamic section says. */
struct module {
	u64 start, end; /* of all its segments */
	u64 first;	/* the last mapping of the file's beginning, while `start` is not known */
	u64 last_end;	/* of the last mapping of the file */
	bool is_whole;	/* what follows is another mapping of the same file */
	u64 bias;
	u64 symbols, strings, hash, versions;
};

static u64 pointer_of(const struct module *m, u64 value)
{
	return value >= m->bias ? value : m->bias + value;
}

static bool read_dynamic(pid_t pid, struct module *m, u64 addr)
{
	for (u32 i = 0; i < 256; i++) {
		Elf64_Dyn d;

		if (!lull_attach_read(pid, addr + i * sizeof(d), &d, sizeof(d)) ||
		    d.d_tag == DT_NULL)
			break;
		if (d.d_tag == DT_SYMTAB)
			m->symbols = pointer_of(m, d.d_un.d_ptr);
		else if (d.d_tag == DT_STRTAB)
			m->strings = pointer_of(m, d.d_un.d_ptr);
		else if (d.d_tag == DT_GNU_HASH)
			m->hash = pointer_of(m, d.d_un.d_ptr);
		else if (d.d_tag == DT_VERSYM)
			m->versions = pointer_of(m, d.d_un.d_ptr);
	}
	return m->symbols && m->strings && m->hash;
}

/* Read the head of a file that begins at m->start. */
static bool read_module(pid_t pid, struct module *m)
{
	Elf64_Ehdr head;
	u64 dynamic = 0;
	bool has_bias = false;

	if (!lull_attach_read(pid, m->start, &head, sizeof(head)) ||
	    memcmp(head.e_ident, ELFMAG, SELFMAG) != 0 || head.e_phentsize != sizeof(Elf64_Phdr))
		return false;
	for (u32 i = 0; i < head.e_phnum; i++) {
		Elf64_Phdr p;

		if (!lull_attach_read(pid, m->start + head.e_phoff + i * sizeof(p), &p, sizeof(p)))
			return false;
		if (p.p_type == PT_LOAD && !has_bias) {
			m->bias = m->start - (p.p_vaddr & ~(u64)0xfff);
			has_bias = true;
		} else if (p.p_type == PT_DYNAMIC) {
			dynamic = p.p_vaddr;
		}
	}
	return dynamic && read_dynamic(pid, m, m->bias + dynamic);
}

static u32 gnu_hash(const char *name)
{
	u32 h = 5381;

	for (const u8 *p = (const u8 *)name; *p; p++)
		h = h * 33 + *p;
	return h;
}

/* The symbol at this index if it is that name's default version. */
static bool is_symbol(pid_t pid, const struct module *m, u32 ix, const char *name, Elf64_Sym *sym)
{
	char found[64] = "";
	u16 version = 0;
	size_t n = strlen(name) + 1;

	if (!lull_attach_read(pid, m->symbols + ix * sizeof(*sym), sym, sizeof(*sym)) ||
	    sym->st_shndx == SHN_UNDEF || n > sizeof(found) ||
	    !lull_attach_read(pid, m->strings + sym->st_name, found, n) ||
	    memcmp(found, name, n) != 0)
		return false;
	if (m->versions)
		lull_attach_read(pid, m->versions + ix * sizeof(version), &version,
				 sizeof(version));
	return !(version & 0x8000);
}

/* The function of this name: where it is and how long; false if the file does not define it. */
static bool find_symbol(pid_t pid, const struct module *m, const char *name,
			struct lull_attach_span *span)
{
	u32 head[4], ix, h = gnu_hash(name), word;
	u64 buckets, chain;
	Elf64_Sym sym;

	if (!m->hash || !lull_attach_read(pid, m->hash, head, sizeof(head)) || !head[0])
		return false;
	buckets = m->hash + sizeof(head) + (u64)head[2] * 8;
	chain = buckets + (u64)head[0] * 4;
	if (!lull_attach_read(pid, buckets + (u64)(h % head[0]) * 4, &ix, 4) || ix < head[1])
		return false;
	for (;; ix++) {
		if (!lull_attach_read(pid, chain + (u64)(ix - head[1]) * 4, &word, 4))
			return false;
		if ((word | 1) == (h | 1) && is_symbol(pid, m, ix, name, &sym)) {
			span->start = m->bias + sym.st_value;
			span->end = span->start + (sym.st_size ? sym.st_size : 1);
			return true;
		}
		if (word & 1)
			return false;
	}
}

static u64 find_function(pid_t pid, const struct module *m, const char *name)
{
	struct lull_attach_span span;

	return m->hash && find_symbol(pid, m, name, &span) ? span.start : 0;
}

/* What is being looked for in the list of mappings. */
struct scan {
	struct lull_attach_target *t;
	struct module libc, pthread, dl, loader, exe, vdso;
	bool has_musl;
};

static const char *base_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

static void add_unsafe(struct lull_attach_target *t, u64 start, u64 end)
{
	if (t->n_unsafe < LULL_ATTACH_SPANS)
		t->unsafe[t->n_unsafe++] = (struct lull_attach_span){ start, end };
}

/* Whole files in which no thread may be stopped: allocators. */
static bool is_allocator(const char *name)
{
	return strstr(name, "jemalloc") || strstr(name, "tcmalloc") || strstr(name, "mimalloc") ||
	       strstr(name, "libasan") || strstr(name, "libtsan");
}

static struct module *module_of(struct scan *s, const char *path, const char *exe)
{
	const char *name = base_name(path);

	if (strncmp(name, "libc.so", 7) == 0 || strncmp(name, "libc-2", 6) == 0)
		return &s->libc;
	if (strncmp(name, "libpthread", 10) == 0)
		return &s->pthread;
	if (strncmp(name, "libdl.so", 8) == 0 || strncmp(name, "libdl-2", 7) == 0)
		return &s->dl;
	if (strncmp(name, "ld-linux", 8) == 0 || strncmp(name, "ld-2", 4) == 0)
		return &s->loader;
	if (strcmp(name, "[vdso]") == 0)
		return &s->vdso;
	return strcmp(path, exe) == 0 ? &s->exe : NULL;
}

/*
 * The loader maps a file from its beginning, with code; a mapping without code is data to somebody,
 * such as a symbolizer that reads the file. A file with little in its first segment has the
 * beginning of its code in the same page, so that this page is mapped twice in a row.
 */
static void scan_module(struct module *m, u64 start, u64 end, bool is_code, u64 off)
{
	bool is_second = is_code && m->first && start == m->last_end &&
			 start - m->first == (u64)sysconf(_SC_PAGESIZE);

	if (off == 0 && m->start)
		m->is_whole = true;
	else if (off == 0 && !is_second)
		m->first = start;
	if (is_code && !m->start)
		m->start = m->first;
	if (m->start && !m->is_whole)
		m->end = end;
	m->last_end = end;
}

static void scan_line(struct scan *s, const char *line, const char *exe)
{
	char path[512] = "", access[8];
	u64 start, end, off;
	struct module *m;

	if (sscanf(line, "%" SCNx64 "-%" SCNx64 " %7s %" SCNx64 " %*s %*s %511[^\n]", &start, &end,
		   access, &off, path) < 4)
		return;
	if (strncmp(base_name(path), "ld-musl", 7) == 0 || strstr(path, "/libc.musl"))
		s->has_musl = true;
	if (access[2] == 'x' && is_allocator(base_name(path)))
		add_unsafe(s->t, start, end);
	m = module_of(s, path, exe);
	if (m)
		scan_module(m, start, end, access[2] == 'x', off);
}

static int scan_maps(struct scan *s, struct lull_err *err)
{
	pid_t pid = s->t->pid;
	char path[64], exe[512], *line = NULL;
	size_t room = 0;
	ssize_t n;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/exe", (int)pid);
	n = readlink(path, exe, sizeof(exe) - 1);
	exe[n > 0 ? n : 0] = '\0';
	snprintf(path, sizeof(path), "/proc/%d/maps", (int)pid);
	f = fopen(path, "re");
	if (!f)
		return lull_fail(err, LULL_E_IO, "process %d: its memory cannot be read", (int)pid);
	while (getline(&line, &room, f) > 0)
		scan_line(s, line, exe);
	free(line);
	fclose(f);
	/* Programs that moved their code to large pages have no code of that file any more. */
	if (!s->exe.start)
		s->exe.start = s->exe.first;
	return 0;
}

/* Where rt_sigreturn() is called, with nothing before and after that we need. */
static u64 find_sigreturn(pid_t pid, const struct module *m)
{
#ifdef __x86_64__
	static const u8 code[] = { 0x48, 0xc7, 0xc0, 0x0f, 0, 0, 0, 0x0f, 0x05 };
#else
	static const u8 code[] = { 0x68, 0x11, 0x80, 0xd2, 0x01, 0, 0, 0xd4 };
#endif
	u8 *part = malloc(65536);
	u64 found = 0;

	for (u64 at = m->start, n; part && m->start && at < m->end && !found; at += n) {
		u64 room = m->end - at;
		u8 *hit;

		/* Segments may have gaps: then page by page. */
		n = room < 65536 ? room : 65536;
		while (n > 4096 && !lull_attach_read(pid, at, part, n))
			n /= 2;
		if (n <= 4096 && !lull_attach_read(pid, at, part, n))
			continue;
		hit = memmem(part, n, code, sizeof(code));
		if (hit)
			found = at + (u64)(hit - part);
		else if (n > 4096)
			n -= sizeof(code); /* it may lie across */
	}
	free(part);
	return found;
}

/*
 * Functions of the C library in which a thread may hold locks that we need, or be half a process.
 */
static const char *const unsafe_names[] = {
	"malloc",
	"free",
	"calloc",
	"realloc",
	"reallocarray",
	"memalign",
	"aligned_alloc",
	"posix_memalign",
	"valloc",
	"pvalloc",
	"malloc_trim",
	"mallinfo2",
	"malloc_info",
	"fork",
	"_Fork",
	"vfork",
	"posix_spawn",
	"posix_spawnp",
	"system",
	"popen",
	"pthread_create",
	"pthread_exit",
	"pthread_join",
	"pthread_detach",
	"exit",
	"_exit",
	"quick_exit",
	"dlopen",
	"dlclose",
	"dlsym",
	"dlvsym",
	"dlmopen",
	"dladdr",
	"dl_iterate_phdr",
	"clone",
	"__libc_fork",
	"pthread_getattr_np",
	"setuid",
	"setgid",
	"pthread_cancel",
	"execve",
	"pthread_atfork",
	"__register_atfork",
	"__lll_lock_wait_private",
	"__lll_lock_wait",
};

static const char *const allocator_names[] = { "malloc",  "free",     "calloc",
					       "realloc", "memalign", "posix_memalign" };

static void find_unsafe(struct scan *s)
{
	struct lull_attach_target *t = s->t;
	const struct module *libcs[] = { &s->libc, &s->pthread, &s->dl };
	struct lull_attach_span span;

	if (s->loader.start)
		add_unsafe(t, s->loader.start, s->loader.end);
	for (size_t k = 0; k < LULL_COUNT_OF(libcs); k++)
		for (size_t i = 0; i < LULL_COUNT_OF(unsafe_names); i++)
			if (find_symbol(t->pid, libcs[k], unsafe_names[i], &span))
				add_unsafe(t, span.start, span.end);
	for (size_t i = 0; i < LULL_COUNT_OF(allocator_names); i++)
		if (find_symbol(t->pid, &s->exe, allocator_names[i], &span)) {
			t->has_own_malloc = true;
			add_unsafe(t, span.start, span.end);
		}
}

static u64 find_any(struct scan *s, const char *name)
{
	u64 at = find_function(s->t->pid, &s->libc, name);

	if (!at)
		at = find_function(s->t->pid, &s->pthread, name);
	return at ? at : find_function(s->t->pid, &s->dl, name);
}

static int find_calls(struct scan *s, struct lull_err *err)
{
	struct lull_attach_calls *c = &s->t->calls;
	struct module *modules[] = { &s->libc, &s->pthread, &s->dl, &s->exe, &s->vdso };

	for (size_t i = 0; i < LULL_COUNT_OF(modules); i++)
		if (modules[i]->start)
			read_module(s->t->pid, modules[i]);
	s->t->libc = (struct lull_attach_span){ s->libc.start, s->libc.end };
	c->mmap = find_any(s, "mmap");
	c->mprotect = find_any(s, "mprotect");
	c->munmap = find_any(s, "munmap");
	c->pthread_create = find_any(s, "pthread_create");
	c->pthread_detach = find_any(s, "pthread_detach");
	c->dlopen = find_any(s, "dlopen");
	c->dlsym = find_any(s, "dlsym");
	c->dlerror = find_any(s, "dlerror");
	c->sigreturn = find_sigreturn(s->t->pid, &s->vdso);
	if (!c->sigreturn)
		c->sigreturn = find_sigreturn(s->t->pid, &s->libc);
	if (!c->mmap || !c->mprotect || !c->pthread_create || !c->pthread_detach || !c->dlopen ||
	    !c->dlsym || !c->dlerror || !c->sigreturn)
		return lull_fail(err, LULL_E_UNSUPPORTED,
				 "process %d (%s): its C library is older than glibc 2.34 and "
				 "has no threads or no dlopen(); start it with `lull profile`",
				 (int)s->t->pid, s->t->name);
	lull_attach_read(s->t->pid, c->mmap, s->t->code[0], sizeof(s->t->code[0]));
	lull_attach_read(s->t->pid, c->sigreturn, s->t->code[1], sizeof(s->t->code[1]));
	find_unsafe(s);
	return 0;
}

static int refuse(const struct lull_attach_target *t, const char *why, struct lull_err *err)
{
	return lull_fail(err, LULL_E_UNSUPPORTED, "process %d (%s) %s", (int)t->pid, t->name, why);
}

static int check_state(struct lull_attach_target *t, struct lull_err *err)
{
	char text[256], number[32];

	if (!lull_attach_status(t->pid, "State", text, sizeof(text)))
		return lull_fail(err, LULL_E_NOT_FOUND, "there is no process %d", (int)t->pid);
	snprintf(t->name, sizeof(t->name), "%d", (int)t->pid);
	if (text[0] == 'Z' && lull_attach_status(t->pid, "Threads", number, sizeof(number)) &&
	    atoi(number) > 1)
		return lull_fail(err, LULL_E_UNSUPPORTED,
				 "process %d: its main thread has ended while others go on; lull "
				 "cannot attach to such a program; start it with `lull profile`",
				 (int)t->pid);
	if (text[0] == 'Z' || text[0] == 'X')
		return lull_fail(err, LULL_E_NOT_FOUND, "process %d has ended", (int)t->pid);
	if (lull_attach_status(t->pid, "Tgid", text, sizeof(text)) && atoi(text) != t->pid)
		return lull_fail(err, LULL_E_NOT_FOUND,
				 "%d is a thread of process %d; attach to that", (int)t->pid,
				 atoi(text));
	return 0;
}

static void read_name(struct lull_attach_target *t)
{
	char path[64];
	struct lull_str text = LULL_STR_INIT;

	snprintf(path, sizeof(path), "/proc/%d/comm", (int)t->pid);
	if (lull_file_read(path, &text) && text.len)
		snprintf(t->name, sizeof(t->name), "%.*s", (int)strcspn(text.at, "\n"), text.at);
	lull_str_release(&text);
}

/*
 * The process whose memory it has, 0 if that is its own. The child of a vfork() is such a one until
 * it executes a program: a thread that it starts is one of its parent's.
 */
static pid_t lender(pid_t pid)
{
	enum { VM = 1 /* KCMP_VM */ };
	char text[32];
	pid_t parent;

	if (!lull_attach_status(pid, "PPid", text, sizeof(text)))
		return 0;
	parent = (pid_t)atoi(text);
	return parent > 0 && syscall(SYS_kcmp, (long)pid, (long)parent, (long)VM, 0L, 0L) == 0
		       ? parent
		       : 0;
}

/* What speaks against it although we may. */
static int check_kind(struct lull_attach_target *t, struct lull_err *err)
{
	char text[256], why[96];

	if (t->pid == getpid())
		return refuse(t, "is lull itself", err);
	if (!lull_attach_status(t->pid, "VmSize", text, sizeof(text)))
		return refuse(t, "is a thread of the kernel, not a program", err);
	if (lull_attach_status(t->pid, "TracerPid", text, sizeof(text)) && atoi(text)) {
		snprintf(why, sizeof(why),
			 "is traced by process %d (a debugger, strace); end that "
			 "first",
			 atoi(text));
		return refuse(t, why, err);
	}
	if (lull_attach_status(t->pid, "State", text, sizeof(text)) && text[0] == 'T')
		return refuse(t, "is stopped; let it go on first: kill -CONT", err);
	if (lender(t->pid)) {
		snprintf(why, sizeof(why),
			 "has the memory of process %d, which started it (vfork); attach to that",
			 (int)lender(t->pid));
		return refuse(t, why, err);
	}
	if (lull_attach_is_strict(t->pid))
		return refuse(
			t,
			"has forbidden itself all system calls but a few (seccomp); nothing of "
			"it can be recorded from then on",
			err);
	t->has_filters = lull_attach_has_filters(t->pid);
	if (lull_attach_status(t->pid, "x86_Thread_features", text, sizeof(text)) &&
	    strstr(text, "shstk"))
		return refuse(t, "has a shadow stack, which no call from outside can pass", err);
	return 0;
}

/* The file itself: its processor. */
static int check_file(const struct lull_attach_target *t, struct lull_err *err)
{
	Elf64_Ehdr head;
	char path[64];
	int fd;
	ssize_t n;

	snprintf(path, sizeof(path), "/proc/%d/exe", (int)t->pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	n = fd < 0 ? 0 : read(fd, &head, sizeof(head));
	if (fd >= 0)
		close(fd);
	if (n == (ssize_t)sizeof(head) &&
	    (head.e_ident[EI_CLASS] != ELFCLASS64 || head.e_machine != LULL_LOADER_MACHINE))
		return refuse(t, "is a program of another processor than this lull", err);
	return 0;
}

static bool is_other_namespace(pid_t pid)
{
	struct stat theirs, ours;
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/ns/mnt", (int)pid);
	if (stat(path, &theirs) != 0 || stat("/proc/self/ns/mnt", &ours) != 0)
		return false;
	if (theirs.st_ino != ours.st_ino)
		return true;
	snprintf(path, sizeof(path), "/proc/%d/root/.", (int)pid);
	return stat(path, &theirs) == 0 && stat("/", &ours) == 0 &&
	       (theirs.st_ino != ours.st_ino || theirs.st_dev != ours.st_dev);
}

static int look(struct scan *s, struct lull_attach_target *t, pid_t pid, struct lull_err *err)
{
	int rc;

	*s = (struct scan){ .t = t };
	memset(t, 0, sizeof(*t));
	t->pid = pid;
	rc = check_state(t, err);
	if (rc)
		return rc;
	read_name(t);
	rc = check_kind(t, err);
	if (!rc)
		rc = lull_attach_check_rights(t, err);
	if (!rc)
		rc = check_file(t, err);
	if (!rc && lull_attach_is_occupied(pid))
		rc = refuse(t, "is recorded by lull already; `lull sessions` says where", err);
	return rc ? rc : scan_maps(s, err);
}

/* How long a program may take to load its C library. */
#define START_TRIES 1000
#define BARE_TRIES  3
#define START_US    10000

/* Right after an exec() only the program and its loader are there. */
static bool is_starting(const struct scan *s)
{
	return s->loader.start && !s->libc.start && !s->has_musl;
}

int lull_attach_inspect(struct lull_attach_target *t, pid_t pid, struct lull_err *err)
{
	struct scan s;
	int rc = look(&s, t, pid, err);
	u8 byte;

	/* In the middle of an exec() even the loader may not be there. */
	for (int i = 0;
	     !rc && (is_starting(&s) || (i < BARE_TRIES && !s.libc.start)) && i < START_TRIES;
	     i++) {
		usleep(START_US);
		rc = look(&s, t, pid, err);
	}
	if (rc)
		return rc;
	if (s.has_musl)
		return refuse(t, "belongs to musl; the agent needs glibc", err);
	if (is_starting(&s))
		return refuse(t, "has not loaded the C library yet; try again", err);
	if (!s.libc.start)
		return refuse(t, "is linked statically: no library can be loaded into it", err);
	t->is_other_mounts = is_other_namespace(pid);
	rc = find_calls(&s, err);
	/* Then it was looked for in what is not there any more. */
	if (rc && !lull_attach_read(pid, s.libc.start, &byte, 1))
		return refuse(t, "has begun another program meanwhile; try again", err);
	return rc;
}
