#include "trace/input.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "base/io.h"
#include "base/mem.h"

static bool is_never_mapped;

void lull_input_never_map(void)
{
	is_never_mapped = true;
}

int lull_input_open(struct lull_input *in, const char *path, struct lull_err *err)
{
	struct stat st;

	*in = (struct lull_input){ .fd = open(path, O_RDONLY | O_CLOEXEC) };
	if (in->fd < 0)
		return lull_fail_errno(err, "opening %s", path);
	if (fstat(in->fd, &st)) {
		lull_fail_errno(err, "reading the state of %s", path);
		lull_input_release(in);
		return err->code;
	}
	if (!S_ISREG(st.st_mode)) {
		lull_input_release(in);
		return lull_fail(err, LULL_E_FORMAT, "%s is not a file", path);
	}
	in->size_bytes = (u64)st.st_size;
	return 0;
}

/* File systems whose pages can vanish under a mapping; numbers from the kernel's magic.h and the
 * Lustre sources. */
static bool is_remote(int fd)
{
	static const u32 remote[] = { 0x6969 /* NFS */,	       0xff534d42 /* CIFS */,
				      0xfe534d42 /* SMB2 */,   0x65735546 /* FUSE */,
				      0x0bd00bd0 /* Lustre */, 0x00c36400 /* Ceph */,
				      0x01021997 /* 9P */,     0x47504653 /* GPFS */ };
	struct statfs fs;

	if (fstatfs(fd, &fs))
		return true;
	for (size_t i = 0; i < LULL_COUNT_OF(remote); i++)
		if ((u32)fs.f_type == remote[i])
			return true;
	return false;
}

void lull_input_map(struct lull_input *in)
{
	void *map;

	if (is_never_mapped || is_remote(in->fd) || !in->size_bytes)
		return;
	map = mmap(NULL, in->size_bytes, PROT_READ, MAP_SHARED, in->fd, 0);
	if (map != MAP_FAILED)
		in->map = map;
}

const u8 *lull_input_view(struct lull_input *in, u64 off, size_t len, size_t ahead)
{
	u64 rest;
	i64 got;

	if (off > in->size_bytes || len > in->size_bytes - off)
		return NULL;
	if (in->map)
		return in->map + off;
	if (off >= in->buffer_off && off - in->buffer_off <= in->buffer_len &&
	    len <= in->buffer_len - (off - in->buffer_off))
		return in->buffer + (off - in->buffer_off);
	rest = in->size_bytes - off;
	ahead += len;
	ahead = ahead < rest ? ahead : (size_t)rest;
	if (ahead > in->buffer_cap) {
		in->buffer = lull_realloc(in->buffer, ahead, 1);
		in->buffer_cap = ahead;
	}
	in->buffer_off = off;
	in->buffer_len = 0;
	got = lull_io_read_at(in->fd, in->buffer, ahead, off);
	if (got < 0 || (u64)got < len)
		return NULL;
	in->buffer_len = (size_t)got;
	return in->buffer;
}

void lull_input_release(struct lull_input *in)
{
	if (in->map)
		munmap((void *)in->map, in->size_bytes);
	if (in->fd >= 0)
		close(in->fd);
	free(in->buffer);
	*in = (struct lull_input){ .fd = -1 };
}
