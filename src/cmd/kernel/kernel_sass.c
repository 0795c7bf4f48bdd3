#include "cmd/kernel/kernel_sass.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/sort.h"
#include "base/str.h"
#include "counter/sass.h"
#include "counter/stall.h"
#include "text/out.h"

/* Instructions that are shown; those of a loop fit. */
#define N_SHOWN 40

/* Samples of one instruction. */
struct place {
	u64 offset_bytes;
	u64 n;
	u64 n_stall;
	const char *stall; /* the reason met most often */
	const char *file;
	u32 line;
};

static const struct lull_out_column columns[] = {
	{ .name = "Samples", .kind = LULL_OUT_PERCENT },
	{ .name = "Offset", .kind = LULL_OUT_TEXT },
	{ .name = "Waits For", .kind = LULL_OUT_TEXT },
	{ .name = "Predicate", .kind = LULL_OUT_TEXT },
	{ .name = "Instruction", .kind = LULL_OUT_TEXT },
	{ .name = "Registers", .kind = LULL_OUT_TEXT },
	{ .name = "Source", .kind = LULL_OUT_TEXT },
};

static int by_samples(const void *a, const void *b)
{
	const struct place *x = a, *y = b;

	return (x->n < y->n) - (x->n > y->n);
}

static int by_offset(const void *a, const void *b)
{
	const struct place *x = a, *y = b;

	return (x->offset_bytes > y->offset_bytes) - (x->offset_bytes < y->offset_bytes);
}

static struct place *place_at(struct lull_vec *all, u64 offset_bytes)
{
	struct place *at = all->at;

	for (size_t i = 0; i < all->n; i++)
		if (at[i].offset_bytes == offset_bytes)
			return &at[i];
	at = lull_vec_push(all);
	at->offset_bytes = offset_bytes;
	at->stall = at->file = "";
	return at;
}

/* The samples of a launch inside the kernel itself, not in functions that it calls. */
static void collect(const struct lull_profile *p, struct lull_reader *r, struct lull_vec *all)
{
	struct lull_pcsample_cols cols;
	struct lull_cursor c;
	size_t n;

	lull_cursor_init(&c, r, LULL_TABLE_pcsample, 0, UINT64_MAX);
	while ((n = lull_cursor_next(&c, &cols)) > 0)
		for (size_t i = 0; i < n; i++) {
			const char *stall = lull_reader_string(r, cols.stall[i], NULL);
			struct place *place;

			if (cols.profiled_id[i] != p->id ||
			    strcmp(lull_reader_string(r, cols.function[i], NULL), p->name) != 0)
				continue;
			place = place_at(all, cols.pc_offset_bytes[i]);
			place->n += cols.n_samples[i];
			place->file = lull_reader_string(r, cols.file[i], NULL);
			place->line = cols.line[i];
			/* A warp that issued waits for nothing. */
			if (cols.n_samples[i] > place->n_stall && strcmp(stall, "selected") != 0) {
				place->n_stall = cols.n_samples[i];
				place->stall = stall;
			}
		}
	lull_cursor_release(&c);
}

/* Append a word for the shell. */
static void add_quoted(struct lull_str *to, const char *word)
{
	lull_str_puts(to, "'");
	for (; *word; word++)
		if (*word == '\'')
			lull_str_puts(to, "'\\''");
		else
			lull_str_add(to, word, 1);
	lull_str_puts(to, "'");
}

/* The machine code of the kernel, if cuobjdump is there and finds it in the program's file. */
static void disassemble(const struct lull_profile *p, struct lull_reader *r, struct lull_vec *to)
{
	size_t n;
	const struct lull_process_row *rows = lull_reader_dim(r, LULL_TABLE_process, &n);
	const char *exe = p->process && p->process <= n
				  ? lull_reader_string(r, rows[p->process - 1].exe, NULL)
				  : "";
	const char *name = lull_reader_string(
		r, p->launch.mangled_name ? p->launch.mangled_name : p->launch.name, NULL);
	struct lull_str command = LULL_STR_INIT, text = LULL_STR_INIT;
	char bytes[16384];
	FILE *pipe;

	if (!*exe || access(exe, R_OK) != 0)
		return;
	lull_str_puts(&command, "command -v cuobjdump >/dev/null && cuobjdump -sass -fun ");
	add_quoted(&command, name);
	lull_str_puts(&command, " ");
	add_quoted(&command, exe);
	lull_str_puts(&command, " 2>/dev/null");
	pipe = popen(lull_str_text(&command), "re");
	while (pipe && (n = fread(bytes, 1, sizeof(bytes), pipe)) > 0)
		lull_str_add(&text, bytes, n);
	if (pipe)
		pclose(pipe);
	lull_sass_parse(lull_str_text(&text), name, p->device.capability, to);
	lull_str_release(&command);
	lull_str_release(&text);
}

static void put(struct lull_out *out, const struct place *place, const struct lull_sass *sass,
		u64 n_samples)
{
	const char *slash = strrchr(place->file, '/');
	int stall = lull_stall_find(place->stall);
	struct lull_str text = LULL_STR_INIT;

	lull_out_row(out);
	lull_out_f64(out, 100 * (f64)place->n / (f64)n_samples);
	lull_str_addf(&text, "0x%04llx", (unsigned long long)place->offset_bytes);
	lull_out_text(out, lull_str_text(&text));
	lull_out_text(out, stall >= 0 ? lull_stalls[stall].title : place->stall);
	lull_out_text(out, sass ? sass->predicate : NULL);
	lull_out_text(out, sass ? sass->text : NULL);
	lull_out_text(out, sass ? sass->registers : NULL);
	lull_str_clear(&text);
	if (*place->file)
		lull_str_addf(&text, "%s:%u", slash ? slash + 1 : place->file, place->line);
	lull_out_text(out, lull_str_text(&text));
	lull_str_release(&text);
}

int lull_kernel_print_sass(const struct lull_profile *p, struct lull_reader *r, FILE *to,
			   struct lull_err *err)
{
	const struct lull_out_options options = LULL_OUT_OPTIONS_INIT;
	struct lull_vec places, sass;
	struct lull_out out;
	int rc = LULL_OK;

	lull_vec_init(&places, sizeof(struct place));
	lull_vec_init(&sass, sizeof(struct lull_sass));
	if (p->n_samples)
		collect(p, r, &places);
	if (places.n)
		disassemble(p, r, &sass);
	if (sass.n) {
		lull_sort(places.at, places.n, sizeof(struct place), by_samples);
		places.n = places.n < N_SHOWN ? places.n : N_SHOWN;
		lull_sort(places.at, places.n, sizeof(struct place), by_offset);
		lull_out_init(&out, columns, LULL_COUNT_OF(columns));
		for (size_t i = 0; i < places.n; i++) {
			const struct place *place = lull_vec_get(&places, i);

			put(&out, place, lull_sass_at(&sass, place->offset_bytes), p->n_samples);
		}
		fputs("\nInstructions\n", to);
		rc = lull_out_write(&out, &options, to, err);
		lull_out_release(&out);
	}
	lull_vec_release(&places);
	lull_vec_release(&sass);
	return rc;
}
