/*
 * input - the bytes of a file, mapped or read.
 *
 * A mapping is fastest, but a file that shrinks or a network disk that fails would end the reader
 * with SIGBUS. So only sealed files on local disks are mapped; everything else is read into a
 * buffer.
 *
 * What it checks: every view lies inside the file as it was when opened.
 * Ownership:      a view is borrowed: until the next call if the file is not mapped, else until
 *                 release.
 * Threads:        one at a time.
 */
#ifndef LULL_TRACE_INPUT_H
#define LULL_TRACE_INPUT_H

#include "base/err.h"
#include "base/types.h"

struct lull_input {
	int fd;
	u64 size_bytes;
	const u8 *map; /* NULL if it is read */
	u8 *buffer;
	size_t buffer_cap;
	u64 buffer_off;
	size_t buffer_len;
};

/* Open a file to be read. */
int lull_input_open(struct lull_input *in, const char *path, struct lull_err *err);

/* Map it if it is on a local disk; otherwise it is still read. */
void lull_input_map(struct lull_input *in);

/*
 * From now on, read all files. For a library: it can neither catch the SIGBUS of a file that
 * shrinks, nor may it die of it.
 */
void lull_input_never_map(void);

/* `len` bytes at `off`, or NULL if they are not in the file or cannot be read. Up to `ahead` bytes
 * more are read with them, for views that follow. */
const u8 *lull_input_view(struct lull_input *in, u64 off, size_t len, size_t ahead);

/* Close and free. Accepts one that could not be opened. */
void lull_input_release(struct lull_input *in);

#endif
