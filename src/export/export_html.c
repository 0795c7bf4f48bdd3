/*
 * html: one page that needs nothing else, for mails and for artefacts of CI.
 *
 * It is the page of `lull view` with its data inside: packed (page/pack.h), gzip, base64. Names of
 * the report are inside the data and reach the page as text; base64 has no "<". The policy in its
 * head allows the script and the style of the page and nothing else, so nothing leaves the machine.
 *
 * Size:           the first plan that fits is taken: all events; times in 32 ns; lanes with many
 *                 events folded. The page says what was left out.
 */
#include "export/export.h"

#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "base/mem.h"
#include "base/str.h"
#include "page/assets.h"
#include "page/pack.h"
#include "page/page.h"

#define DEFAULT_BYTES (5u << 20)
#define GZIP_BITS     (15 + 16)
#define GZIP_LEVEL    6		/* 9 takes up to four times as long for 0.1 to 1.1 % */
#define MANY_EVENTS   1500000.0 /* take 6 MB and more, and a minute to try */

/* From everything to little; lanes with more records than this are folded. */
static const struct {
	u32 unit_log2;
	u64 max_records;
	const char *notice;
} plans[] = {
	{ 0, 1000000, NULL },
	{ 5, 1000000, "times are exact to 32 ns" },
	{ 5, 40000, "long rows are aggregated: zooming in shows no single events there" },
	{ 5, 8000, "rows are aggregated: zooming in shows few single events" },
	{ 8, 2000, "rows are aggregated: overview only" },
	{ 8, 400, "rows are aggregated: overview only" },
};

static int deflate_all(const struct lull_vec *from, struct lull_vec *to, struct lull_err *err)
{
	z_stream z = { 0 };
	int rc;

	if (deflateInit2(&z, GZIP_LEVEL, Z_DEFLATED, GZIP_BITS, 9, Z_DEFAULT_STRATEGY) != Z_OK)
		return lull_fail(err, LULL_E_NOMEM, "no memory to compress the page");
	to->n = 0;
	lull_vec_extend(to, deflateBound(&z, from->n));
	z.next_in = from->at;
	z.avail_in = (uInt)from->n;
	z.next_out = to->at;
	z.avail_out = (uInt)to->n;
	rc = deflate(&z, Z_FINISH);
	to->n = z.total_out;
	deflateEnd(&z);
	return rc == Z_STREAM_END ? LULL_OK
				  : lull_fail(err, LULL_E_UNSUPPORTED, "the page is too large");
}

static void write_base64(const struct lull_vec *bytes, FILE *to)
{
	static const char digits[] =
		"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
	const u8 *at = bytes->at;
	char line[76] = "";
	size_t n = 0;

	for (size_t i = 0; i < bytes->n; i += 3) {
		size_t left = bytes->n - i;
		u32 v = (u32)at[i] << 16 | (left > 1 ? (u32)at[i + 1] << 8 : 0) |
			(left > 2 ? at[i + 2] : 0);

		line[n++] = digits[v >> 18];
		line[n++] = digits[v >> 12 & 63];
		line[n++] = left > 1 ? digits[v >> 6 & 63] : '=';
		line[n++] = left > 2 ? digits[v & 63] : '=';
		if (n == sizeof(line)) {
			fwrite(line, 1, n, to);
			n = 0;
		}
	}
	fwrite(line, 1, n, to);
}

static void write_asset(const struct lull_asset *asset, FILE *to)
{
	fwrite(asset->at, 1, (size_t)(asset->end - asset->at), to);
}

static void write_page(const struct lull_vec *packed, FILE *to)
{
	const struct lull_asset *script = lull_asset_find("page.js");
	const struct lull_asset *style = lull_asset_find("page.css");

	fprintf(to,
		"<!doctype html>\n<html lang=\"en\">\n<meta charset=\"utf-8\">\n"
		"<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; "
		"script-src 'sha256-%s'; style-src 'sha256-%s'; img-src data:; base-uri 'none'; "
		"form-action 'none'; require-trusted-types-for 'script'\">\n"
		"<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
		"<title>lull</title>\n<link rel=\"icon\" href=\"data:,\">\n<style>",
		script->sha256, style->sha256);
	write_asset(style, to);
	fputs("</style>\n<body>\n<div id=\"app\"></div>\n"
	      "<script type=\"application/octet-stream\" id=\"data\">",
	      to);
	write_base64(packed, to);
	fputs("</script>\n<script>", to);
	write_asset(script, to);
	fputs("</script>\n</body>\n</html>\n", to);
}

/* Bytes of the file around the data, and of the data in base64. */
static u64 size_of(const struct lull_vec *packed)
{
	u64 size = 1200 + ((u64)packed->n + 2) / 3 * 4;

	for (const struct lull_asset *a = lull_assets; a->name; a++)
		size += *a->name ? (u64)(a->end - a->at) : 0;
	return size;
}

/* About how many events the window has. */
static f64 events_in(const struct lull_page *page, struct lull_span window)
{
	const struct lull_timeline *t = page->reports[0].timeline;
	struct lull_span cut = lull_span_cut(t->span, window.from_ns, window.to_ns);

	return (f64)t->n_events * (f64)(cut.to_ns - cut.from_ns + 1) /
	       (f64)(t->span.to_ns - t->span.from_ns + 1);
}

static int pack(struct lull_page *page, struct lull_span window, u64 max_bytes,
		struct lull_vec *packed, struct lull_err *err)
{
	struct lull_vec raw, answers;
	int rc = LULL_OK;

	lull_vec_init(&raw, 1);
	lull_vec_init(&answers, 1);
	for (size_t i = events_in(page, window) > MANY_EVENTS ? 2 : 0;
	     !rc && i < LULL_COUNT_OF(plans); i++) {
		struct lull_pack_plan plan = { .window = window,
					       .unit_log2 = plans[i].unit_log2,
					       .max_records = plans[i].max_records,
					       .notice = plans[i].notice,
					       .answers = &answers };

		raw.n = 0;
		rc = lull_page_pack(page, &plan, &raw, err);
		if (!rc)
			rc = deflate_all(&raw, packed, err);
		if (!rc && size_of(packed) <= max_bytes)
			break;
	}
	lull_vec_release(&raw);
	lull_vec_release(&answers);
	return rc;
}

static int write_report(struct lull_reader *r, const struct lull_export_options *options, FILE *to,
			struct lull_err *err)
{
	u64 max_bytes = options->max_bytes ? options->max_bytes : DEFAULT_BYTES;
	struct lull_span window = lull_export_window(options);
	struct lull_page page = { .is_offline = true, .source_dir = options->source_dir };
	struct lull_vec packed;
	int rc;

	lull_vec_init(&packed, 1);
	lull_page_add_reader(&page, r, options->name ? options->name : "report");
	rc = pack(&page, window, max_bytes, &packed, err);
	if (!rc)
		write_page(&packed, to);
	lull_page_release(&page);
	lull_vec_release(&packed);
	return rc ? rc : lull_export_finish(to, err);
}

const struct lull_export lull_export_html = {
	.name = "html",
	.suffix = ".html",
	.summary = "the page of lull view as one file",
	.write = write_report,
};
