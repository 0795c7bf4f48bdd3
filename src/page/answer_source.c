/*
 * source: which files of the program samples were in, and one of them line by line.
 *
 *	source[?file=/srv/app/train.py | ?n=0][&from=&to= | &whole=1]
 *	{"from", "to", "is_steady", "files": [[file, is_python, weight, total], ...],
 *	 "file", "why", "times": [[line, own, all], ...], "lines": [[line, text], ...]}
 *
 * `own` is the weight of samples in which the line was the innermost of the program, `all` of those
 * in which it was on the stack. Python's samples count one each, those of CPUs their nanoseconds.
 * `n` is the number of a file in the list. Without a window it is of the steady steps, as the flame
 * graph. Lines come from the folder that the page may read (page/source_file.h); `why` says why
 * there are none. In a page that is one file, only lines around those with samples are told.
 */
#include "page/page.h"

#include <stdlib.h>
#include <string.h>

#include "base/map.h"
#include "base/mem.h"
#include "base/sort.h"
#include "base/str.h"
#include "page/frames.h"
#include "page/page_open.h"
#include "page/source_file.h"

#define MAX_FILES  40u
#define MAX_LINES  20000u
#define MAX_DEPTH  512
#define LINES_NEAR 12u /* around a line with samples, in a page that is one file */

enum { NATIVE, PYTHON, N_KINDS };

struct file {
	u32 name; /* string */
	bool is_python;
	u64 weight;
};

struct line {
	u32 line;
	u64 own, all;
};

struct source {
	struct lull_reader *r;
	const struct lull_stack_row *stacks;
	const struct lull_frame_row *frames;
	size_t n_stacks, n_frames;
	u64 *self[N_KINDS]; /* weight by stack */
	u64 total[N_KINDS];
	struct lull_vec files; /* struct file */
	struct lull_vec lines; /* struct line */
};

/* ---- samples ---- */

static void add(struct source *s, int kind, u32 stack, u64 weight)
{
	if (stack <= s->n_stacks)
		s->self[kind][stack] += weight;
	s->total[kind] += weight;
}

static void add_samples(struct source *s, struct lull_span span)
{
	struct lull_cursor c;
	struct lull_sample_cols cols;
	struct lull_pysample_cols py;
	size_t n;

	lull_cursor_init(&c, s->r, LULL_TABLE_sample, span.from_ns, span.to_ns);
	while ((n = lull_cursor_next(&c, &cols)) > 0)
		for (size_t i = 0; i < n; i++)
			if (cols.start_ns[i] >= span.from_ns && cols.start_ns[i] < span.to_ns)
				add(s, NATIVE, cols.stack[i], cols.weight_ns[i]);
	lull_cursor_release(&c);
	lull_cursor_init(&c, s->r, LULL_TABLE_pysample, span.from_ns, span.to_ns);
	while ((n = lull_cursor_next(&c, &py)) > 0)
		for (size_t i = 0; i < n; i++)
			if (py.start_ns[i] >= span.from_ns && py.start_ns[i] < span.to_ns)
				add(s, PYTHON, py.stack[i], 1);
	lull_cursor_release(&c);
}

/* The innermost frame of the program that has a file; NULL if the stack has none. */
static const struct lull_frame_row *own_frame(const struct source *s, u32 stack)
{
	u32 frame = lull_frame_of_stack(s->r, stack);
	const struct lull_frame_row *f =
		frame && frame <= s->n_frames ? &s->frames[frame - 1] : NULL;

	return f && f->file && lull_frame_is_own(s->r, f) ? f : NULL;
}

static int by_weight(const void *a, const void *b)
{
	const struct file *x = a, *y = b;

	if (x->is_python != y->is_python)
		return x->is_python ? -1 : 1;
	if (x->weight != y->weight)
		return x->weight > y->weight ? -1 : 1;
	return (x->name > y->name) - (x->name < y->name);
}

static void find_files(struct source *s)
{
	struct lull_map known;

	lull_map_init(&known);
	for (u32 id = 1; id <= s->n_stacks; id++)
		for (int kind = 0; kind < N_KINDS; kind++) {
			const struct lull_frame_row *f =
				s->self[kind][id] ? own_frame(s, id) : NULL;
			struct file *file;
			u32 *ix;

			if (!f)
				continue;
			ix = lull_map_add(&known, (u64)f->file * N_KINDS + (u64)kind, NULL);
			if (!*ix) {
				file = lull_vec_push(&s->files);
				*file = (struct file){ f->file, kind == PYTHON, 0 };
				*ix = (u32)s->files.n;
			}
			file = lull_vec_get(&s->files, *ix - 1);
			file->weight += s->self[kind][id];
		}
	lull_map_release(&known);
	if (s->files.n)
		lull_sort(s->files.at, s->files.n, sizeof(struct file), by_weight);
}

/* ---- lines ---- */

static struct line *line_of(struct source *s, struct lull_map *known, u32 number)
{
	u32 *ix = lull_map_add(known, number, NULL);

	if (!*ix) {
		struct line *line = lull_vec_push(&s->lines);

		line->line = number;
		*ix = (u32)s->lines.n;
	}
	return lull_vec_get(&s->lines, *ix - 1);
}

/* Add a stack to the lines of a file that are on it, to each once. */
static void add_stack(struct source *s, struct lull_map *known, const struct file *file, u32 stack)
{
	u64 weight = s->self[file->is_python][stack];
	const struct lull_frame_row *own = own_frame(s, stack);
	u32 seen[MAX_DEPTH];
	size_t n_seen = 0;

	if (own && own->file == file->name)
		line_of(s, known, own->line)->own += weight;
	for (int depth = 0; depth < MAX_DEPTH && stack && stack <= s->n_stacks; depth++) {
		u32 frame = s->stacks[stack - 1].frame;
		bool is_seen = false;

		stack = s->stacks[stack - 1].parent;
		if (!frame || frame > s->n_frames || s->frames[frame - 1].file != file->name)
			continue;
		for (size_t i = 0; i < n_seen && !is_seen; i++)
			is_seen = seen[i] == s->frames[frame - 1].line;
		if (is_seen)
			continue;
		seen[n_seen++] = s->frames[frame - 1].line;
		line_of(s, known, s->frames[frame - 1].line)->all += weight;
	}
}

static int by_line(const void *a, const void *b)
{
	const struct line *x = a, *y = b;

	return (x->line > y->line) - (x->line < y->line);
}

static void find_lines(struct source *s, const struct file *file)
{
	struct lull_map known;

	lull_map_init(&known);
	for (u32 id = 1; id <= s->n_stacks; id++)
		if (s->self[file->is_python][id])
			add_stack(s, &known, file, id);
	lull_map_release(&known);
	if (s->lines.n)
		lull_sort(s->lines.at, s->lines.n, sizeof(struct line), by_line);
}

static bool is_near(const struct source *s, u32 number)
{
	const struct line *lines = s->lines.at;

	for (size_t i = 0; i < s->lines.n; i++)
		if (lines[i].line + LINES_NEAR >= number && lines[i].line <= number + LINES_NEAR)
			return true;
	return false;
}

/* ---- the answer ---- */

static void put_text(struct lull_json *j, const struct source *s, const char *text, bool is_cut)
{
	lull_json_key(j, "lines");
	lull_json_array(j);
	for (u32 number = 1; *text && number <= MAX_LINES; number++) {
		size_t len = strcspn(text, "\n");

		if (!is_cut || is_near(s, number)) {
			lull_json_array(j);
			lull_json_u64(j, number);
			lull_json_bytes(j, text, len);
			lull_json_end(j);
		}
		text += len + (text[len] != 0);
	}
	lull_json_end(j);
}

static void put_file(struct lull_json *j, struct lull_question *q, struct source *s,
		     const struct file *file)
{
	const char *name = lull_reader_string(s->r, file->name, NULL);
	const char *folder = q->page->source_dir;
	struct lull_err why = { LULL_OK, "" };
	struct lull_str text = LULL_STR_INIT;
	const struct line *lines;

	find_lines(s, file);
	lines = s->lines.at;
	lull_page_pair_text(j, "file", name);
	lull_json_key(j, "times");
	lull_json_array(j);
	for (size_t i = 0; i < s->lines.n; i++) {
		lull_json_array(j);
		lull_json_u64(j, lines[i].line);
		lull_json_u64(j, lines[i].own);
		lull_json_u64(j, lines[i].all);
		lull_json_end(j);
	}
	lull_json_end(j);
	if (!folder)
		lull_fail(&why, LULL_E_NOT_FOUND, "source was not asked for");
	else
		lull_source_read(folder, name, &text, &why);
	if (why.code)
		lull_page_pair_text(j, "why", why.msg);
	else
		put_text(j, s, lull_str_text(&text), q->page->is_offline);
	lull_str_release(&text);
}

static void put_files(struct lull_json *j, const struct source *s)
{
	const struct file *files = s->files.at;

	lull_json_key(j, "files");
	lull_json_array(j);
	for (size_t i = 0; i < s->files.n && i < MAX_FILES; i++) {
		lull_json_array(j);
		lull_json_text(j, lull_reader_string(s->r, files[i].name, NULL));
		lull_json_u64(j, files[i].is_python);
		lull_json_u64(j, files[i].weight);
		lull_json_u64(j, s->total[files[i].is_python]);
		lull_json_end(j);
	}
	lull_json_end(j);
}

/* The file that is asked for, which has to be one of those with samples; NULL for none. */
static int choose(struct lull_question *q, const struct source *s, const struct file **file,
		  struct lull_err *err)
{
	const char *name = lull_args_get(q->args, "file");
	u64 n;

	*file = NULL;
	if (lull_args_u64(q->args, "n", UINT32_MAX, UINT64_MAX, &n, err))
		return err->code;
	if (n < s->files.n)
		*file = lull_vec_get(&s->files, (size_t)n);
	for (size_t i = 0; name && i < s->files.n && !*file; i++) {
		const struct file *one = lull_vec_get(&s->files, i);

		if (!strcmp(lull_reader_string(s->r, one->name, NULL), name))
			*file = one;
	}
	if ((name || n != UINT64_MAX) && !*file)
		return lull_fail(err, LULL_E_NOT_FOUND, "no sample was in %s in this time",
				 name ? name : "that file");
	return LULL_OK;
}

static int put(struct lull_question *q, struct source *s, struct lull_span span, bool is_steady,
	       struct lull_err *err)
{
	const struct lull_timeline *t = q->report->timeline;
	struct lull_span shown = lull_span_cut(span, t->span.from_ns, t->span.to_ns);
	const struct file *file;
	struct lull_json j;

	find_files(s);
	if (choose(q, s, &file, err))
		return err->code;
	lull_json_init(&j, q->to);
	lull_json_object(&j);
	lull_page_pair_u64(&j, "from", shown.from_ns - t->origin_ns);
	lull_page_pair_u64(&j, "to", shown.to_ns - t->origin_ns);
	lull_page_pair_bool(&j, "is_steady", is_steady);
	put_files(&j, s);
	if (file)
		put_file(&j, q, s, file);
	lull_json_end(&j);
	return LULL_OK;
}

static int run(struct lull_question *q, struct lull_err *err)
{
	struct source s = { .r = q->reader };
	struct lull_span span;
	bool is_steady;
	int rc;

	if (lull_args_span(q->args, q->report->timeline->origin_ns, &span, err))
		return err->code;
	is_steady = !lull_args_get(q->args, "from") && !lull_args_get(q->args, "to") &&
		    !lull_args_get(q->args, "whole") && lull_page_steady(q->report, &span);
	s.stacks = lull_reader_dim(s.r, LULL_TABLE_stack, &s.n_stacks);
	s.frames = lull_reader_dim(s.r, LULL_TABLE_frame, &s.n_frames);
	for (int kind = 0; kind < N_KINDS; kind++)
		s.self[kind] = lull_alloc(s.n_stacks + 1, sizeof(*s.self[kind]));
	lull_vec_init(&s.files, sizeof(struct file));
	lull_vec_init(&s.lines, sizeof(struct line));
	add_samples(&s, span);
	rc = put(q, &s, span, is_steady, err);
	for (int kind = 0; kind < N_KINDS; kind++)
		free(s.self[kind]);
	lull_vec_release(&s.files);
	lull_vec_release(&s.lines);
	return rc;
}

const struct lull_answer lull_answer_source = {
	.name = "source",
	.type = "application/json",
	.is_slow = true,
	.is_packed = true,
	.run = run,
};
