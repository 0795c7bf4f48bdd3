/*
 * nccl_plugin: plays NCCL for its profiler plugin, in each version of their interface, and tells of
 * an all-reduce of 1000 floats and a send of 500 to rank 3. The structures here are laid out by the
 * compiler, as NCCL's are; ours are offsets in a list. Argument: the plugin.
 */
#include <dlfcn.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

enum { GROUP = 1, COLL = 2, P2P = 4, PROXY_OP = 8, PROXY_STEP = 16 };

struct head_small {
	uint8_t type;
	void *parent;
	int rank;
};
struct head_large {
	uint64_t type;
	void *parent;
	int rank;
};

/* What follows the head, by version. */
struct coll_1 {
	const char *name;
	uint64_t hash, seq;
	uint8_t func;
	const void *send;
	void *recv;
	size_t count;
	int root;
	uint8_t datatype;
	uint32_t op;
	size_t traffic;
	uint8_t channels, warps, algo, proto;
	int is_collnet, is_nvls;
};
struct p2p_1 {
	const char *name;
	uint64_t hash;
	uint8_t func;
	void *buffer;
	uint8_t datatype;
	size_t count;
	int peer;
};
struct coll_2 {
	const char *name;
	uint64_t hash, seq;
	const char *func;
	const void *send;
	void *recv;
	size_t count;
	int root;
	const char *datatype;
	size_t traffic;
	uint8_t channels, warps;
	const char *algo, *proto;
};
struct coll_3 {
	const char *name;
	uint64_t hash, seq;
	const char *func;
	const void *send;
	void *recv;
	size_t count;
	int root;
	const char *datatype;
	uint8_t channels, warps;
	const char *algo, *proto;
};
struct p2p_2 {
	const char *name;
	uint64_t hash;
	const char *func;
	void *buffer;
	const char *datatype;
	size_t count;
	int peer;
};
struct coll_4 {
	uint64_t seq;
	const char *func;
	const void *send;
	void *recv;
	size_t count;
	int root;
	const char *datatype;
	uint8_t channels, warps;
	const char *algo, *proto;
	void *group;
};
struct p2p_4 {
	const char *func;
	void *buffer;
	const char *datatype;
	size_t count;
	int peer;
	uint8_t channels;
	void *group;
};

union descr {
	struct {
		union {
			struct head_small small;
			struct head_large large;
		};
		union {
			struct coll_1 coll_1;
			struct p2p_1 p2p_1;
			struct coll_2 coll_2;
			struct coll_3 coll_3;
			struct p2p_2 p2p_2;
			struct coll_4 coll_4;
			struct p2p_4 p2p_4;
		};
	};
};

struct table {
	const char *name;
	void *init;
	int (*start)(void *context, void **handle, void *descr);
	int (*stop)(void *handle);
	int (*state)(void *handle, int state, void *more);
	int (*finalize)(void *context);
};

static union descr head(int version, int type, void *parent)
{
	union descr d;

	memset(&d, 0x5a, sizeof(d)); /* what is not set is not to be read */
	if (version > 4)
		d.large.type = (uint64_t)type;
	else
		d.small.type = (uint8_t)type;
	d.small.parent = parent;
	d.small.rank = 1;
	return d;
}

static union descr all_reduce(int v, void *group)
{
	union descr d = head(v, COLL, group);

	if (v == 1)
		d.coll_1 = (struct coll_1){ "world", 77, 5, 4, NULL, NULL, 1000, 0, 7,
					    0,	     0,	 8, 4, 1,    2,	   0,	 0 };
	else if (v == 2)
		d.coll_2 = (struct coll_2){ "world", 77,   5,	   "AllReduce",	  NULL,
					    NULL,    1000, 0,	   "ncclFloat32", 0,
					    8,	     4,	   "RING", "SIMPLE" };
	else if (v == 3)
		d.coll_3 =
			(struct coll_3){ "world",	77, 5, "AllReduce", NULL,    NULL, 1000, 0,
					 "ncclFloat32", 8,  4, "RING",	    "SIMPLE" };
	else
		d.coll_4 =
			(struct coll_4){ 5, "AllReduce", NULL,	 NULL,	   1000, 0, "ncclFloat32",
					 8, 4,		 "RING", "SIMPLE", NULL };
	return d;
}

static union descr send_3(int v, void *group)
{
	union descr d = head(v, P2P, group);

	if (v == 1)
		d.p2p_1 = (struct p2p_1){ "world", 77, 6, NULL, 7, 500, 3 };
	else if (v < 4)
		d.p2p_2 = (struct p2p_2){ "world", 77, "Send", NULL, "ncclFloat32", 500, 3 };
	else
		d.p2p_4 = (struct p2p_4){ "Send", NULL, "ncclFloat32", 500, 3, 2, NULL };
	return d;
}

static void *init(const struct table *t, int v, int *mask)
{
	void *context = NULL;

	if (v < 4)
		((int (*)(void **, int *))t->init)(&context, mask);
	else if (v == 4)
		((int (*)(void **, int *, const char *, uint64_t, int, int, int, void *))t->init)(
			&context, mask, "world", 77, 1, 4, 1, NULL);
	else
		((int (*)(void **, uint64_t, int *, const char *, int, int, int, void *))t->init)(
			&context, 77, mask, "world", 1, 4, 1, NULL);
	return context;
}

/* A step of the network below an operation, begun after the operation's own end. */
static void step(const struct table *t, int v, void *context, void *op, size_t n_bytes)
{
	union descr d = head(v, PROXY_OP, op);
	void *proxy = NULL, *below = NULL;

	t->start(context, &proxy, &d);
	d = head(v, PROXY_STEP, proxy);
	t->start(context, &below, &d);
	t->state(v > 3 ? below : proxy, v > 3 ? 9 : 3, &n_bytes);
	t->stop(below);
	t->stop(proxy);
}

static void play(const struct table *t, int v)
{
	union descr d = head(v, GROUP, NULL);
	void *context, *group = NULL, *coll = NULL, *p2p = NULL;
	int mask = 0;

	context = init(t, v, &mask);
	if (mask & GROUP)
		t->start(context, &group, &d);
	d = all_reduce(v, group);
	t->start(context, &coll, &d);
	d = send_3(v, group);
	t->start(context, &p2p, &d);
	t->stop(coll);
	t->stop(p2p);
	if (mask & PROXY_STEP)
		step(t, v, context, coll, 4096);
	t->stop(group);
	t->finalize(context);
}

int main(int argc, char **argv)
{
	void *plugin = argc > 1 ? dlopen(argv[1], RTLD_NOW | RTLD_LOCAL) : NULL;

	for (int v = 1; plugin && v <= 6; v++) {
		char name[32];
		const struct table *t;

		snprintf(name, sizeof(name), "ncclProfiler_v%d", v);
		t = dlsym(plugin, name);
		if (!t)
			return v;
		play(t, v);
	}
	return plugin ? 0 : 9;
}
