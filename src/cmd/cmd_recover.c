/*
 * lull recover - finish a report whose recorder died.
 *
 * If the recorder's shared memory still exists, events since the last checkpoint are added;
 * otherwise only the file is repaired. The original of a finished report that was cut off or
 * damaged later is kept under another name, since it may have bytes that we cannot read but its
 * owner needs.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "text/opt.h"
#include "base/str.h"
#include "text/term.h"
#include "base/vec.h"
#include "cmd/cmd.h"
#include "record/session/salvage.h"
#include "trace/recover.h"

static int recover_session(const struct lull_session_entry *entry, struct lull_err *err)
{
	struct lull_salvage_result result;
	int rc = lull_salvage(entry, &result, err);

	if (rc)
		return rc;
	fprintf(stderr, "lull: %s  %s events, %s of them from shared memory of %u process%s\n",
		entry->report_path, lull_format_count(result.n_rows).text,
		lull_format_count(result.n_recovered).text, result.n_processes,
		result.n_processes == 1 ? "" : "es");
	if (result.n_alive)
		fprintf(stderr, "lull: processes that still run: %u; they are no longer recorded\n",
			result.n_alive);
	return 0;
}

/* A second name for the file, PATH.cut or PATH.cut2 and so on; it outlives what PATH becomes. */
static int keep(const char *path, struct lull_str *kept, struct lull_err *err)
{
	unsigned n = 1;

	do {
		lull_str_clear(kept);
		lull_str_addf(kept, "%s.cut", path);
		if (n > 1)
			lull_str_addf(kept, "%u", n);
		if (!link(path, kept->at))
			return LULL_OK;
	} while (errno == EEXIST && n++ < 1000);
	return lull_fail(err, LULL_E_IO,
			 "%s cannot be renamed: %s; give another name for the result: lull recover "
			 "-o OUT %s",
			 path, strerror(errno), path);
}

/* Make a report of the file alone, which is damaged. *kept is what it is called now, if that. */
static int make_whole(const char *path, const char *output, struct lull_str *kept,
		      struct lull_recover_stats *stats, struct lull_err *err)
{
	char *name = lull_recover_name(path);
	bool is_part = strcmp(name, path) != 0;
	int rc;

	free(name);
	if (output || is_part)
		return lull_recover_file(path, output, stats, err);
	if (keep(path, kept, err))
		return err->code;
	rc = lull_recover_file(kept->at, path, stats, err);
	if (rc) {
		unlink(kept->at);
		lull_str_clear(kept);
	}
	return rc;
}

static int recover_file(const char *path, const char *output, struct lull_err *err)
{
	struct lull_recover_stats stats;
	struct lull_str kept = LULL_STR_INIT;
	char *name;
	int rc = lull_recover_look(path, &stats, err);

	if (rc)
		return rc;
	if (!stats.was_sealed && !stats.n_rows)
		return lull_fail(err, LULL_E_FORMAT,
				 "%s has no complete row of data, so there is nothing to recover; "
				 "the file was not changed",
				 path);
	rc = stats.was_sealed ? lull_recover_file(path, output, &stats, err)
			      : make_whole(path, output, &kept, &stats, err);
	name = lull_recover_name(path);
	if (!rc)
		fprintf(stderr,
			"lull: %s  %s rows in %llu blocks; lost: %llu damaged block%s, %s\n",
			output ? output : name, lull_format_count(stats.n_rows).text,
			(unsigned long long)stats.n_blocks, (unsigned long long)stats.n_damaged,
			stats.n_damaged == 1 ? "" : "s", lull_format_bytes(stats.lost_bytes).text);
	if (!rc && kept.len)
		fprintf(stderr, "lull: %s  the original file\n", kept.at);
	lull_str_release(&kept);
	free(name);
	return rc;
}

/* All reports of dead recorders; a session that recorded nothing is only cleaned up. */
static int recover_all(struct lull_err *err)
{
	struct lull_vec all;
	size_t n = 0;
	int rc = 0;

	lull_vec_init(&all, sizeof(struct lull_session_entry));
	lull_session_list(&all);
	for (size_t i = 0; i < all.n && !rc; i++) {
		const struct lull_session_entry *e = lull_vec_get(&all, i);
		struct lull_session session;

		if (e->is_alive)
			continue;
		n++;
		/* He may have written anything there, such as the name of a file of ours. */
		if (e->owner != geteuid()) {
			fprintf(stderr,
				"lull: warning: %s belongs to user %u and is left alone; name its "
				"report to finish it: lull recover x.lull.part\n",
				e->path, e->owner);
			continue;
		}
		if (*e->report_path)
			rc = recover_session(e, err);
		else if (lull_session_open(&session, e->path, err) == 0)
			lull_session_remove(&session);
	}
	lull_vec_release(&all);
	if (!rc && !n)
		fprintf(stderr, "lull: there is no unfinished report of a recorder that died; to "
				"repair a file, give its name: lull recover x.lull.part\n");
	return rc;
}

int cmd_recover(int argc, char **argv, struct lull_err *err)
{
	const char *output = NULL;
	const struct lull_opt opts[] = {
		OPT_USAGE("lull recover [-o OUT] [FILE.lull.part]",
			  "Finish a report whose recorder died."),
		OPT_STR('o', "output", "OUT", &output, "write a copy and leave FILE unchanged"),
		OPT_END(),
	};
	int first = lull_opt_parse(argc, argv, opts, err);
	struct lull_session_entry entry;

	if (first < 0)
		return first;
	if (argc - first > 1)
		return lull_fail(err, LULL_E_USAGE, "give one file at a time");
	if (first == argc)
		return recover_all(err);
	if (!output && lull_salvage_find(argv[first], &entry))
		return recover_session(&entry, err);
	return recover_file(argv[first], output, err);
}
