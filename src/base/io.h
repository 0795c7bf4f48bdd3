/*
 * io - the few system calls that write reports: complete or failed, and tests can make them fail.
 *
 * Results:        0, or -1 with errno set. Interrupted and short transfers are continued.
 * Tests:          with LULL_IO_FAULTS (SAN=1 builds) lull_io_fail_at() makes the n-th call fail,
 *                 so that a test can repeat a scenario failing its 1st, 2nd, ... call.
 */
#ifndef LULL_BASE_IO_H
#define LULL_BASE_IO_H

#include "base/types.h"

/* Lock the file with flock(2), to show others that it is being written, until it is closed. */
void lull_io_lock(int fd);

/* Create a new file to read and write, locked; its descriptor, or -1 (EEXIST if it exists). */
int lull_io_create(const char *path);

/* Write all bytes at this offset. A failing call may have written some of them. */
int lull_io_write_at(int fd, const void *bytes, size_t len, u64 off);

/* Read up to `len` bytes at this offset; the number read, fewer only at the end of the file, or -1.
 */
i64 lull_io_read_at(int fd, void *bytes, size_t len, u64 off);

/* Ask the system to start writing these bytes to the disk; does not wait and cannot fail. */
void lull_io_start_writeback(int fd, u64 off, u64 len);

/* Wait until the data of the file is on the disk. */
int lull_io_sync_data(int fd);

/* Cut the file to this length. */
int lull_io_truncate(int fd, u64 len);

/* Rename and wait until the folder of the new name is on the disk, where that can be waited for. */
int lull_io_rename_synced(const char *from, const char *to);

#ifdef LULL_IO_FAULTS
/* Let the n-th call from now on (1 = the next) fail with `error`, and those after it too if
 * `is_lasting`. 0 stops. */
void lull_io_fail_at(u64 n, int error, bool is_lasting);

/* Calls since the last lull_io_fail_at(). */
u64 lull_io_n_calls(void);
#endif

#endif
