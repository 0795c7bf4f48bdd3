/*
 * rank - the rank of a process in a job, from the environment variables of its launcher.
 *
 * What it gives:  rank, local rank, number of ranks and name of the job from the variables of
 *                 launchers.def; and whether a list such as "0,8,16-23" contains a rank.
 * Who may call:   any code, including the agent: nothing is allocated, only `get` is called.
 */
#ifndef LULL_WIRE_RANK_H
#define LULL_WIRE_RANK_H

#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "base/types.h"

/* Numbers are -1 if not known. */
struct lull_rank {
	i64 rank;
	i64 local_rank;
	i64 n_ranks;
	const char *launcher; /* its name, NULL if there is none */
};

/* The value of a variable, or NULL. */
typedef const char *lull_rank_get(void *ctx, const char *name);

/* A number of at most 9 digits, or -1. */
static inline i64 lull_rank_number(const char *text)
{
	i64 n = 0;

	if (!text || !*text || strlen(text) > 9)
		return -1;
	for (; *text; text++) {
		if (*text < '0' || *text > '9')
			return -1;
		n = n * 10 + (*text - '0');
	}
	return n;
}

/* What the environment says. */
static inline struct lull_rank lull_rank_read(lull_rank_get *get, void *ctx)
{
	static const struct {
		const char *name, *rank, *local_rank, *n_ranks;
		bool needs_number;
	} launchers[] = {
#define LAUNCHER(name, rank, local_rank, n_ranks, needs) { name, rank, local_rank, n_ranks, needs },
#define JOB(variable)
#include "wire/launchers.def"
#undef LAUNCHER
#undef JOB
	};
	struct lull_rank r = { -1, -1, -1, NULL };

	for (size_t i = 0; i < sizeof(launchers) / sizeof(launchers[0]); i++) {
		const char *local = launchers[i].local_rank, *number = launchers[i].n_ranks;

		r.rank = lull_rank_number(get(ctx, launchers[i].rank));
		r.n_ranks = number ? lull_rank_number(get(ctx, number)) : -1;
		if (r.rank < 0 || (launchers[i].needs_number && r.n_ranks < 1))
			continue;
		r.local_rank = local ? lull_rank_number(get(ctx, local)) : -1;
		r.launcher = launchers[i].name;
		return r;
	}
	return (struct lull_rank){ -1, -1, -1, NULL };
}

#define LULL_JOB_BYTES 128

/* What names the job in an environment, cut to the room; "" if nothing does. */
static inline void lull_rank_job(lull_rank_get *get, void *ctx, char *to, size_t room)
{
	static const char *const variables[] = {
#define LAUNCHER(name, rank, local_rank, n_ranks, needs)
#define JOB(variable) variable,
#include "wire/launchers.def"
#undef LAUNCHER
#undef JOB
	};
	const char *addr = get(ctx, "MASTER_ADDR"), *port = get(ctx, "MASTER_PORT");

	*to = '\0';
	for (size_t i = 0; i < sizeof(variables) / sizeof(variables[0]); i++) {
		const char *value = get(ctx, variables[i]);

		/* "none" is torchrun's own word for a job without a name. */
		if (value && *value && strcmp(value, "none") != 0) {
			snprintf(to, room, "%s", value);
			return;
		}
	}
	if (addr && port)
		snprintf(to, room, "%s:%s", addr, port);
}

#define LULL_RANKS_HEADS "stage-heads:"

/* Parse a number and move past it; -1 if there is none. */
static inline i64 lull_ranks_digits(const char **at)
{
	i64 n = **at >= '0' && **at <= '9' ? 0 : -1;

	for (; **at >= '0' && **at <= '9' && n < 1000000000; (*at)++)
		n = n * 10 + (**at - '0');
	return n;
}

/*
 * True if the list names this rank: "all", numbers and FROM-TO between commas, or "stage-heads:N",
 * the first rank of each of N stages of equal size. An invalid list contains no rank.
 */
static inline bool lull_ranks_has(const char *list, i64 rank, i64 n_ranks)
{
	if (strcmp(list, "all") == 0)
		return true;
	if (strncmp(list, LULL_RANKS_HEADS, sizeof(LULL_RANKS_HEADS) - 1) == 0) {
		i64 n = lull_rank_number(list + sizeof(LULL_RANKS_HEADS) - 1);

		/* A job whose size nobody tells: recorded, rather than missed. */
		return n < 1 || n_ranks < n || rank % (n_ranks / n) == 0;
	}
	while (*list) {
		i64 from = lull_ranks_digits(&list), to = from;

		if (from < 0)
			return false;
		if (*list == '-') {
			list++;
			to = lull_ranks_digits(&list);
		}
		if (rank >= from && rank <= to)
			return true;
		if (*list && *list++ != ',')
			return false;
	}
	return false;
}

#endif
