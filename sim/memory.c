#include "cuda_int.h"

#include <pthread.h>

/* One allocation. A training loop has tens of them, so that a list will do. */
struct piece {
	struct piece *next;
	char *at;
	u64 size_bytes;
	enum sim_memory kind;
};

static struct {
	pthread_mutex_t lock;
	struct piece *pieces;
	u64 used_bytes;
} memory = { .lock = PTHREAD_MUTEX_INITIALIZER };

void *lull_sim_memory_new(u64 size_bytes, enum sim_memory kind)
{
	struct piece *piece = malloc(sizeof(*piece));
	void *at = NULL;

	if (!piece)
		return NULL;
	pthread_mutex_lock(&memory.lock);
	if (kind != SIM_DEVICE || memory.used_bytes + size_bytes <= SIM_DEVICE_MEMORY)
		at = aligned_alloc(256, (size_bytes + 255) & ~255ull);
	if (at) {
		*piece = (struct piece){ memory.pieces, at, size_bytes, kind };
		memory.pieces = piece;
		memory.used_bytes += kind == SIM_DEVICE ? size_bytes : 0;
	} else {
		free(piece);
	}
	pthread_mutex_unlock(&memory.lock);
	return at;
}

bool lull_sim_memory_free(void *at, enum sim_memory kind)
{
	struct piece *piece = NULL;

	pthread_mutex_lock(&memory.lock);
	for (struct piece **p = &memory.pieces; *p; p = &(*p)->next) {
		if ((*p)->at != at || (*p)->kind != kind)
			continue;
		piece = *p;
		*p = piece->next;
		memory.used_bytes -= kind == SIM_DEVICE ? piece->size_bytes : 0;
		break;
	}
	pthread_mutex_unlock(&memory.lock);
	if (!piece)
		return false;
	free(piece->at);
	free(piece);
	return true;
}

enum sim_memory lull_sim_memory_kind(const void *at)
{
	enum sim_memory kind = SIM_PAGEABLE;

	pthread_mutex_lock(&memory.lock);
	for (struct piece *p = memory.pieces; p; p = p->next)
		if ((const char *)at >= p->at && (const char *)at < p->at + p->size_bytes)
			kind = p->kind;
	pthread_mutex_unlock(&memory.lock);
	return kind;
}

u64 lull_sim_memory_bytes(const void *at)
{
	u64 size_bytes = 0;

	pthread_mutex_lock(&memory.lock);
	for (struct piece *p = memory.pieces; p; p = p->next)
		if ((const char *)at == p->at)
			size_bytes = p->size_bytes;
	pthread_mutex_unlock(&memory.lock);
	return size_bytes;
}

u64 lull_sim_memory_used(void)
{
	u64 used_bytes;

	pthread_mutex_lock(&memory.lock);
	used_bytes = memory.used_bytes;
	pthread_mutex_unlock(&memory.lock);
	return used_bytes;
}
