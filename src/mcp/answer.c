#include "mcp/answer.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "text/utf8.h"

/* Of an answer, however few lines it has; some 6,000 tokens. */
#define MAX_BYTES 24000u
/* Of what is printed beside an answer: warnings come first. */
#define MAX_ASIDE	4000u
#define MAX_ASIDE_LINES 60u

static const char png_magic[] = "\x89PNG\r\n\x1a\n";

static const char *next_line(const char *p, const char *end)
{
	const char *stop = memchr(p, '\n', (size_t)(end - p));

	return stop ? stop + 1 : end;
}

static u64 count_lines(const char *p, const char *end)
{
	u64 n = 0;

	for (; p < end; p = next_line(p, end))
		n++;
	return n;
}

/* One line; one that is longer than the room is cut. */
static void add_line(struct lull_str *to, const char *p, size_t len, size_t room)
{
	if (len <= room) {
		lull_utf8_add(to, p, len);
		return;
	}
	lull_utf8_add(to, p, room);
	lull_str_addf(to, " ... [%zu bytes more of this line]\n", len - room);
}

void lull_mcp_cut(struct lull_str *to, const char *text, size_t len,
		  const struct lull_mcp_page *page)
{
	const char *p = text, *end = text + len;
	u64 n_all = count_lines(p, end), n = 0;
	size_t from = to->len;

	for (u64 i = 1; i < page->from_line && p < end; i++)
		p = next_line(p, end);
	for (; p < end && n < page->max_lines; n++) {
		const char *next = next_line(p, end);
		size_t room = MAX_BYTES - (to->len - from);

		if ((size_t)(next - p) > room && n)
			break;
		add_line(to, p, (size_t)(next - p), room < MAX_BYTES ? room : MAX_BYTES);
		p = next;
		if (to->len - from >= MAX_BYTES) {
			n++;
			break;
		}
	}
	if (to->len > from && to->at[to->len - 1] != '\n')
		lull_str_puts(to, "\n");
	if (p < end)
		lull_str_addf(to, "[lines %llu to %llu of %llu; from_line=%llu continues]\n",
			      (unsigned long long)page->from_line,
			      (unsigned long long)(page->from_line + n - 1),
			      (unsigned long long)n_all, (unsigned long long)(page->from_line + n));
	else if (!n && n_all)
		lull_str_addf(to, "[there are only %llu lines]\n", (unsigned long long)n_all);
}

bool lull_mcp_is_answer(const struct lull_mcp_tool *tool, const struct lull_mcp_job *job)
{
	if (job->is_cancelled)
		return false;
	if (!job->status)
		return true;
	return job->out.text.len && job->status < (int)LULL_COUNT_OF(tool->statuses) &&
	       tool->statuses[job->status];
}

/* ---- content ---- */

static void put_text(struct lull_json *j, const char *text)
{
	lull_json_object(j);
	lull_json_key_text(j, "type", "text");
	lull_json_key_text(j, "text", text);
	lull_json_end(j);
}

static char *base64(const char *bytes, size_t len)
{
	static const char digits[] =
		"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
	char *text = lull_alloc(len / 3 * 4 + 5, 1), *to = text;

	for (size_t i = 0; i < len; i += 3) {
		u32 three = (u32)(u8)bytes[i] << 16;

		three |= i + 1 < len ? (u32)(u8)bytes[i + 1] << 8 : 0;
		three |= i + 2 < len ? (u8)bytes[i + 2] : 0;
		*to++ = digits[three >> 18];
		*to++ = digits[three >> 12 & 63];
		*to++ = i + 1 < len ? digits[three >> 6 & 63] : '=';
		*to++ = i + 2 < len ? digits[three & 63] : '=';
	}
	return text;
}

static void put_picture(struct lull_json *j, const struct lull_str *png)
{
	char *text = base64(png->at, png->len);

	lull_json_object(j);
	lull_json_key_text(j, "type", "image");
	lull_json_key_text(j, "data", text);
	lull_json_key_text(j, "mimeType", "image/png");
	lull_json_end(j);
	free(text);
}

/* What was printed on standard error, shortened: progress lines and warnings. */
static void add_aside(struct lull_str *to, const struct lull_mcp_job *job)
{
	const struct lull_str *text = &job->err.text;
	size_t skip = job->keeps_end && text->len > MAX_ASIDE ? text->len - MAX_ASIDE : 0;
	const struct lull_mcp_page page = {
		.from_line = 1,
		.max_lines = job->keeps_end ? MAX_ASIDE : MAX_ASIDE_LINES,
	};

	if (!text->len)
		return;
	if (skip) {
		const char *whole = next_line(text->at + skip, text->at + text->len);

		lull_str_puts(to, "...\n");
		if (whole < text->at + text->len)
			skip = (size_t)(whole - text->at);
	}
	lull_mcp_cut(to, text->at + skip, text->len - skip, &page);
}

static void add_ending(struct lull_str *to, const struct lull_mcp_tool *tool,
		       const struct lull_mcp_job *job)
{
	if (job->is_cancelled)
		lull_str_puts(to, "[cancelled]\n");
	else if (lull_mcp_is_answer(tool, job) && tool->statuses[0])
		lull_str_addf(to, "[exit status %d: %s]\n", job->status,
			      tool->statuses[job->status]);
	else if (job->status)
		lull_str_addf(to, "[exit status %d]\n", job->status);
	if (job->out.dropped_bytes)
		lull_str_addf(to, "[%llu bytes %s were not kept]\n",
			      (unsigned long long)job->out.dropped_bytes,
			      job->keeps_end ? "before this" : "after this");
}

static void put_running(struct lull_json *j, const struct lull_mcp_tool *tool,
			const struct lull_mcp_job *job)
{
	struct lull_str text = LULL_STR_INIT;

	lull_str_addf(&text,
		      "%s is still running after %llu s, as job %u. Call the tool job with "
		      "{\"number\": %u} for its answer, or with \"cancel\": true to end it.\n",
		      tool->name, (unsigned long long)(lull_mcp_job_dur_ns(job) / 1000000000u),
		      job->number, job->number);
	add_aside(&text, job);
	put_text(j, lull_str_text(&text));
	lull_str_release(&text);
}

void lull_mcp_put_answer(struct lull_json *j, const struct lull_mcp_tool *tool,
			 const struct lull_mcp_job *job, const struct lull_mcp_page *page)
{
	size_t magic = sizeof(png_magic) - 1;
	bool is_picture = job->out.text.len > magic && !memcmp(job->out.text.at, png_magic, magic);
	bool is_bad = job->is_done && !lull_mcp_is_answer(tool, job);
	struct lull_str text = LULL_STR_INIT;

	lull_json_key_array(j, "content");
	if (!job->is_done) {
		put_running(j, tool, job);
	} else {
		if (is_bad)
			add_aside(&text, job);
		if (is_picture)
			put_picture(j, &job->out.text);
		else
			lull_mcp_cut(&text, lull_str_text(&job->out.text), job->out.text.len, page);
		if (!is_bad)
			add_aside(&text, job);
		add_ending(&text, tool, job);
		if (text.len || !is_picture)
			put_text(j, text.len ? text.at : "[nothing was printed]\n");
	}
	lull_json_end(j);
	lull_json_key(j, "isError");
	lull_json_bool(j, is_bad);
	lull_str_release(&text);
}

void lull_mcp_put_wrong(struct lull_json *j, const char *sentence)
{
	lull_json_key_array(j, "content");
	put_text(j, sentence);
	lull_json_end(j);
	lull_json_key(j, "isError");
	lull_json_bool(j, true);
}
