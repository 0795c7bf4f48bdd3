/*
 * mpi - what reports of MPI share.
 */
#ifndef LULL_REPORT_MPI_H
#define LULL_REPORT_MPI_H

#include "base/types.h"

/* Values of mpi_call.kind that reports tell apart. */
enum lull_mpi_kind { LULL_MPI_P2P = 1, LULL_MPI_COLLECTIVE = 2 };

/* What such a value is called in tables. */
static inline const char *lull_mpi_kind(u8 kind)
{
	static const char *const names[] = {
		"", "p2p", "coll", "start_wait", "rma", "io", "other"
	};

	return kind < LULL_COUNT_OF(names) ? names[kind] : "";
}

#endif
