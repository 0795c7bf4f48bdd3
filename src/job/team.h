/*
 * team - the processes that analyse a job together: one, or those that mpirun started.
 *
 * MPI is never linked: the same binary works with and without it. A process that a launcher of MPI
 * started (OMPI_COMM_WORLD_SIZE, PMI_SIZE) loads the launcher's own library when it needs the other
 * processes. What is used of it, five functions with the handles of both families of binary
 * interfaces, is declared in team_mpi.def.
 *
 * Rule:           every process calls the same functions in the same order, even after a failure; a
 *                 failure of one process is sent to the others as data.
 */
#ifndef LULL_JOB_TEAM_H
#define LULL_JOB_TEAM_H

#include "base/err.h"
#include "base/str.h"
#include "base/types.h"

struct lull_team {
	u32 rank, size;
	void *mpi; /* private: NULL if alone */
};

/* Alone, or with all that the launcher started. */
int lull_team_open(struct lull_team *t, struct lull_err *err);

/* What each process gave: at[i] and len[i] are those of process i. */
struct lull_team_parts {
	char *bytes;
	const char **at;
	u64 *len;
};

/* Give bytes to all and get those of all. Free with lull_team_parts_release(), also if it fails. */
int lull_team_gather(struct lull_team *t, const void *bytes, u64 len, struct lull_team_parts *parts,
		     struct lull_err *err);

/* Free what was gathered. */
void lull_team_parts_release(struct lull_team_parts *parts);

/* Leave; the last call finalises MPI for this process. */
void lull_team_close(struct lull_team *t);

/* The process that prints the answer. */
static inline bool lull_team_speaks(const struct lull_team *t)
{
	return t->rank == 0;
}

#endif
