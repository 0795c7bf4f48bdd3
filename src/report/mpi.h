/*
 * mpi - what the reports about MPI share.
 */
#ifndef LULL_REPORT_MPI_H
#define LULL_REPORT_MPI_H

#include "report/report.h"

/* mpi_call.kind */
enum lull_mpi_kind {
	LULL_MPI_P2P = 1,
	LULL_MPI_COLLECTIVE = 2,
	LULL_MPI_REQUEST = 3,
	LULL_MPI_ONE_SIDED = 4,
	LULL_MPI_FILE = 5,
	LULL_MPI_OTHER = 6,
};

/* Called for each block with the columns of the calls in it. */
typedef void lull_mpi_visit(void *ctx, const struct lull_mpi_call_cols *cols, size_t row);

/* Walk the calls in the time asked for. */
void lull_mpi_each(struct lull_reader *r, const struct lull_report_options *options,
		   lull_mpi_visit *visit, void *ctx);

/* The size of a message between two ranks, whichever side this is. */
static inline u64 lull_mpi_size_bytes(const struct lull_mpi_call_cols *cols, size_t row)
{
	return cols->send_bytes[row] > cols->recv_bytes[row] ? cols->send_bytes[row]
							     : cols->recv_bytes[row];
}

#endif
