/*
 * jevent - parse one event of a Chrome trace, the text between two braces.
 *
 * What it gives:  the fields that every event has, the arguments of args.def by number, and the
 *                 names of arguments that are not in that list.
 * Ownership:      texts point into the window of the scanner: valid until it is refilled.
 * Speed: nothing is copied or converted unless it is requested.
 */
#ifndef LULL_IMPORT_JEVENT_H
#define LULL_IMPORT_JEVENT_H

#include "text/jscan.h"
#include "base/types.h"

enum lull_arg {
#define ARG(name, kind, text) LULL_ARG_##name,
#include "import/args.def"
#undef ARG
	LULL_N_ARGS
};

/* Unknown names that are kept of one event; more are counted only. */
#define LULL_JEVENT_UNKNOWN 8

/* A process or thread: a number, or a text where the program wrote one. */
struct lull_jevent_ref {
	i64 number;
	struct lull_jtext text; /* at == NULL if it is a number */
};

struct lull_jevent {
	char ph;
	bool has_ts, has_dur;
	i64 ts_ns;
	i64 dur_ns;
	struct lull_jtext category;
	struct lull_jtext name;
	struct lull_jtext id;	/* of async and flow events, as it stands */
	struct lull_jtext args; /* as they stand, braces included; at == NULL if there are none */
	struct lull_jevent_ref pid;
	struct lull_jevent_ref tid;
	u64 seen[(LULL_N_ARGS + 63) / 64]; /* bit of each argument that is there */
	union {
		i64 i;
		struct lull_jtext text;
	} arg[LULL_N_ARGS];
	u32 n_unknown;
	struct lull_jtext unknown[LULL_JEVENT_UNKNOWN];
};

/*
 * A piece of text that was met between two values, such as `, "tid": `, and what it means. Events
 * are written by machines: after one piece the next is nearly always one of a few. To compare it
 * with those is faster than to take it apart, because the CPU need not wait for where it ends.
 */
#define LULL_JEVENT_PIECE 48 /* longest */
#define LULL_JEVENT_WAYS  4  /* pieces that are remembered to follow one */

struct lull_jevent_piece {
	u64 head, head_mask; /* its first eight bytes, fewer if it is shorter */
	u64 tail;	     /* its last eight bytes, if it is longer */
	u16 len;
	int16_t what; /* private to jevent.c: field, argument, or brace */
	u16 key_off;  /* where in the text the key is */
	u16 key_len;
	u16 next[LULL_JEVENT_WAYS]; /* index + 1 of pieces that followed it, 0 for none */
	char text[LULL_JEVENT_PIECE];
};

/* How keys are found: those of args.def by their text, and those met by what was before them. */
struct lull_jevent_names {
	struct lull_jevent_slot {
		u64 head, tail;
		u32 len;
		u32 arg;		      /* number + 1, 0 for an empty slot */
	} slots[256];			      /* private: names of args.def */
	struct lull_jevent_piece pieces[512]; /* private: the first is the start of an event */
	u16 n_pieces;
	struct lull_jevent_piece words[16]; /* private: categories with their quotes */
	u32 n_words;
	u16 places[1024]; /* private: index + 1 of pieces by hash */
};

/* None met yet. */
void lull_jevent_names_init(struct lull_jevent_names *names);

/*
 * Take the event at j->p, which is its brace. BAD if it is no object of pairs; j->p is then
 * somewhere inside.
 */
enum lull_jscan_result lull_jevent_take(struct lull_jscan *j, struct lull_jevent_names *names,
					struct lull_jevent *e);

/* Whether the event has this argument. */
static inline bool lull_jevent_has(const struct lull_jevent *e, enum lull_arg arg)
{
	return e->seen[arg / 64] >> (arg % 64) & 1;
}

/* The value of an INT argument, `otherwise` if it is absent. */
static inline i64 lull_jevent_int(const struct lull_jevent *e, enum lull_arg arg, i64 otherwise)
{
	return lull_jevent_has(e, arg) ? e->arg[arg].i : otherwise;
}

/* The value of a TEXT argument, empty if it is absent. */
static inline struct lull_jtext lull_jevent_text(const struct lull_jevent *e, enum lull_arg arg)
{
	return lull_jevent_has(e, arg) ? e->arg[arg].text : (struct lull_jtext){ "", 0, false };
}

#endif
