#include "job/team.h"

#include <dlfcn.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

/* Counts of MPI are ints. */
#define MAX_PART (1 << 30)

/* Handles are addresses in one family and numbers in the other. */
typedef void *handle;

struct mpi {
	void *library;
	handle world, byte;
	int (*init)(int *, char ***);
	int (*rank)(handle, int *);
	int (*size)(handle, int *);
	int (*gather)(const void *, int, handle, void *, const int *, const int *, handle, handle);
	int (*finalize)(void);
};

struct family {
	const char *name, *variable, *libraries, *world_symbol, *byte_symbol;
	u64 world, byte;
};

#define FAMILY(name, ...) { #name, __VA_ARGS__ },
static const struct family families[] = {
#include "job/team_mpi.def"
};
#undef FAMILY

/* The family whose launcher started us with others, or NULL. */
static const struct family *find_family(void)
{
	for (size_t i = 0; i < LULL_COUNT_OF(families); i++) {
		const char *n = getenv(families[i].variable);

		if (n && strtol(n, NULL, 10) > 1)
			return &families[i];
	}
	return NULL;
}

static void *load(const struct family *f)
{
	const char *given = getenv("LULL_MPI_LIBRARY"), *at = f->libraries;
	void *library = given ? dlopen(given, RTLD_NOW | RTLD_GLOBAL) : NULL;
	char name[64];

	while (!library && !given && *at) {
		size_t len = strcspn(at, " ");

		snprintf(name, sizeof(name), "%.*s", (int)len, at);
		library = dlopen(name, RTLD_NOW | RTLD_GLOBAL);
		at += len + (at[len] == ' ');
	}
	return library;
}

static bool resolve(struct mpi *m, const struct family *f)
{
	m->world =
		f->world_symbol ? dlsym(m->library, f->world_symbol) : (handle)(uintptr_t)f->world;
	m->byte = f->byte_symbol ? dlsym(m->library, f->byte_symbol) : (handle)(uintptr_t)f->byte;
	*(void **)&m->init = dlsym(m->library, "MPI_Init");
	*(void **)&m->rank = dlsym(m->library, "MPI_Comm_rank");
	*(void **)&m->size = dlsym(m->library, "MPI_Comm_size");
	*(void **)&m->gather = dlsym(m->library, "MPI_Allgatherv");
	*(void **)&m->finalize = dlsym(m->library, "MPI_Finalize");
	return m->world && m->byte && m->init && m->rank && m->size && m->gather && m->finalize;
}

/* MPI can be started once: jobs that are open at the same time share it. */
static struct {
	struct lull_team team;
	u32 n_users;
	bool is_over;
} shared;

static int start(struct lull_team *t, const struct family *f, struct lull_err *err)
{
	struct mpi m = { .library = NULL };
	int rank = 0, size = 1;

	m.library = load(f);
	if (!m.library || !resolve(&m, f))
		return lull_fail(
			err, LULL_E_UNSUPPORTED,
			"started by an MPI launcher (%s is set), but its library cannot be loaded: "
			"set LULL_MPI_LIBRARY to its libmpi.so, or start lull without mpirun",
			f->variable);
	if (m.init(NULL, NULL) || m.rank(m.world, &rank) || m.size(m.world, &size) || rank < 0 ||
	    size < 1)
		return lull_fail(err, LULL_E_UNSUPPORTED, "MPI (%s) could not be started", f->name);
	t->rank = (u32)rank;
	t->size = (u32)size;
	t->mpi = lull_alloc(1, sizeof(m));
	memcpy(t->mpi, &m, sizeof(m));
	return LULL_OK;
}

int lull_team_open(struct lull_team *t, struct lull_err *err)
{
	const struct family *f = find_family();

	*t = (struct lull_team){ .size = 1 };
	if (!f)
		return LULL_OK;
	if (shared.is_over)
		return lull_fail(err, LULL_E_UNSUPPORTED, "MPI was already finalised");
	if (!shared.n_users && start(&shared.team, f, err))
		return err->code;
	shared.n_users++;
	*t = shared.team;
	return LULL_OK;
}

void lull_team_close(struct lull_team *t)
{
	struct mpi *m = t->mpi;

	t->mpi = NULL;
	if (!m || --shared.n_users)
		return;
	m->finalize();
	free(m);
	shared.is_over = true;
}

/* One round: a part of each, at most MAX_PART over all. */
static int round_of(const struct lull_team *t, const void *bytes, u64 len, char *to, int *lens,
		    int *offs)
{
	const struct mpi *m = t->mpi;

	return m->gather(bytes, (int)len, m->byte, to, lens, offs, m->byte, m->world);
}

static int gather_lengths(const struct lull_team *t, u64 len, u64 *lens)
{
	int *n = lull_alloc(t->size, sizeof(*n)), *offs = lull_alloc(t->size, sizeof(*offs)), rc;

	for (u32 i = 0; i < t->size; i++) {
		n[i] = sizeof(len);
		offs[i] = (int)(i * sizeof(len));
	}
	rc = round_of(t, &len, sizeof(len), (char *)lens, n, offs);
	free(n);
	free(offs);
	return rc;
}

/* Rounds in which each process gives at most its share of what a count can say. */
static int gather_rounds(const struct lull_team *t, const char *bytes, u64 len,
			 struct lull_team_parts *parts)
{
	u64 share = MAX_PART / (t->size ? t->size : 1), longest = 0;
	int *n = lull_alloc(t->size, sizeof(*n)), *offs = lull_alloc(t->size, sizeof(*offs));
	char *room = NULL;
	int rc = 0;

	for (u32 i = 0; i < t->size; i++)
		longest = parts->len[i] > longest ? parts->len[i] : longest;
	for (u64 off = 0; !rc && off < longest; off += share) {
		u64 own = off < len ? len - off : 0, sum = 0;

		for (u32 i = 0; i < t->size; i++) {
			u64 left = off < parts->len[i] ? parts->len[i] - off : 0;

			n[i] = (int)(left < share ? left : share);
			offs[i] = (int)sum;
			sum += (u64)n[i];
		}
		room = lull_realloc(room, sum + 1, 1);
		rc = round_of(t, bytes + (off < len ? off : len), own < share ? own : share, room,
			      n, offs);
		for (u32 i = 0; !rc && i < t->size; i++)
			memcpy((char *)parts->at[i] + off, room + offs[i], (size_t)n[i]);
	}
	free(room);
	free(n);
	free(offs);
	return rc;
}

int lull_team_gather(struct lull_team *t, const void *bytes, u64 len, struct lull_team_parts *parts,
		     struct lull_err *err)
{
	u64 sum = 0;

	*parts = (struct lull_team_parts){ .at = lull_alloc(t->size, sizeof(*parts->at)),
					   .len = lull_alloc(t->size, sizeof(*parts->len)) };
	parts->len[0] = len;
	if (t->mpi && gather_lengths(t, len, parts->len))
		return lull_fail(err, LULL_E_IO, "MPI_Allgatherv failed");
	for (u32 i = 0; i < t->size; i++)
		sum += (parts->len[i] + 7) & ~7ULL;
	parts->bytes = lull_alloc(sum + 8, 1);
	for (u32 i = 0; i < t->size; i++)
		parts->at[i] =
			i ? parts->at[i - 1] + ((parts->len[i - 1] + 7) & ~7ULL) : parts->bytes;
	if (!t->mpi && len)
		memcpy(parts->bytes, bytes, len);
	if (t->mpi && gather_rounds(t, bytes, len, parts))
		return lull_fail(err, LULL_E_IO, "MPI_Allgatherv failed");
	return LULL_OK;
}

void lull_team_parts_release(struct lull_team_parts *parts)
{
	free(parts->bytes);
	free(parts->at);
	free(parts->len);
	*parts = (struct lull_team_parts){ NULL, NULL, NULL };
}
