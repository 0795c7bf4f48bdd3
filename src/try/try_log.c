#include "try/try_log.h"

#include <dirent.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "text/opt.h"

void lull_try_seen_init(struct lull_try_seen *s)
{
	*s = (struct lull_try_seen){ .patch = LULL_STR_INIT };
	lull_vec_init(&s->steps, sizeof(f64));
	lull_vec_init(&s->values, sizeof(f64));
	lull_vec_init(&s->did, sizeof(char *));
	lull_vec_init(&s->could, sizeof(char *));
	lull_vec_init(&s->notes, sizeof(char *));
	lull_vec_init(&s->places, sizeof(struct lull_try_place));
	lull_vec_init(&s->kept, sizeof(char *));
	lull_vec_init(&s->trouble, sizeof(char *));
}

void lull_try_seen_release(struct lull_try_seen *s)
{
	struct lull_try_place *places = s->places.at;

	for (size_t i = 0; i < s->places.n; i++) {
		free(places[i].remedy);
		free(places[i].file);
		free(places[i].text);
	}
	lull_vec_release(&s->steps);
	lull_vec_release(&s->values);
	lull_vec_release(&s->places);
	lull_opt_list_release(&s->did);
	lull_opt_list_release(&s->could);
	lull_opt_list_release(&s->notes);
	lull_opt_list_release(&s->kept);
	lull_opt_list_release(&s->trouble);
	lull_str_release(&s->patch);
	lull_str_release(&s->imports);
	lull_str_release(&s->not_forked);
}

/* A word that the list does not have yet. */
static void add_word(struct lull_vec *list, const char *word)
{
	char *const *at = list->at;

	for (size_t i = 0; i < list->n; i++)
		if (strcmp(at[i], word) == 0)
			return;
	*(char **)lull_vec_push(list) = lull_strdup(word);
}

/* REMEDY FILE:LINE TEXT; the name of the file may have blanks. */
static void add_place(struct lull_vec *places, const char *text)
{
	size_t n = strcspn(text, " ");
	const char *file = text[n] ? text + n + 1 : text + n, *colon = file;
	u64 line = 0;
	int len = 0;

	while ((colon = strchr(colon, ':')) && sscanf(colon, ":%" SCNu64 " %n", &line, &len) != 1)
		colon++;
	if (!colon || !len)
		return;
	*(struct lull_try_place *)lull_vec_push(places) = (struct lull_try_place){
		.remedy = lull_strndup(text, n),
		.file = lull_strndup(file, (size_t)(colon - file)),
		.text = lull_strdup(colon + len),
		.line = line,
	};
}

static void add_block(struct lull_try_seen *s, const char *text)
{
	u64 n, ns;

	if (sscanf(text, "%" SCNu64 " %" SCNu64, &n, &ns) != 2 || !n || !ns)
		return;
	*(f64 *)lull_vec_push(&s->steps) = (f64)ns / (f64)n;
	s->n_measured += n;
}

static void add_value(struct lull_try_seen *s, const char *text, bool is_loss)
{
	char *end;
	f64 value = strtod(text, &end);

	if (end == text)
		return;
	s->has_loss |= is_loss;
	*(f64 *)lull_vec_push(&s->values) = value;
}

static u64 number(const char *text)
{
	return strtoull(text, NULL, 10);
}

/* What is known of all processes together. */
static void read_shared(struct lull_try_seen *all, char letter, const char *text)
{
	switch (letter) {
	case 'd':
		add_word(&all->did, text);
		break;
	case 'c':
		add_word(&all->could, text);
		break;
	case 'q':
		all->is_asked = true;
		break;
	case 'h':
		add_word(&all->notes, text);
		break;
	case 'w':
		add_place(&all->places, text);
		break;
	case 'k':
		add_word(&all->kept, text);
		break;
	case 't':
		add_word(&all->trouble, text);
		break;
	case 'p':
		lull_str_addf(&all->patch, "%s\n", text);
		break;
	case 'f':
		lull_str_clear(&all->not_forked);
		lull_str_puts(&all->not_forked, text);
		break;
	case 'i':
		lull_str_clear(&all->imports);
		lull_str_puts(&all->imports, text);
		break;
	default:
		break;
	}
}

/* `own` is this process, `all` what is known of all of them. */
static void read_line(struct lull_try_seen *own, struct lull_try_seen *all, const char *line)
{
	const char *text = line[0] && line[1] == ' ' ? line + 2 : "";

	switch (line[0]) {
	case 'a':
		own->is_python = true;
		break;
	case 'r':
		own->rank = number(text);
		break;
	case 's':
		own->n_steps++;
		break;
	case 'u':
		own->n_steps -= own->n_steps > 0;
		break;
	case 'm':
		own->began_ns = number(text);
		break;
	case 'n':
		own->loaded_ns = number(text);
		break;
	case 'z':
		own->over_ns = number(text);
		break;
	case 'v':
		own->n_calls = number(text);
		break;
	case 'b':
		add_block(own, text);
		break;
	case 'l':
	case 'o':
		add_value(own, text, line[0] == 'l');
		break;
	case 'g':
		own->device_bytes = number(text);
		break;
	case 'e':
		own->has_ended = true;
		break;
	default:
		read_shared(all, line[0], text);
	}
}

static void read_log(struct lull_try_seen *own, struct lull_try_seen *all, FILE *f)
{
	char *line = NULL;
	size_t cap = 0;
	ssize_t len;

	while ((len = getline(&line, &cap, f)) > 0) {
		all->n_bytes += (u64)len;
		/* A line without an end is still being written. */
		if (line[len - 1] != '\n')
			break;
		line[len - 1] = '\0';
		read_line(own, all, line);
	}
	free(line);
}

static bool is_ahead(const struct lull_try_seen *a, const struct lull_try_seen *b)
{
	u64 n_a = a->n_measured, n_b = b->n_measured;

	if (n_a != n_b)
		return n_a > n_b;
	if (a->n_steps != b->n_steps)
		return a->n_steps > b->n_steps;
	/* One that imports for others, and workers of loaders, did not run the program. */
	if (!a->over_ns != !b->over_ns)
		return a->over_ns;
	if (a->rank != b->rank)
		return a->rank < b->rank;
	return !b->pid || a->pid < b->pid;
}

/* The process becomes the one whose steps count. */
static void take(struct lull_try_seen *s, struct lull_try_seen *own)
{
	struct lull_vec steps = s->steps, values = s->values;

	s->steps = own->steps;
	s->values = own->values;
	own->steps = steps;
	own->values = values;
	s->n_steps = own->n_steps;
	s->n_measured = own->n_measured;
	s->began_ns = own->began_ns;
	s->loaded_ns = own->loaded_ns;
	s->over_ns = own->over_ns;
	s->n_calls = own->n_calls;
	s->has_loss = own->has_loss;
	s->has_ended = own->has_ended;
	s->is_python = own->is_python;
	s->device_bytes = own->device_bytes;
	s->rank = own->rank;
	s->pid = own->pid;
}

void lull_try_log_read(struct lull_try_seen *s, const char *folder)
{
	DIR *dir = opendir(folder);
	struct lull_str path = LULL_STR_INIT;
	const struct dirent *e;

	while (dir && (e = readdir(dir))) {
		struct lull_try_seen own;
		size_t n = strlen(e->d_name);
		FILE *f;

		if (n < 5 || strcmp(e->d_name + n - 4, ".log") != 0)
			continue;
		lull_str_clear(&path);
		lull_str_addf(&path, "%s/%s", folder, e->d_name);
		f = fopen(path.at, "re");
		if (!f)
			continue;
		lull_try_seen_init(&own);
		own.pid = number(e->d_name);
		read_log(&own, s, f);
		fclose(f);
		if (is_ahead(&own, s))
			take(s, &own);
		lull_try_seen_release(&own);
	}
	if (dir)
		closedir(dir);
	lull_str_release(&path);
}
