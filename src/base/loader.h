/*
 * loader - which programs can load the agent, and what they need for that; inline.
 *
 * The agent belongs to glibc. A program of another C library (musl) or processor has another
 * loader, which stops or complains when it is to preload the agent. So the file is read as the
 * kernel will read it: the loader it names (PT_INTERP), after the `#!` lines of scripts.
 *
 * Who asks:  the recorder before it starts the program, the agent before each exec: maybe in the
 *            child of a vfork, maybe on a small stack. 1.5 KiB of stack, no memory, no locks.
 * Calls:     syscall(2) alone, since the agent interposes the others. They set errno.
 * Trouble:   a file that cannot be read or understood counts as one that can load the agent.
 */
#ifndef LULL_BASE_LOADER_H
#define LULL_BASE_LOADER_H

#include <elf.h>
#include <fcntl.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/types.h"

#ifdef __x86_64__
#define LULL_LOADER_NAME    "ld-linux-x86-64.so.2"
#define LULL_LOADER_MACHINE EM_X86_64
#else
#define LULL_LOADER_NAME    "ld-linux-aarch64.so.1"
#define LULL_LOADER_MACHINE EM_AARCH64
#endif

#define LULL_LOADER_HEAD    512 /* bytes of a file: a dozen lines of a script, 8 program headers */
#define LULL_LOADER_SCRIPTS 5	/* so many `#!` the kernel follows */

/* What stands between the files of LD_PRELOAD. */
#define LULL_PRELOAD_GAPS ": "

/* The head of a file, or a name found in it. */
struct lull_loader_head {
	_Alignas(Elf64_Ehdr) char at[LULL_LOADER_HEAD + 1];
};

/* Open the file so that it neither waits nor does anything; -1 if that does not work. */
static inline int lull_loader_open(int dir, const char *path)
{
	return (int)syscall(SYS_openat, dir, path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY, 0);
}

/*
 * The file that execvp() would take: `file` itself, or a path in `room`; NULL if there is none.
 * `list` is PATH or NULL.
 */
static inline const char *lull_loader_find(const char *file, const char *list,
					   char room[LULL_LOADER_HEAD])
{
	size_t n_file = strlen(file) + 1;

	if (strchr(file, '/'))
		return file;
	for (const char *at = list ? list : "/bin:/usr/bin";; at++) {
		size_t n = strcspn(at, ":");

		if (n + 1 + n_file <= LULL_LOADER_HEAD) {
			memcpy(room, at, n);
			room[n] = '/';
			memcpy(room + n + (n > 0), file, n_file); /* "" is the working folder */
			if (syscall(SYS_faccessat, AT_FDCWD, room, X_OK) == 0)
				return room;
		}
		at += n;
		if (!*at)
			return NULL;
	}
}

/* The same, open; -1 if there is none. */
static inline int lull_loader_search(const char *file, const char *list)
{
	char room[LULL_LOADER_HEAD];
	const char *path = lull_loader_find(file, list, room);

	return path ? lull_loader_open(AT_FDCWD, path) : -1;
}

/* True if a head of `n` bytes is that of a script; it then holds the interpreter's path. */
static inline bool lull_loader_is_script(struct lull_loader_head *head, size_t n)
{
	const char *from = head->at + 2;
	size_t len;

	head->at[n] = '\0';
	if (strncmp(head->at, "#!", 2) != 0)
		return false;
	from += strspn(from, " \t");
	len = strcspn(from, " \t\n");
	memmove(head->at, from, len);
	head->at[len] = '\0';
	return len > 0;
}

/* True if the loader that this ELF file names is ours, or it names none. */
static inline bool lull_loader_is_ours(int fd, struct lull_loader_head *head, size_t n)
{
	const Elf64_Ehdr *elf = (const Elf64_Ehdr *)head->at;
	const char *name;
	Elf64_Phdr part;
	long got = 0;

	if (elf->e_ident[EI_CLASS] != ELFCLASS64 || elf->e_machine != LULL_LOADER_MACHINE)
		return false;
	if (elf->e_phentsize != sizeof(part) || elf->e_phoff > n)
		return true;
	for (size_t i = 0; i < elf->e_phnum && elf->e_phoff + (i + 1) * sizeof(part) <= n; i++) {
		memcpy(&part, head->at + elf->e_phoff + i * sizeof(part), sizeof(part));
		if (part.p_type != PT_INTERP)
			continue;
		if (part.p_filesz < LULL_LOADER_HEAD)
			got = syscall(SYS_pread64, fd, head->at, part.p_filesz, part.p_offset);
		if (got <= 0)
			return true;
		head->at[got] = '\0';
		name = strrchr(head->at, '/');
		return strcmp(name ? name + 1 : head->at, LULL_LOADER_NAME) == 0;
	}
	return true;
}

/*
 * False if the program in this open file would run with another loader than ours. `is_final`: the
 * answer is about this file alone, and not about the one that a script names.
 */
static inline bool lull_loader_judge(int fd, bool *is_final)
{
	struct lull_loader_head head;
	bool is_script = true, fits = true;
	int at = fd;

	*is_final = false;
	for (int i = 0; is_script && at >= 0; i++) {
		long n = syscall(SYS_pread64, at, head.at, LULL_LOADER_HEAD, 0L);

		is_script = n > 2 && lull_loader_is_script(&head, (size_t)n);
		if (!is_script && n >= (long)sizeof(Elf64_Ehdr) &&
		    memcmp(head.at, ELFMAG, SELFMAG) == 0) {
			fits = lull_loader_is_ours(at, &head, (size_t)n);
			*is_final = at == fd;
		}
		if (at != fd)
			syscall(SYS_close, at);
		at = is_script && i < LULL_LOADER_SCRIPTS ? lull_loader_open(AT_FDCWD, head.at)
							  : -1;
	}
	return fits;
}

static inline bool lull_loader_fits(int fd)
{
	bool is_final;

	return lull_loader_judge(fd, &is_final);
}

#endif
