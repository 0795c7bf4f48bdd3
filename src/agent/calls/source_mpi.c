/*
 * mpi: MPI calls with bytes, peer, tag and communicator.
 *
 * The calls are traced as those of any other library (lib.h), by both their names, MPI_X and
 * PMPI_X: Fortran's bindings call the latter, so they need no separate list. MPI calls inside
 * another MPI call are not recorded.
 *
 * Handles are pointers in Open MPI, and integers in MPICH and libraries derived from it; here they
 * are words that are passed back to the library's own functions. Those abort the program if an
 * argument is invalid, so they are only called with arguments that the call itself has just
 * accepted and used: after it returned success, and not with a datatype that MPI ignores at this
 * rank.
 */
#include "agent/core/source.h"

#include <link.h>

#include "agent/core/loaded.h"
#include "agent/calls/lib.h"

enum { /* FLAGS in mpi.def */
       SEND_ROOT = 1,
       SEND_EACH = 2,
       RECV_ROOT = 4,
       RECV_EACH = 8,
       RECV_OTHERS = 16,
       BOTH = 32,
       OWN_PART = 64,
       WORLD = 128,
       FORGETS = 256,
};

enum { P2P = 1, COLLECTIVE = 2, REQUEST = 3, ONE_SIDED = 4, FILES = 5, OTHER = 6 };

#define NAME_BYTES 36u
#define ARGS_BYTES 16u

/* No pointers: the loader would have to relocate each at the start of every process. */
#define MPI(name, kind, args, flags) { "MPI_" #name, args, kind, flags },
static const struct spec {
	char name[NAME_BYTES];
	char args[ARGS_BYTES];
	u16 kind;
	u16 flags;
} specs[] = {
#include "agent/calls/mpi.def"
};
#undef MPI

#define MPI(name, kind, args, flags)                                                     \
	_Static_assert(sizeof("MPI_" #name) <= NAME_BYTES && sizeof(args) <= ARGS_BYTES, \
		       "they fit, with their ends");
#include "agent/calls/mpi.def"
#undef MPI

#define LARGE 0x8000u /* lull_lib_hook.spec: the variant with _c, whose counts have 64 bits */

/* How the two families differ, in what can be seen from here. */
struct family {
	i32 any_source, proc_null;
	u32 status_source; /* which int of MPI_Status is the source; the tag follows */
	u64 no_status;	   /* MPI_STATUS_IGNORE */
	u64 in_place;	   /* MPI_IN_PLACE */
	u64 handle_mask;   /* bits of a handle */
	u64 integer_world; /* MPI_COMM_WORLD, where it is no address */
};

static const struct family openmpi = { -1, -2, 0, 0, 1, UINT64_MAX, 0 };
static const struct family mpich = { -2, -1, 2, 1, UINT64_MAX, UINT32_MAX, 0x44000000 };

struct comm {
	u64 handle;
	u32 rank, n_ranks;
	u32 is_inter;
	u32 name_len;
	char name[64];
};

#define N_COMMS 64u

static struct {
	const struct family *family; /* NULL: no MPI here yet */
	int (*type_size)(u64 type, int *size);
	int (*comm_rank)(u64 comm, int *rank);
	int (*comm_size)(u64 comm, int *n);
	int (*comm_test_inter)(u64 comm, int *is_inter);
	int (*comm_get_name)(u64 comm, char *name, int *len);
	int (*get_count)(const void *status, u64 type, int *n);
	u64 world_object; /* Open MPI's ompi_mpi_comm_world, 0 if there is none */
	u64 world;	  /* the handle of MPI_COMM_WORLD */
	/* What is known of communicators; one writer at a time, who finds it taken asks again. */
	atomic_flag is_busy;
	struct comm comms[N_COMMS];
} mpi = { .is_busy = ATOMIC_FLAG_INIT };

static bool find(const struct dl_phdr_info *file, const char *name, void *to)
{
	const ElfW(Sym) *s = lull_loaded_symbol(file, name);
	u64 at = s ? file->dlpi_addr + s->st_value : 0;

	memcpy(to, &at, sizeof(at));
	return at != 0;
}

/* Learn the library's own functions; false if this file is no MPI. */
static bool use_library(const struct dl_phdr_info *file)
{
	u32 wanted = lull_agent.control->mpi_family;
	u64 init;

	if (!find(file, "MPI_Init", &init) || !find(file, "PMPI_Type_size", &mpi.type_size) ||
	    !find(file, "PMPI_Comm_rank", &mpi.comm_rank) ||
	    !find(file, "PMPI_Comm_size", &mpi.comm_size) ||
	    !find(file, "PMPI_Comm_test_inter", &mpi.comm_test_inter) ||
	    !find(file, "PMPI_Comm_get_name", &mpi.comm_get_name) ||
	    !find(file, "PMPI_Get_count", &mpi.get_count))
		return false;
	mpi.family = wanted == 1 || (!wanted && mpi.world_object) ? &openmpi : &mpich;
	mpi.world = mpi.family->integer_world ? mpi.family->integer_world : mpi.world_object;
	return true;
}

struct lull_lib_want lull_mpi_wants(const struct dl_phdr_info *file, const char *name)
{
	struct lull_lib_want want = { 0 };
	size_t len;

	if (!(lull_agent.control->sources & LULL_SOURCE_MPI))
		return want;
	if (!name) {
		/*
		 * Files come in the order in which the loader looks for names, so the first that
		 * has it counts: a program that is linked to fixed addresses has a copy of the
		 * object, and the library's own is not used then.
		 */
		if (!mpi.world_object)
			find(file, "ompi_mpi_comm_world", &mpi.world_object);
		want.is_wanted = use_library(file);
		return want;
	}
	name += name[0] == 'P';
	len = strlen(name);
	for (size_t i = 0; i < LULL_COUNT_OF(specs) && !want.is_wanted; i++) {
		size_t n = strlen(specs[i].name);
		bool is_large = len == n + 2 && strcmp(name + n, "_c") == 0;

		if (strncmp(name, specs[i].name, n) != 0 || (len != n && !is_large))
			continue;
		want = (struct lull_lib_want){
			.is_wanted = true,
			.n_args = (u8)strlen(specs[i].args),
			.decoder = LULL_LIB_MPI,
			.spec = (u16)(i | (is_large ? LARGE : 0)),
		};
	}
	return want;
}

static void ask_comm(struct comm *c, u64 handle)
{
	char name[256] = { 0 }; /* MPI_MAX_OBJECT_NAME is 64 in one, 128 in the other */
	int rank = 0, n = 0, is_inter = 0, len = 0;

	mpi.comm_rank(handle, &rank);
	mpi.comm_size(handle, &n);
	mpi.comm_test_inter(handle, &is_inter);
	mpi.comm_get_name(handle, name, &len);
	c->handle = handle;
	c->rank = (u32)rank;
	c->n_ranks = (u32)n;
	c->is_inter = (u32)is_inter;
	c->name_len = (u32)(len < 0 ? 0 : len > 64 ? 64 : len);
	memcpy(c->name, name, c->name_len);
}

/* What is known of a communicator that a call has just used. */
static void find_comm(struct comm *c, u64 handle)
{
	struct comm *kept = &mpi.comms[lull_hash_mix(handle, 0x9e3779b97f4a7c15ULL) % N_COMMS];
	bool is_mine = !atomic_flag_test_and_set_explicit(&mpi.is_busy, memory_order_acquire);

	if (is_mine && kept->handle == handle) {
		*c = *kept;
	} else {
		ask_comm(c, handle);
		if (is_mine)
			*kept = *c;
	}
	if (is_mine)
		atomic_flag_clear_explicit(&mpi.is_busy, memory_order_release);
}

/* Handles of communicators may be used again, or their names have changed. */
static void forget_comms(void)
{
	while (atomic_flag_test_and_set_explicit(&mpi.is_busy, memory_order_acquire))
		;
	memset(mpi.comms, 0, sizeof(mpi.comms));
	atomic_flag_clear_explicit(&mpi.is_busy, memory_order_release);
}

/* A call with its arguments sorted out. */
struct call {
	const struct spec *spec;
	bool is_large;
	const u64 *args;
	struct comm comm;
	struct lull_wire_mpi_call *e;
};

/* The argument with this letter; false if the function has none. */
static bool arg(const struct call *c, char letter, u64 *value)
{
	const char *at = strchr(c->spec->args, letter);

	if (!at)
		return false;
	*value = c->args[at - c->spec->args];
	return true;
}

static i32 int_arg(const struct call *c, char letter, i32 missing)
{
	u64 value;

	return arg(c, letter, &value) ? (i32)value : missing;
}

/* Counts of all ranks added up, or that of one. */
static u64 sum_counts(const struct call *c, u64 at, i64 only)
{
	u64 sum = 0;

	for (u32 i = 0; at && i < c->comm.n_ranks; i++) {
		u64 n = c->is_large ? ((const u64 *)at)[i] : (u64)(i64)((const i32 *)at)[i];

		if (only < 0 || only == (i64)i)
			sum += n;
	}
	return sum;
}

/*
 * Bytes of the send (or receive) part; letters of its buffer, count, counts and datatype. 0 for
 * what MPI ignores.
 */
static u64 bytes_of(const struct call *c, const char letters[4], bool is_each)
{
	u64 buffer, n, type;
	int size = 0;

	if (!arg(c, letters[3], &type))
		return 0;
	if (arg(c, letters[0], &buffer) && buffer == mpi.family->in_place &&
	    !(c->spec->flags & (BOTH | OWN_PART)))
		return 0;
	if (arg(c, letters[1], &n))
		n = c->is_large ? n : (u64)(i64)(i32)n;
	else if (arg(c, letters[2], &n))
		n = sum_counts(c, n, -1);
	else
		n = 1;
	if (!n || n > INT64_MAX)
		return 0;
	mpi.type_size(type & mpi.family->handle_mask, &size);
	return n * (u64)size * (is_each ? c->comm.n_ranks : 1);
}

static void count_bytes(struct call *c)
{
	static const char send[4] = { 'b', 'c', 'v', 't' }, recv[4] = { 'r', 'C', 'V', 'T' };
	u32 flags = c->spec->flags;
	i32 root = int_arg(c, 'R', -1);
	bool is_root = root >= 0 && (u32)root == c->comm.rank;

	/* Between two groups, who is root and whose arguments count is another matter. */
	if (c->spec->kind == COLLECTIVE && c->comm.is_inter)
		return;
	if (!(flags & SEND_ROOT) || is_root)
		c->e->send_bytes = bytes_of(c, send, flags & SEND_EACH);
	if (flags & OWN_PART) {
		u64 counts, whole;

		if (arg(c, 'v', &counts) && (whole = sum_counts(c, counts, -1)))
			c->e->recv_bytes =
				c->e->send_bytes / whole * sum_counts(c, counts, (i64)c->comm.rank);
		return;
	}
	if (((flags & RECV_ROOT) && !is_root) || ((flags & RECV_OTHERS) && is_root))
		return;
	c->e->recv_bytes =
		flags & BOTH ? bytes_of(c, send, false) : bytes_of(c, recv, flags & RECV_EACH);
}

/* What really came, if the program asked for it: from whom, which tag, how much. */
static void read_status(struct call *c)
{
	const i32 *status;
	u64 at, type;
	int size = 0, n = -1;

	if (!arg(c, 'S', &at) || at == mpi.family->no_status)
		return;
	status = (const i32 *)at + mpi.family->status_source;
	/* Of a call that both sends and receives, the peer is that of the send part. */
	if (!strchr(c->spec->args, 'P') && strchr(c->spec->args, 'p') && status[0] >= 0) {
		c->e->peer = status[0];
		c->e->tag = status[1];
	}
	if (!arg(c, 'T', &type))
		return;
	mpi.get_count((const void *)at, type & mpi.family->handle_mask, &n);
	mpi.type_size(type & mpi.family->handle_mask, &size);
	if (n >= 0)
		c->e->recv_bytes = (u64)n * (u64)size;
}

static i32 peer_of(i32 peer)
{
	return peer >= 0			? peer
	       : peer == mpi.family->any_source ? LULL_MPI_ANY
	       : peer == mpi.family->proc_null	? LULL_MPI_NOBODY
						: LULL_MPI_NONE;
}

static void decode(struct call *c)
{
	u32 flags = c->spec->flags;
	u64 handle = 0, value;
	bool has_comm = arg(c, 'm', &handle);

	if ((flags & WORLD) && mpi.world) {
		handle = mpi.world;
		has_comm = true;
	}
	handle &= mpi.family->handle_mask;
	if (has_comm) {
		find_comm(&c->comm, handle);
		c->e->comm = handle;
		c->e->rank = c->comm.rank;
		c->e->n_ranks = c->comm.n_ranks;
	}
	if (arg(c, 'p', &value))
		c->e->peer = peer_of((i32)value);
	c->e->tag = int_arg(c, 'g', LULL_MPI_NONE);
	c->e->root = int_arg(c, 'R', LULL_MPI_NONE);
	if (c->e->root < 0)
		c->e->root = LULL_MPI_NONE;
	if (c->e->peer != LULL_MPI_NOBODY) {
		count_bytes(c);
		read_status(c);
	}
}

void lull_mpi_returned(struct lull_thread *t, const struct lull_lib_frame *f, u64 dur_ticks,
		       u64 result)
{
	const struct spec *spec = &specs[f->hook->spec & ~LARGE];
	struct lull_wire_mpi_call event = {
		.dur_ticks = dur_ticks,
		.peer = LULL_MPI_NONE,
		.root = LULL_MPI_NONE,
		.tag = LULL_MPI_NONE,
		.ret = (i32)result,
	};
	struct call c = { spec, f->hook->spec & LARGE, f->args, { 0 }, &event };
	struct lull_wire_mpi_call *e;
	u32 skip = f->hook->name[0] == 'P'; /* PMPI_X is MPI_X to the reader */

	if (spec->flags & FORGETS)
		forget_comms();
	if (f->record != t->record || f->image != (u32)lull_agent.image->start_counter)
		return;
	/* What we ask MPI for may call others that are watched. */
	t->is_quiet++;
	if (!event.ret && mpi.family)
		decode(&c);
	t->is_quiet--;
	event.name = lull_name(t, f->hook->name + skip, f->hook->name_len - skip);
	event.comm_name = lull_name(t, c.comm.name, c.comm.name_len);
	e = lull_reserve_at(t, LULL_EVENT_mpi_call, sizeof(*e), f->start);
	if (!e)
		return;
	event.head = e->head;
	event.head.a = spec->kind;
	*e = event;
	lull_commit(t, sizeof(*e));
}

static void start(void)
{
	atomic_flag_clear(&mpi.is_busy); /* a fork may have copied it taken */
	/* Handles may have been used again since the agent was here before. */
	forget_comms();
	lull_lib_start();
}

const struct lull_source lull_source_mpi = {
	.start = start,
	.is_of_each_fork = true,
	.loaded = lull_lib_scan,
	.withdraw = lull_lib_withdraw,
};
