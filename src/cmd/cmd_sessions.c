/*
 * lull sessions - the sessions on this machine, and reports that a dead recorder left unfinished.
 */
#include <string.h>

#include "text/opt.h"
#include "text/out.h"
#include "base/str.h"
#include "text/utf8.h"
#include "cmd/ask.h"
#include "cmd/cmd.h"
#include "record/session/remote.h"
#include "record/session/session.h"

static const struct lull_out_column columns[] = {
	{ .name = "Name", .kind = LULL_OUT_TEXT },
	{ .name = "Recorder", .kind = LULL_OUT_ID },
	{ .name = "State", .kind = LULL_OUT_TEXT },
};

/* Names come from memory that a dead process left: only letters may reach a terminal. */
static void put_clean(struct lull_out *out, const char *text)
{
	struct lull_str clean = LULL_STR_INIT;

	while (*text) {
		u8 c = (u8)*text;
		size_t len = lull_utf8_len((const u8 *)text, strlen(text));

		if (c < ' ' || c == 0x7f || !len)
			lull_str_addf(&clean, "\\x%02x", c);
		else
			lull_str_add(&clean, text, len);
		text += len ? len : 1;
	}
	lull_out_text(out, lull_str_text(&clean));
	lull_str_release(&clean);
}

static void add_row(struct lull_out *out, const struct lull_session_entry *e)
{
	struct lull_str state = LULL_STR_INIT;
	struct lull_err err;

	if (!e->is_alive && *e->report_path)
		lull_str_addf(&state, "recorder died; finish with: lull recover %s.part",
			      e->report_path);
	else if (!e->is_alive)
		lull_str_puts(&state, "recorder died; nothing was being recorded");
	else if (lull_remote_ask(e->path, "status", &state, &err) != 0)
		lull_str_addf(&state, "%s", err.msg);
	lull_out_row(out);
	put_clean(out, e->name);
	lull_out_i64(out, e->collector_pid);
	put_clean(out, lull_str_text(&state));
	lull_str_release(&state);
}

int cmd_sessions(int argc, char **argv, struct lull_err *err)
{
	struct lull_out_options options = LULL_OUT_OPTIONS_INIT;
	bool has_header = true;
	const struct lull_opt opts[] = {
		OPT_USAGE("lull sessions [list] [OPTIONS]", "List the sessions on this machine."),
		OPT_BOOL('p', "show-header", &has_header,
			 "print the line with the column names (default: true)"),
		OPT_ENUM('f', "format", &options.format, lull_out_format_names, "how to print"),
		OPT_END(),
	};
	struct lull_vec all;
	struct lull_out out;
	int first, rc;

	/* The old spelling `sessions list` is fine, too. */
	if (argc > 1 && strcmp(argv[1], "list") == 0) {
		argv[1] = argv[0];
		argc--;
		argv++;
	}
	first = lull_opt_parse(argc, argv, opts, err);
	rc = lull_ask_no_words(first, argc, argv, err);
	if (rc)
		return rc;
	options.has_no_header = !has_header;
	lull_vec_init(&all, sizeof(struct lull_session_entry));
	lull_session_list(&all);
	lull_out_init(&out, columns, LULL_COUNT_OF(columns));
	for (size_t i = 0; i < all.n; i++)
		add_row(&out, lull_vec_get(&all, i));
	rc = lull_out_write(&out, &options, stdout, err);
	lull_out_release(&out);
	lull_vec_release(&all);
	return rc;
}
