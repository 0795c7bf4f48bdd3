/*
 * What is known before the program runs: where our own files are, how it is to be run, which
 * remedies there are and which of them the options name.
 */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/loader.h"
#include "base/str.h"
#include "record/session/locate.h"
#include "try/try_int.h"

/* Blocks of a run: enough for a median, few enough that waiting for the device costs nothing. */
#define N_BLOCKS 4

/* Steps that take longer than this, all of them, are measured in smaller number. */
#define MOST_MS 8000

/* What changes calls of CUDA (src/mend), beside the agent. */
#define MEND_NAME "liblull-mend.so"

/* Whether a word names Python or a launcher that is written in it. */
static bool is_python_word(const char *word)
{
	static const char *const names[] = { "python", "torchrun", "accelerate", "deepspeed" };
	const char *slash = strrchr(word, '/');

	word = slash ? slash + 1 : word;
	for (size_t i = 0; i < LULL_COUNT_OF(names); i++)
		if (strncmp(word, names[i], strlen(names[i])) == 0)
			return true;
	return false;
}

/*
 * A program whose steps come from lull.h needs the agent; one of another C library cannot load it.
 */
static bool needs_agent(const char *program)
{
	int fd = lull_loader_search(program, getenv("PATH"));
	bool can = fd < 0 || lull_loader_fits(fd);

	if (fd >= 0)
		close(fd);
	return can && !is_python_word(program);
}

static int locate(struct lull_try *t, struct lull_err *err)
{
	if (lull_locate_agent(&t->agent, err))
		return err->code;
	if (!lull_locate_python(t->agent.at, &t->python))
		return lull_fail(err, LULL_E_NOT_FOUND, "the folder python is missing beside %s",
				 t->agent.at);
	lull_str_add(&t->mend, t->agent.at, (size_t)(strrchr(t->agent.at, '/') - t->agent.at));
	lull_str_puts(&t->mend, "/" MEND_NAME);
	if (strpbrk(t->agent.at, LULL_PRELOAD_GAPS) && needs_agent(t->options->argv[0]))
		return lull_fail(err, LULL_E_USAGE,
				 "'%s': a path with a space or a colon cannot be preloaded",
				 t->agent.at);
	return LULL_OK;
}

static void settle_how(struct lull_try *t)
{
	const struct lull_try_options *o = t->options;

	t->how.argv = o->argv;
	t->how.python = t->python.at;
	t->how.agent = needs_agent(o->argv[0]) ? t->agent.at : NULL;
	t->how.mend = t->mend.at;
	t->how.n_warmup = o->n_warmup;
	t->how.n_steps = o->n_steps;
	t->how.n_block = o->n_steps / N_BLOCKS ? o->n_steps / N_BLOCKS : 1;
	t->how.most_ms = o->is_timed ? MOST_MS : 0;
	t->how.is_whole = t->how.has_start = o->is_whole;
	t->how.limit_s = o->limit_s;
}

void lull_try_settle_steps(struct lull_try *t)
{
	const struct lull_try_seen *seen = &t->base.last.seen;

	t->how.most_ms = 0;
	if (t->how.is_whole || !seen->has_ended || seen->n_measured >= t->how.n_steps)
		return;
	t->how.is_long = true;
	t->how.n_steps = seen->n_measured;
	t->how.n_block = seen->n_measured / N_BLOCKS ? seen->n_measured / N_BLOCKS : 1;
	if (seen->n_steps && seen->n_steps - 1 < t->how.n_warmup)
		t->how.n_warmup = seen->n_steps - 1;
}

static int read_remedies(struct lull_try *t, struct lull_err *err)
{
	const struct lull_try_options *o = t->options;
	char *const *files = o->files.at, *const *env = o->env.at;
	struct lull_str folder = LULL_STR_INIT;
	int rc;

	lull_str_addf(&folder, "%s/lull/remedies", t->python.at);
	rc = lull_remedy_read_folder(&t->remedies, folder.at, err);
	lull_str_release(&folder);
	for (size_t i = 0; i < o->files.n && !rc; i++)
		if ((rc = lull_remedy_read(&t->remedies, files[i], err)))
			rc = lull_err_wrap(err, "--remedy");
	for (size_t i = 0; i < o->env.n && !rc; i++)
		if ((rc = lull_remedy_of_variable(&t->remedies, env[i], err)))
			rc = lull_err_wrap(err, "--env");
	return rc;
}

/* One name, or several with + between them: these together. */
static int add_named(struct lull_try *t, const char *word, struct lull_err *err)
{
	const struct lull_remedy *found[8];
	struct lull_str name = LULL_STR_INIT;
	const char *nearest = NULL;
	size_t n = 0;

	for (const char *at = word; *at && n < LULL_COUNT_OF(found);) {
		size_t len = strcspn(at, "+");

		lull_str_clear(&name);
		lull_str_add(&name, at, len);
		found[n] = lull_remedy_find(&t->remedies, name.at, &nearest);
		if (!found[n++]) {
			lull_fail(err, LULL_E_USAGE, "--only: there is no remedy %s%s%s%s", name.at,
				  nearest ? "; did you mean " : "", nearest ? nearest : "",
				  nearest ? "?" : "; --list names them");
			lull_str_release(&name);
			return err->code;
		}
		at += len + (at[len] == '+');
	}
	lull_str_release(&name);
	if (n)
		lull_try_add(t, found, n);
	return LULL_OK;
}

int lull_try_prepare(struct lull_try *t, struct lull_err *err)
{
	const struct lull_try_options *o = t->options;
	const struct lull_remedy *all;
	char *const *names = o->only.at;
	size_t n_given = o->files.n + o->env.n;

	if (locate(t, err) || read_remedies(t, err))
		return err->code;
	settle_how(t);
	for (size_t i = 0; i < o->only.n; i++)
		if (add_named(t, names[i], err))
			return err->code;
	all = t->remedies.at;
	for (size_t i = 0; i < t->remedies.n; i++) {
		bool is_given = i + n_given >= t->remedies.n;
		const struct lull_remedy *one = &all[i];

		if (is_given || (o->has_all && !one->is_by_name))
			lull_try_add(t, &one, 1);
	}
	return LULL_OK;
}
