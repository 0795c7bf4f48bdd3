#include "text/term.h"

#include <limits.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/str.h"
#include "base/time.h"

bool lull_term_is_tty(FILE *stream)
{
	/* Open MPI gives its processes terminals that are not shown. */
	return !getenv("OMPI_COMM_WORLD_SIZE") && isatty(fileno(stream)) == 1;
}

int lull_term_width(FILE *stream)
{
	struct winsize size;

	if (!lull_term_is_tty(stream) || ioctl(fileno(stream), TIOCGWINSZ, &size) ||
	    size.ws_col < LULL_TERM_MIN_WIDTH)
		return LULL_TERM_MIN_WIDTH;
	return size.ws_col > LULL_TERM_MAX_WIDTH ? LULL_TERM_MAX_WIDTH : size.ws_col;
}

bool lull_term_has_colour(FILE *stream)
{
	const char *no_color = getenv("NO_COLOR"), *term = getenv("TERM");

	return lull_term_is_tty(stream) && !(no_color && *no_color) && term && strcmp(term, "dumb");
}

bool lull_term_is_utf8(void)
{
	static const char *const names[] = { "LC_ALL", "LC_CTYPE", "LANG" };

	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
		const char *locale = getenv(names[i]);

		if (locale && *locale)
			return strcasestr(locale, "utf-8") || strcasestr(locale, "utf8");
	}
	return false;
}

const char *lull_term_colour(enum lull_colour colour, bool is_on)
{
	static const char *const codes[] = {
		[LULL_COLOUR_NONE] = "\033[0m",	   [LULL_COLOUR_BOLD] = "\033[1m",
		[LULL_COLOUR_DIM] = "\033[2m",	   [LULL_COLOUR_GREEN] = "\033[32m",
		[LULL_COLOUR_YELLOW] = "\033[33m", [LULL_COLOUR_RED] = "\033[31m",
		[LULL_COLOUR_BLUE] = "\033[34m",   [LULL_COLOUR_MAGENTA] = "\033[35m",
		[LULL_COLOUR_CYAN] = "\033[36m",
	};

	return is_on ? codes[colour] : "";
}

static bool is_continuation(char c)
{
	return ((u8)c & 0xc0) == 0x80;
}

size_t lull_term_columns(const char *text)
{
	size_t n = 0;

	for (; *text; text++)
		n += !is_continuation(*text);
	return n;
}

/* Columns of the word at `text`, whose bytes end at a blank; *len gets the bytes. */
static int word_columns(const char *text, size_t *len)
{
	int n = 0;

	for (*len = 0; text[*len] && text[*len] != ' ' && text[*len] != '\n'; ++*len)
		n += !is_continuation(text[*len]);
	return n;
}

static void add_wrapped(struct lull_str *to, const char *text, int indent, int width)
{
	int at = indent;

	while (*text) {
		size_t len;
		int columns;

		if (*text == '\n') {
			lull_str_addf(to, "\n%*s", indent, "");
			at = indent;
			text++;
			continue;
		}
		if (*text == ' ') {
			text++;
			continue;
		}
		columns = word_columns(text, &len);
		if (at > indent && at + 1 + columns > width) {
			lull_str_addf(to, "\n%*s", indent, "");
			at = indent;
		}
		lull_str_addf(to, "%s%.*s", at > indent ? " " : "", (int)len, text);
		at += columns + (at > indent);
		text += len;
	}
	lull_str_puts(to, "\n");
}

/* At once: nothing of what other processes write into the same file gets between the words. */
void lull_term_wrap(FILE *to, const char *text, int indent, int width)
{
	struct lull_str all = LULL_STR_INIT;

	add_wrapped(&all, text, indent, width);
	fputs(lull_str_text(&all), to);
	lull_str_release(&all);
}

void lull_term_line(FILE *to, const char *text, int indent)
{
	lull_term_wrap(to, text, indent, lull_term_is_tty(to) ? lull_term_width(to) : INT_MAX);
}

void lull_term_say(FILE *to, int indent, int width, const char *fmt, ...)
{
	struct lull_str text = LULL_STR_INIT, all = LULL_STR_INIT;
	va_list ap;

	va_start(ap, fmt);
	lull_str_vaddf(&text, fmt, ap);
	va_end(ap);
	lull_str_addf(&all, "%*s", indent, "");
	add_wrapped(&all, lull_str_text(&text), indent, width);
	fputs(lull_str_text(&all), to);
	lull_str_release(&text);
	lull_str_release(&all);
}

/* Three significant digits: 1.23, 12.3, 123. The bounds are where rounding would add a digit. */
static struct lull_number three_digits(f64 value, const char *unit)
{
	struct lull_number out;
	int decimals = value < 9.995 ? 2 : value < 99.95 ? 1 : 0;

	snprintf(out.text, sizeof(out.text), "%.*f %s", decimals, value, unit);
	return out;
}

/*
 * The value in the largest unit that leaves it at least 1 after rounding; units[0] is shown as an
 * integer.
 */
static struct lull_number scaled(u64 n, u64 step, const char *const *units)
{
	struct lull_number out;
	f64 value = (f64)n;
	size_t unit = 0;

	while (value >= (f64)step - 0.5 && units[unit + 1]) {
		value /= (f64)step;
		unit++;
	}
	if (unit)
		return three_digits(value, units[unit]);
	snprintf(out.text, sizeof(out.text), "%llu%s%s", (unsigned long long)n,
		 *units[0] ? " " : "", units[0]);
	return out;
}

struct lull_number lull_format_ns(u64 dur_ns)
{
	static const char *const units[] = { "ns", "us", "ms", "s", NULL };
	const u64 s = dur_ns / LULL_NS_PER_S;
	struct lull_number out;

	if (s < 60)
		return scaled(dur_ns, 1000, units);
	if (s < 3600)
		snprintf(out.text, sizeof(out.text), "%u min %u s", (u32)(s / 60), (u32)(s % 60));
	else
		snprintf(out.text, sizeof(out.text), "%llu h %u min",
			 (unsigned long long)(s / 3600), (u32)(s / 60 % 60));
	return out;
}

struct lull_number lull_format_bytes(u64 size_bytes)
{
	static const char *const units[] = { "B", "KiB", "MiB", "GiB", "TiB", "PiB", NULL };

	return scaled(size_bytes, 1024, units);
}

struct lull_number lull_format_count(u64 n)
{
	static const char *const units[] = { "", "k", "M", "G", "T", NULL };

	return scaled(n, 1000, units);
}

struct lull_number lull_format_group_text(const char *number)
{
	struct lull_number out;
	size_t len = strcspn(number, "."), is_negative = number[0] == '-', at = 0;

	for (size_t i = 0; i < len && at + 2 < sizeof(out.text); i++) {
		out.text[at++] = number[i];
		if (i >= is_negative && i + 1 < len && (len - i - 1) % 3 == 0)
			out.text[at++] = ',';
	}
	snprintf(out.text + at, sizeof(out.text) - at, "%s", number + len);
	return out;
}

struct lull_number lull_format_share(f64 share)
{
	struct lull_number number;
	f64 percent = 100 * share;
	bool is_nearly_all = percent >= 99.5 && percent < 100;

	snprintf(number.text, sizeof(number.text), "%.*f", is_nearly_all,
		 is_nearly_all && percent > 99.9 ? 99.9 : percent);
	return number;
}

struct lull_number lull_format_grouped(i64 n)
{
	char digits[24];

	snprintf(digits, sizeof(digits), "%lld", (long long)n);
	return lull_format_group_text(digits);
}
