/*
 * values - what numbers of the report are in the tables of nsys: ids of processes and threads,
 * domains, kinds of memory, and strings that only nsys has.
 *
 * Ids:     nsys packs hardware, virtual machine, process and thread into 64 bits: 8, 8, 24, 24. As
 *          it does on one machine, hardware is 0 and the virtual machine 1.
 * Threads: one at a time. Tables are made at first use and kept.
 */
#ifndef LULL_QUERY_VALUES_H
#define LULL_QUERY_VALUES_H

#include "base/intern.h"
#include "base/map.h"
#include "model/span.h"
#include "query/table.h"

#define LULL_NSYS_VM 1

struct lull_values {
	struct lull_reader *reader;
	struct lull_vec luts;	  /* private: struct lull_lut */
	struct lull_intern extra; /* strings after those of the report */
	u32 n_strings;		  /* of the report */
	bool has_extra;
	struct lull_map domains; /* string id of a domain to its number */
	bool has_domains;
	const bool *is_stopped;	 /* set to stop the query; borrowed */
	struct lull_span window; /* events outside of it are not shown */
};

/* Nothing known yet. */
void lull_values_init(struct lull_values *v, struct lull_reader *r, const bool *is_stopped);

/* Free everything. */
void lull_values_release(struct lull_values *v);

/* The function of this name ("gtid"), or NULL. */
lull_value_fn *lull_values_fn(const char *name, size_t len);

/* What says the texts of a list of names ("copy_name"), or NULL. */
lull_name_fn *lull_values_names(const char *name, size_t len);

/* The values of a path ("device.device_id") for all rows of a dimension, by row id. */
const i64 *lull_values_lut(struct lull_values *v, const struct lull_table_desc *dim,
			   const struct lull_cell *cell);

/* Strings of the report and those that only nsys has: ids are 1 to this number. */
u32 lull_values_n_strings(struct lull_values *v);

/* The text of one of them. */
const char *lull_values_string(struct lull_values *v, u32 id, size_t *len);

/* The packed id of a process and a thread. */
static inline i64 lull_nsys_id(u32 pid, u32 tid)
{
	return (i64)((u64)LULL_NSYS_VM << 48 | (u64)(pid & 0xffffff) << 24 | (tid & 0xffffff));
}

/* Number of an NVTX domain, by the string id of its name; 0 is the default one. */
i64 lull_values_domain(struct lull_values *v, i64 name);

#endif
