/*
 * folded: one line for each stack, for flame graphs (flamegraph.pl, speedscope, inferno).
 *
 *	python3 10;main 11;start;main;compute;kernel_entry_[k] 12000000
 *
 * Outermost first: process, thread, functions. Functions of the system's kernel end in _[k],
 * inlined ones in _[i], compiled at run time in _[j], as flame graphs colour them. The weight is
 * CPU time in nanoseconds; for Python samples their number.
 */
#include <stdlib.h>
#include <string.h>

#include "base/str.h"
#include "export/outbuf.h"
#include "export/weigh.h"
#include "model/callpath.h"

/* A name as part of a line: what separates is replaced. */
static void add_name(struct lull_str *line, const char *name)
{
	for (; *name; name++) {
		char c = *name == ';' ? ':' : *name == '\n' || *name == '\r' ? ' ' : *name;

		lull_str_add(line, &c, 1);
	}
}

/* Functions that were inlined at this place, outermost first; they are between semicolons. */
static void add_inlined(struct lull_str *line, const char *inlined)
{
	while (*inlined) {
		size_t len = strcspn(inlined, ";");

		if (len) {
			lull_str_puts(line, ";");
			lull_str_add(line, inlined, len);
			lull_str_puts(line, "_[i]");
		}
		inlined += len + (inlined[len] != 0);
	}
}

static void add_frame(const struct lull_weigh *s, struct lull_str *line, u32 frame)
{
	const struct lull_frame_row *row = frame ? &s->frames[frame - 1] : NULL;
	struct lull_str name = LULL_STR_INIT;

	lull_weigh_name(s, frame, &name);
	lull_str_puts(line, ";");
	add_name(line, lull_str_text(&name));
	lull_str_release(&name);
	if (!row)
		return;
	if (row->kind == LULL_FRAME_KERNEL)
		lull_str_puts(line, "_[k]");
	else if (row->kind == LULL_FRAME_JIT)
		lull_str_puts(line, "_[j]");
	else if (row->kind == LULL_FRAME_INLINED)
		lull_str_puts(line, "_[i]");
	add_inlined(line, lull_reader_string(s->reader, row->inlined, NULL));
}

static void add_line(const struct lull_weigh *s, const struct lull_weigh_entry *entry, u32 *frames,
		     struct lull_str *line)
{
	struct lull_str name = LULL_STR_INIT;
	bool is_cut;
	size_t n = lull_weigh_frames(s, entry->stack, frames, &is_cut);

	lull_str_clear(line);
	lull_weigh_process(s, entry->lane, &name);
	add_name(line, lull_str_text(&name));
	lull_str_puts(line, ";");
	lull_str_clear(&name);
	lull_weigh_thread(s, entry->lane, &name);
	add_name(line, lull_str_text(&name));
	lull_str_release(&name);
	if (is_cut)
		lull_str_puts(line, ";[cut off]");
	while (n)
		add_frame(s, line, frames[--n]);
	lull_str_addf(line, " %llu\n",
		      (unsigned long long)(s->is_python ? entry->n_samples : entry->weight_ns));
}

static int write_report(struct lull_reader *r, const struct lull_export_options *options, FILE *to,
			struct lull_err *err)
{
	struct lull_str line = LULL_STR_INIT;
	struct lull_weigh stacks;
	struct lull_outbuf out;
	u32 frames[LULL_WEIGH_DEPTH];
	int rc = lull_weigh_init(&stacks, r, options, err);

	if (!rc) {
		lull_outbuf_init(&out, to, LULL_OUTBUF_PLAIN);
		for (size_t i = 0; i < stacks.entries.n; i++) {
			add_line(&stacks, lull_vec_get(&stacks.entries, i), frames, &line);
			lull_outbuf_add(&out, line.at, line.len);
		}
		rc = lull_outbuf_finish(&out, err);
	}
	lull_str_release(&line);
	lull_weigh_release(&stacks);
	return rc;
}

const struct lull_export lull_export_folded = {
	.name = "folded",
	.suffix = ".folded",
	.summary = "call stacks of samples, one per line, for flame graphs",
	.write = write_report,
};
