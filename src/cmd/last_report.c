#include "cmd/last_report.h"

#include <dirent.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include "base/str.h"
#include "base/vec.h"
#include "cause/why.h"
#include "cmd/losses.h"
#include "cmd/why_print.h"
#include "import/import.h"
#include "text/term.h"

/* Larger ones take seconds to analyse (a second for 10 MB), and nobody has asked for it. */
#define MAX_BYTES (16u << 20)

/* The two newest reports of a folder. */
struct found {
	struct lull_str name[2];
	time_t when[2];
	off_t size_bytes;
};

static bool is_report(const char *name)
{
	size_t len = strlen(name);

	return len > 5 && !strcmp(name + len - 5, ".lull") && *name != '.';
}

static void add(struct found *f, const char *name, const struct stat *st)
{
	struct lull_str old = f->name[1];
	int place = !f->name[0].len || st->st_mtime > f->when[0] ||
				    (st->st_mtime == f->when[0] && strcmp(name, f->name[0].at) > 0)
			    ? 0
			    : 1;

	if (place == 1 && f->name[1].len && st->st_mtime <= f->when[1])
		return;
	if (place == 0) {
		f->name[1] = f->name[0];
		f->when[1] = f->when[0];
		f->name[0] = old;
		f->size_bytes = st->st_size;
	}
	lull_str_clear(&f->name[place]);
	lull_str_puts(&f->name[place], name);
	f->when[place] = st->st_mtime;
}

static void look(struct found *f)
{
	DIR *folder = opendir(".");
	const struct dirent *e;
	struct stat st;

	while (folder && (e = readdir(folder)))
		if (is_report(e->d_name) && !stat(e->d_name, &st) && S_ISREG(st.st_mode))
			add(f, e->d_name, &st);
	if (folder)
		closedir(folder);
}

/* "3 minutes ago" */
static void put_age(struct lull_str *to, time_t when)
{
	static const struct {
		long s;
		const char *word;
	} units[] = { { 86400, "day" }, { 3600, "hour" }, { 60, "minute" } };
	long age_s = (long)(time(NULL) - when);

	for (size_t i = 0; i < LULL_COUNT_OF(units); i++) {
		long n = age_s / units[i].s;

		if (n < 1)
			continue;
		lull_str_addf(to, "%ld %s%s ago", n, units[i].word, n == 1 ? "" : "s");
		return;
	}
	lull_str_puts(to, "just now");
}

/* The answer of `lull why`, if it takes no time. False if there is none, with the reason. */
static bool put_verdict(struct lull_reader *r, const struct found *f, FILE *to)
{
	const struct lull_why_options options = { .path = f->name[0].at };
	struct lull_vec none;
	struct lull_why why;
	struct lull_err err;
	bool is_answered;

	if (f->size_bytes > MAX_BYTES) {
		fputs("It is large; lull why says why the GPU waits.\n", to);
		return true;
	}
	lull_losses_warn_cut(r, options.path);
	lull_vec_init(&none, sizeof(struct lull_why_answer));
	is_answered = !lull_why_run(&why, r, &options, &err);
	if (is_answered)
		lull_why_print(to, &why, &none, lull_term_width(to), false);
	else
		lull_term_wrap(to, err.msg, 0, lull_term_width(to));
	lull_why_release(&why);
	lull_vec_release(&none);
	return is_answered;
}

static void put_next(const struct found *f, bool has_verdict, FILE *to)
{
	const char *name = f->name[0].at;

	fprintf(to, "\nNext:\n  lull %s %s\n  lull stats --steady %s\n  lull view %s\n",
		has_verdict ? "why --all" : "info", name, name, name);
	if (f->name[1].len)
		fprintf(to, "  lull diff %s %s\n", f->name[1].at, name);
	fputs("  lull help\n", to);
}

bool lull_last_report(FILE *to)
{
	struct found f = { .size_bytes = 0 };
	struct lull_str age = LULL_STR_INIT;
	struct lull_reader *r = NULL;
	struct lull_err ignored;
	bool has_verdict;

	look(&f);
	if (f.name[0].len && !lull_import_open(f.name[0].at, &r, &ignored)) {
		put_age(&age, f.when[0]);
		fprintf(to, "The last report here is %s, written %s.\n\n", f.name[0].at,
			lull_str_text(&age));
		has_verdict = put_verdict(r, &f, to);
		put_next(&f, has_verdict, to);
		lull_losses_close(r, f.name[0].at);
	}
	lull_str_release(&age);
	lull_str_release(&f.name[0]);
	lull_str_release(&f.name[1]);
	return r != NULL;
}
