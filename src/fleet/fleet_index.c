/*
 * fleet_index - what was read of each report, a line each, beside the reports.
 *
 * The first line has the version: causes and numbers may change with it, so an index of another
 * version is not used. A line that makes no sense is a report that is not known.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/str.h"
#include "base/whole_file.h"
#include "fleet/fleet.h"

#define HEAD "lull-fleet\t2\t" LULL_VERSION "\n"

/*
 * file size mtime state trouble job host rank start elapsed gpus gpu_ns steps step_ns first lost
 * requests p99_ns
 */
#define N_FIELDS 18

/* ---- write ---- */

/* Fields end with a tab, lines with a newline: neither may be in a text. */
static void put_text(struct lull_str *to, const char *text)
{
	for (; *text; text++)
		lull_str_add(to, (u8)*text < ' ' ? " " : text, 1);
	lull_str_add(to, "\t", 1);
}

static void put_entry(struct lull_str *to, const struct lull_fleet_entry *e)
{
	const char *comma = "";

	put_text(to, e->file);
	lull_str_addf(to, "%llu\t%llu\t%d\t", (unsigned long long)e->size_bytes,
		      (unsigned long long)e->mtime_ns, (int)e->state);
	put_text(to, e->trouble);
	put_text(to, e->job);
	put_text(to, e->host);
	lull_str_addf(to, "%lld\t%llu\t%llu\t%u\t%llu\t%llu\t%llu\t%s\t", (long long)e->rank,
		      (unsigned long long)e->start_utc_ns, (unsigned long long)e->elapsed_ns,
		      e->n_gpus, (unsigned long long)e->gpu_ns, (unsigned long long)e->n_steps,
		      (unsigned long long)e->step_ns,
		      e->first < 0 ? "" : lull_causes[e->first]->id);
	for (int i = 0; i < LULL_N_CAUSES; i++) {
		if (!e->lost_ns[i])
			continue;
		lull_str_addf(to, "%s%s=%llu", comma, lull_causes[i]->id,
			      (unsigned long long)e->lost_ns[i]);
		comma = ",";
	}
	lull_str_addf(to, "\t%llu\t%llu\n", (unsigned long long)e->n_requests,
		      (unsigned long long)e->p99_ns);
}

static char *index_path(const char *folder)
{
	struct lull_str path = LULL_STR_INIT;

	lull_str_addf(&path, "%s/" LULL_FLEET_INDEX, folder);
	return path.at;
}

void lull_fleet_index_store(const char *folder, const struct lull_vec *entries)
{
	struct lull_whole_file_rules rules = { .is_overwriting = true };
	struct lull_str text = LULL_STR_INIT;
	struct lull_whole_file place;
	char *path = index_path(folder);
	struct lull_err ignored;
	FILE *to;
	bool is_written;

	lull_str_puts(&text, HEAD);
	for (size_t i = 0; i < entries->n; i++)
		put_entry(&text, lull_vec_get(entries, i));
	if (access(folder, W_OK) == 0 &&
	    lull_whole_file_begin(&place, path, &rules, &ignored) == 0) {
		to = fopen(place.part, "we");
		is_written = to && fwrite(text.at, 1, text.len, to) == text.len;
		if (to && fclose(to) != 0)
			is_written = false;
		lull_whole_file_end(&place, is_written ? 0 : LULL_E_IO, &ignored);
	}
	lull_str_release(&text);
	free(path);
}

/* ---- read ---- */

static int cause_of(const char *id, size_t len)
{
	for (int i = 0; i < LULL_N_CAUSES; i++)
		if (strlen(lull_causes[i]->id) == len && strncmp(lull_causes[i]->id, id, len) == 0)
			return i;
	return -1;
}

static bool take_number(const char *text, u64 *to)
{
	char *end;

	errno = 0;
	*to = strtoull(text, &end, 10);
	return end != text && !*end && !errno;
}

/* id=ns,id=ns */
static bool take_losses(const char *text, u64 *lost_ns)
{
	while (*text) {
		size_t n = strcspn(text, "=");
		int cause = cause_of(text, n);
		char *end;

		if (cause < 0 || text[n] != '=')
			return false;
		lost_ns[cause] = strtoull(text + n + 1, &end, 10);
		if (end == text + n + 1 || (*end && *end != ','))
			return false;
		text = end + (*end == ',');
	}
	return true;
}

static bool take_fields(struct lull_fleet_entry *e, char **field)
{
	u64 state, n_gpus;
	char *end;

	if (!take_number(field[1], &e->size_bytes) || !take_number(field[2], &e->mtime_ns) ||
	    !take_number(field[3], &state) || state >= LULL_FLEET_N_STATES ||
	    !take_number(field[8], &e->start_utc_ns) || !take_number(field[9], &e->elapsed_ns) ||
	    !take_number(field[10], &n_gpus) || !take_number(field[11], &e->gpu_ns) ||
	    !take_number(field[12], &e->n_steps) || !take_number(field[13], &e->step_ns) ||
	    !take_losses(field[15], e->lost_ns) || !take_number(field[16], &e->n_requests) ||
	    !take_number(field[17], &e->p99_ns))
		return false;
	e->state = (enum lull_fleet_state)state;
	e->n_gpus = (u32)n_gpus;
	e->rank = strtoll(field[7], &end, 10);
	e->first = *field[14] ? cause_of(field[14], strlen(field[14])) : -1;
	if (*end || (*field[14] && e->first < 0))
		return false;
	e->trouble = lull_strdup(field[4]);
	e->job = lull_strdup(field[5]);
	e->host = lull_strdup(field[6]);
	return true;
}

static bool split(char *line, char **field)
{
	for (int i = 0; i < N_FIELDS; i++) {
		field[i] = strsep(&line, "\t");
		if (!field[i])
			return false;
	}
	return !line;
}

static int by_file(const void *key, const void *entry)
{
	return strcmp(key, ((const struct lull_fleet_entry *)entry)->file);
}

/* True if the line is about a report as it is now. */
static bool take_line(char *line, struct lull_vec *entries, bool *is_known)
{
	struct lull_fleet_entry known = { 0 }, *e;
	char *field[N_FIELDS];
	size_t ix;

	if (!split(line, field))
		return false;
	e = bsearch(field[0], entries->at, entries->n, sizeof(*e), by_file);
	if (!e)
		return false;
	ix = (size_t)(e - (struct lull_fleet_entry *)entries->at);
	if (is_known[ix] || !take_fields(&known, field))
		return false;
	if (known.size_bytes != e->size_bytes || known.mtime_ns != e->mtime_ns) {
		lull_fleet_entry_release(&known);
		return false;
	}
	known.file = e->file;
	*e = known;
	is_known[ix] = true;
	return true;
}

u32 lull_fleet_index_load(const char *folder, struct lull_vec *entries, bool *is_known)
{
	char *path = index_path(folder), *line = NULL;
	FILE *from = fopen(path, "re");
	size_t room = 0;
	ssize_t n;
	u32 n_known = 0;

	free(path);
	if (!from)
		return 0;
	if (getline(&line, &room, from) > 0 && strcmp(line, HEAD) == 0)
		while ((n = getline(&line, &room, from)) > 0) {
			/* A line without an end was cut. */
			if (line[n - 1] != '\n' || strlen(line) != (size_t)n)
				continue;
			line[n - 1] = '\0';
			n_known += entries->n && take_line(line, entries, is_known);
		}
	free(line);
	fclose(from);
	return n_known;
}
