/*
 * nccl_calls: call the real NCCL with a communicator that is none. It says on NVTX what it was
 * asked to do before it refuses, so no GPU is needed. Exit status 3: there is no NCCL here.
 */
#include <dlfcn.h>
#include <stddef.h>
#include <stdio.h>

#define FLOAT32 7 /* ncclFloat32 */
#define SUM	0 /* ncclSum */

/* ncclUniqueId */
static char id[128];

int main(int argc, char **argv)
{
	void *nccl = dlopen(argc > 1 ? argv[1] : "libnccl.so.2", RTLD_NOW);
	int (*all_reduce)(const void *from, void *to, size_t n, int type, int op, void *comm,
			  void *stream);
	int (*get_id)(void *id128);
	int (*send)(const void *from, size_t n, int type, int peer, void *comm, void *stream);

	if (!nccl)
		return 3;
	*(void **)&all_reduce = dlsym(nccl, "ncclAllReduce");
	*(void **)&send = dlsym(nccl, "ncclSend");
	*(void **)&get_id = dlsym(nccl, "ncclGetUniqueId");
	if (!all_reduce || !send || !get_id)
		return 3;
	/* Initialises NCCL, which registers its enumerations, and then fails without a GPU. */
	get_id(id);
	all_reduce(NULL, NULL, 1000, FLOAT32, SUM, NULL, NULL);
	send(NULL, 500, FLOAT32, 3, NULL, NULL);
	return 0;
}
