#include "agent/cuda/cupti.h"

#include <dlfcn.h>
#include <link.h>
#include <stddef.h>
#include <stdlib.h>

#include "agent/core/agent.h"
#include "agent/core/loaded.h"
#include "agent/calls/oscall.h"
#include "agent/core/process.h"
#include "agent/core/real.h"

#define PATH_BYTES 1024u
#define NAME_BYTES 52u

struct lull_cupti lull_cupti;

/* Without pointers, which each start would have to relocate. */
#define AS_SLOT(name, is_required, params) \
	{ #name, offsetof(struct lull_cupti, name), is_required },
static const struct slot {
	char name[NAME_BYTES];
	u16 off;
	bool is_required;
} slots[] = { LULL_CUPTI_FUNCTIONS(AS_SLOT) };
#undef AS_SLOT

#define CHECK(name, is_required, params) \
	_Static_assert(sizeof(#name) <= NAME_BYTES, "the name fits, with its end");
LULL_CUPTI_FUNCTIONS(CHECK)
#undef CHECK

/* Names that the loader may find by itself, newest first. */
static const char sonames[][20] = {
	"libcupti.so.13",
	"libcupti.so.12",
	"libcupti.so.11.8",
	"libcupti.so",
};

/* Where wheels and toolkits put it, seen from the folder of a CUDA library. */
static const char beside[][48] = {
	"/libcupti.so.13",
	"/libcupti.so.12",
	"/../../cuda_cupti/lib/libcupti.so.12",
	"/../../nvidia/cu13/lib/libcupti.so.13",
	"/../../nvidia/cuda_cupti/lib/libcupti.so.12",
	"/../extras/CUPTI/lib64/libcupti.so",
};

/* What the walk over the loaded libraries finds. */
struct found {
	char cupti[PATH_BYTES];	 /* a libcupti that is loaded already */
	char folder[PATH_BYTES]; /* the folder of libcudart or libtorch */
};

static void copy(char *to, const char *from, size_t len)
{
	if (len < PATH_BYTES) {
		memcpy(to, from, len);
		to[len] = '\0';
	}
}

static int visit(struct dl_phdr_info *info, size_t size, void *arg)
{
	const char *path = info->dlpi_name, *name = path ? strrchr(path, '/') : NULL;
	struct found *found = arg;

	(void)size;
	if (!name)
		return 0;
	if (strncmp(name, "/libcupti.so", 12) == 0)
		copy(found->cupti, path, strlen(path));
	else if (strncmp(name, "/libcudart", 10) == 0 || strncmp(name, "/libtorch_cuda", 14) == 0)
		copy(found->folder, path, (size_t)(name - path));
	return 0;
}

static void *open_beside(const char *folder)
{
	char path[PATH_BYTES * 2];
	void *lib = NULL;

	for (size_t i = 0; *folder && !lib && i < LULL_COUNT_OF(beside); i++) {
		size_t n = strlen(folder);

		memcpy(path, folder, n);
		memcpy(path + n, beside[i], strlen(beside[i]) + 1);
		lib = lull_real.dlopen(path, RTLD_NOW | RTLD_LOCAL);
	}
	return lib;
}

static void *open_lib(void)
{
	const char *wanted = getenv("LULL_CUPTI_PATH");
	struct found found = { { 0 }, { 0 } };
	void *lib = NULL;

	if (wanted && *wanted)
		return lull_real.dlopen(wanted, RTLD_NOW | RTLD_LOCAL);
	lull_loaded_walk(visit, &found);
	if (*found.cupti)
		lib = lull_real.dlopen(found.cupti, RTLD_NOW | RTLD_LOCAL | RTLD_NOLOAD);
	if (!lib)
		lib = open_beside(found.folder);
	for (size_t i = 0; !lib && i < LULL_COUNT_OF(sonames); i++)
		lib = lull_real.dlopen(sonames[i], RTLD_NOW | RTLD_LOCAL);
	if (!lib)
		lib = open_beside("/usr/local/cuda/lib64");
	return lib;
}

static const char *missing = "";

const char *lull_cupti_missing(void)
{
	return missing;
}

bool lull_cupti_load(void)
{
	void *lib = open_lib();

	if (!lib)
		return false;
	/* Stacks of calls start in it: its file has to be known before the first of them. */
	lull_modules_scan();
	for (size_t i = 0; i < LULL_COUNT_OF(slots); i++) {
		void **at = (void **)((u8 *)&lull_cupti + slots[i].off);

		*at = dlsym(lib, slots[i].name);
		if (!*at && slots[i].is_required) {
			missing = slots[i].name;
			return false;
		}
	}
	lull_osrt_spare(true);
	return lull_cupti.cuptiGetVersion(&lull_cupti.version) == 0;
}

void *lull_cupti_find(const char *name)
{
	struct found found = { { 0 }, { 0 } };
	void *lib = NULL;

	lull_loaded_walk(visit, &found);
	if (*found.cupti)
		lib = lull_real.dlopen(found.cupti, RTLD_NOW | RTLD_LOCAL | RTLD_NOLOAD);
	/* The handle is kept: the library must not go away while we know its addresses. */
	return lib ? dlsym(lib, name) : NULL;
}
