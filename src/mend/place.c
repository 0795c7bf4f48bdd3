/*
 * How threads of the host wait for the device, and on which CPUs they run: set when the driver
 * starts, before there is a context.
 */
#include "mend/mend.h"

#include <ctype.h>
#include <dirent.h>
#include <dlfcn.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Of cuDevicePrimaryCtxSetFlags(). */
#define SCHED_SPIN     1u
#define SCHED_BLOCKING 4u

#define MOST_DEVICES 16

static void *find(const char *name)
{
	void *library = dlopen("libcuda.so.1", RTLD_LAZY | RTLD_NOLOAD);

	return library ? dlsym(library, name) : NULL;
}

static void set_waits(unsigned flags, enum lull_mend mend)
{
	int (*count)(int *), (*set)(int, unsigned);
	int n = 0;

	*(void **)&count = find("cuDeviceGetCount");
	*(void **)&set = find("cuDevicePrimaryCtxSetFlags_v2");
	if (!count || !set || count(&n) != LULL_CUDA_OK)
		return;
	for (int i = 0; i < n && i < MOST_DEVICES; i++)
		if (set(i, flags) == LULL_CUDA_OK)
			lull_mend_did(mend);
}

static bool read_line(const char *path, char *text, int room)
{
	FILE *f = fopen(path, "re");
	bool has_text = f && fgets(text, room, f);

	if (f)
		fclose(f);
	return has_text;
}

/* The CPUs of a list such as 0-3,8 that we may use. */
static int add_cpus(cpu_set_t *to, const cpu_set_t *own, const char *text)
{
	CPU_ZERO(to);
	while (isdigit((unsigned char)*text)) {
		char *end;
		long first = strtol(text, &end, 10);
		long last = *end == '-' ? strtol(end + 1, &end, 10) : first;

		for (long i = first; i <= last && i < CPU_SETSIZE; i++)
			if (CPU_ISSET((size_t)i, own))
				CPU_SET((size_t)i, to);
		text = end + (*end == ',');
	}
	return CPU_COUNT(to);
}

static bool find_near(cpu_set_t *near, const cpu_set_t *own)
{
	int (*bus_id)(char *, int, int);
	char id[32] = "", path[128], text[1024];

	*(void **)&bus_id = find("cuDeviceGetPCIBusId");
	if (!bus_id || bus_id(id, sizeof(id), 0) != LULL_CUDA_OK)
		return false;
	for (char *c = id; *c; c++)
		*c = (char)tolower((unsigned char)*c);
	snprintf(path, sizeof(path), "/sys/bus/pci/devices/%s/numa_node", id);
	if (!read_line(path, text, sizeof(text)) || atoi(text) < 0)
		return false;
	snprintf(path, sizeof(path), "/sys/devices/system/node/node%d/cpulist", atoi(text));
	return read_line(path, text, sizeof(text)) && add_cpus(near, own, text) > 0;
}

/* All threads that there are; later ones inherit it. */
static void bind(void)
{
	cpu_set_t own, near;
	DIR *dir;
	const struct dirent *e;

	if (sched_getaffinity(0, sizeof(own), &own) != 0 || !find_near(&near, &own) ||
	    CPU_EQUAL(&near, &own))
		return;
	dir = opendir("/proc/self/task");
	while (dir && (e = readdir(dir)))
		if (isdigit((unsigned char)e->d_name[0]))
			sched_setaffinity(atoi(e->d_name), sizeof(near), &near);
	if (dir)
		closedir(dir);
	lull_mend_did(LULL_MEND_NEAR);
}

void lull_place(const struct lull_driver *d)
{
	(void)d;
	if (lull_mend_wants(LULL_MEND_SPIN))
		set_waits(SCHED_SPIN, LULL_MEND_SPIN);
	if (lull_mend_wants(LULL_MEND_BLOCKING))
		set_waits(SCHED_BLOCKING, LULL_MEND_BLOCKING);
	if (lull_mend_wants(LULL_MEND_NEAR))
		bind();
}
