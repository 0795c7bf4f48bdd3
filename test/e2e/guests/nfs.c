/*
 * nfs - preloaded, it makes folders called "shared" look as if they lay on NFS.
 */
#include <dlfcn.h>
#include <string.h>
#include <sys/vfs.h>

#define NFS_SUPER_MAGIC 0x6969

int statfs(const char *path, struct statfs *s)
{
	int (*next)(const char *, struct statfs *);
	int rc;

	*(void **)&next = dlsym(RTLD_NEXT, "statfs");
	rc = next(path, s);
	if (!rc && strstr(path, "shared"))
		s->f_type = NFS_SUPER_MAGIC;
	return rc;
}
