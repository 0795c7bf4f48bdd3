#include "text/source_lines.h"

#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "text/utf8.h"

#define MAX_BYTES   (4u << 20) /* generated sources of 100,000 lines are smaller */
#define MAX_COLUMNS 160u       /* of a line: more is data, not code */

static bool has_source_suffix(const char *path)
{
	static const char *const suffixes[] = { "py",  "pyx", "c",   "cc",  "cpp", "cxx", "cu",
						"cuh", "h",   "hpp", "hxx", "inc", "rs",  "go",
						"jl",  "f",   "f90", "pyi", "mm",  "m",	  "swift" };
	const char *dot = strrchr(path, '.');

	for (size_t i = 0; dot && i < LULL_COUNT_OF(suffixes); i++)
		if (strcmp(dot + 1, suffixes[i]) == 0)
			return true;
	return false;
}

/* The whole file; false if it is none to be shown. */
static bool read_source(const char *path, struct lull_str *text)
{
	int fd = has_source_suffix(path) ? open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK) : -1;
	struct stat st;
	ssize_t n = -1;

	lull_str_clear(text);
	if (fd < 0)
		return false;
	if (fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && st.st_size <= (off_t)MAX_BYTES) {
		char *room = lull_str_room(text, (size_t)st.st_size);

		n = read(fd, room, (size_t)st.st_size);
		lull_str_take(text, room + (n > 0 ? n : 0));
	}
	close(fd);
	return n > 0;
}

/* Where line `line` starts, or NULL. */
static const char *line_at(const struct lull_str *text, u32 line)
{
	const char *p = lull_str_text(text), *end = p + text->len;

	for (u32 i = 1; p && i < line; i++) {
		p = memchr(p, '\n', (size_t)(end - p));
		p = p && p + 1 < end ? p + 1 : NULL;
	}
	return line ? p : NULL;
}

/* Whether this file may be the one that was recorded. */
static bool fits(const char *path, const struct lull_source_place *place)
{
	struct lull_str text = LULL_STR_INIT;
	bool is_it = read_source(path, &text) && line_at(&text, place->line) &&
		     (!place->word || memmem(text.at, text.len, place->word, strlen(place->word)));

	lull_str_release(&text);
	return is_it;
}

/* The file below a folder: its whole path first, then less and less of it. */
static bool find_below(const struct lull_source_place *place, const char *folder,
		       struct lull_str *path)
{
	const char *rest = place->file;

	while (*rest) {
		rest += strspn(rest, "/");
		lull_str_clear(path);
		lull_str_addf(path, "%s/%s", folder, rest);
		if (fits(lull_str_text(path), place))
			return true;
		rest += strcspn(rest, "/");
	}
	return false;
}

bool lull_source_find(const struct lull_source_place *place, const char *const *folders,
		      struct lull_str *path)
{
	const struct lull_source_place named = { place->file, place->line, NULL };

	lull_str_clear(path);
	if (!place->file || !place->line)
		return false;
	if (*place->file == '/' && fits(place->file, &named)) {
		lull_str_puts(path, place->file);
		return true;
	}
	for (; *folders; folders++)
		if (**folders && find_below(place, *folders, path))
			return true;
	lull_str_clear(path);
	return false;
}

/* A line without its end, tabs and other control characters; `len` bytes of `from`. */
static void add_line(struct lull_str *to, const char *from, size_t len)
{
	struct lull_str clean = LULL_STR_INIT;

	lull_utf8_add(&clean, from, len < MAX_COLUMNS ? len : MAX_COLUMNS);
	for (size_t i = 0; i < clean.len; i++) {
		char c = clean.at[i];

		if (c == '\t')
			lull_str_puts(to, "    ");
		else if ((u8)c >= 0x20 && c != 0x7f)
			lull_str_add(to, &c, 1);
	}
	if (len > MAX_COLUMNS)
		lull_str_puts(to, " ...");
	lull_str_release(&clean);
}

bool lull_source_print(FILE *to, const char *path, u32 line, u32 around)
{
	u32 from = line > around ? line - around : 1;
	struct lull_str text = LULL_STR_INIT, one = LULL_STR_INIT;
	bool is_there = read_source(path, &text) && line_at(&text, line);
	const char *p = is_there ? line_at(&text, from) : NULL,
		   *end = p ? text.at + text.len : NULL;

	for (u32 i = from; p && p < end && i - line + around <= 2 * around; i++) {
		const char *stop = memchr(p, '\n', (size_t)(end - p));
		size_t len = (size_t)((stop ? stop : end) - p);

		lull_str_clear(&one);
		add_line(&one, p, len);
		fprintf(to, "%s%5u | %s\n", i == line ? ">" : " ", i, lull_str_text(&one));
		p += len + 1;
	}
	lull_str_release(&text);
	lull_str_release(&one);
	return is_there;
}
