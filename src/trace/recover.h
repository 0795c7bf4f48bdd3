/*
 * recover - make a report from the file of a recording that was cut off.
 *
 * What it gives:  a sealed report of all whole blocks; the bytes that are lost are counted, here
 *                 and in the `issue` table of the report.
 * What it checks: every checksum of the file. A damaged block is left out as a whole.
 * Cost:           some GB/s; a copy takes what copying takes.
 */
#ifndef LULL_TRACE_RECOVER_H
#define LULL_TRACE_RECOVER_H

#include "base/err.h"
#include "base/types.h"

struct lull_recover_stats {
	bool was_sealed; /* and complete: it only had to be copied or renamed */
	u64 n_blocks;	 /* whole blocks */
	u64 n_rows;	 /* facts in them */
	u64 n_damaged;	 /* blocks left out because a checksum is wrong */
	u64 lost_bytes;	 /* bytes that are no part of a whole block */
};

/* What recovering the file would give; nothing is changed. */
int lull_recover_look(const char *from, struct lull_recover_stats *stats, struct lull_err *err);

/*
 * Recover the file `from`. With `to`, a copy of that name is made and `from` is only read. With
 * NULL it is done in place: index and trailer are appended after the last whole block, and a name
 * that ends in ".part" loses that.
 */
int lull_recover_file(const char *from, const char *to, struct lull_recover_stats *stats,
		      struct lull_err *err);

/*
 * The name of the result of lull_recover_file() in place: `from` without ".part". The caller frees
 * it.
 */
char *lull_recover_name(const char *from);

#endif
