#include "lsp/diagnose.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/mem.h"
#include "cause/remark.h"
#include "import/import.h"
#include "text/source_lines.h"

static bool is_newer(const char *file, const char *report)
{
	struct stat a, b;

	if (stat(file, &a) || stat(report, &b))
		return false;
	return a.st_mtim.tv_sec != b.st_mtim.tv_sec ? a.st_mtim.tv_sec > b.st_mtim.tv_sec
						    : a.st_mtim.tv_nsec > b.st_mtim.tv_nsec;
}

static void add(const struct lull_why *why, const struct lull_remark *remark,
		const char *const *folders, struct lull_vec *all)
{
	const struct lull_location *at = &remark->finding->at;
	const char *dot = at->function ? strrchr(at->function, '.') : NULL;
	const struct lull_source_place place = { at->file, at->line, dot ? dot + 1 : at->function };
	struct lull_str path = LULL_STR_INIT, text = LULL_STR_INIT;
	struct lull_diagnosis *d;

	if (lull_source_find(&place, folders, &path)) {
		lull_remark_text(why, remark, &text);
		d = lull_vec_push(all);
		d->file = realpath(path.at, NULL);
		d->line = at->line;
		d->cause = lull_causes[remark->finding->cause]->id;
		d->is_first = remark->is_first;
		d->is_old = is_newer(path.at, why->path);
		if (d->is_old)
			lull_str_puts(&text, " The file has changed since the recording.");
		d->text = lull_strdup(text.at);
	}
	lull_str_release(&path);
	lull_str_release(&text);
}

static void add_all(const struct lull_why *why, const char *folder, struct lull_vec *all)
{
	const char *slash = strrchr(why->path, '/');
	struct lull_str beside = LULL_STR_INIT;
	const struct lull_remark *remark;
	struct lull_vec remarks;

	lull_str_add(&beside, why->path, slash ? (size_t)(slash - why->path) : 0);
	lull_remarks(why, &remarks);
	remark = remarks.at;
	for (size_t i = 0; i < remarks.n; i++)
		add(why, &remark[i],
		    (const char *const[]){ folder, lull_reader_fact(why->reader, "environment.PWD"),
					   lull_str_text(&beside), NULL },
		    all);
	lull_vec_release(&remarks);
	lull_str_release(&beside);
}

int lull_diagnose(const char *report, const char *folder, struct lull_vec *all,
		  struct lull_err *err)
{
	const struct lull_why_options options = { .path = report };
	struct lull_reader *r;
	struct lull_why why;
	int rc;

	lull_vec_init(all, sizeof(struct lull_diagnosis));
	if (lull_import_open(report, &r, err))
		return err->code;
	rc = lull_why_run(&why, r, &options, err);
	if (!rc)
		add_all(&why, folder, all);
	lull_why_release(&why);
	lull_reader_close(r);
	return rc;
}

void lull_diagnose_release(struct lull_vec *all)
{
	struct lull_diagnosis *d = all->at;

	for (size_t i = 0; i < all->n; i++) {
		free(d[i].file);
		free(d[i].text);
	}
	lull_vec_release(all);
}
