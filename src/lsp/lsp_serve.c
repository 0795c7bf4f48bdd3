#include "lsp/lsp_serve.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/newest.h"
#include "base/mem.h"
#include "lsp/diagnose.h"
#include "rpc/rpc.h"

#define MAX_MESSAGE_BYTES (16u << 20) /* an opened file comes as a whole */
#define MAX_HEADER_BYTES  4096u
/* How often a newer report is looked for. */
#define LOOK_MS 1000

/* Codes of the protocol. */
#define NOT_INITIALIZED	   (-32002)
#define SEVERITY_WARNING   2
#define SEVERITY_NOTE	   3
#define SEVERITY_HINT	   4
#define LOG_WARNING	   2
#define END_OF_LINE_COLUMN 1000 /* editors cut it at the end of the line */

/* A file that the editor shows. */
struct document {
	char *uri;
	char *path; /* real path, or NULL */
};

struct lsp {
	const struct lull_lsp_options *options;
	struct lull_rpc_out out;
	char *folder;		   /* where reports are; a copy */
	char *report;		   /* whose findings are shown; or NULL */
	i64 report_time_ns;	   /* of its last change */
	struct lull_vec documents; /* struct document */
	struct lull_vec diagnoses; /* struct lull_diagnosis */
	bool is_initialized, is_shut_down, is_over;
	int status;
};

/* ---- addresses ---- */

static int hex(char c)
{
	return c >= '0' && c <= '9'			? c - '0'
	       : (c | 0x20) >= 'a' && (c | 0x20) <= 'f' ? (c | 0x20) - 'a' + 10
							: -1;
}

/* The path of a file: address; NULL if it is none. */
static char *path_of(const char *uri)
{
	struct lull_str path = LULL_STR_INIT;

	if (strncmp(uri, "file://", 7) != 0)
		return NULL;
	/* A host may stand there; it is this one. */
	for (const char *p = uri + 7 + strcspn(uri + 7, "/"); *p; p++) {
		char c = *p;

		if (c == '%' && hex(p[1]) >= 0 && hex(p[2]) >= 0) {
			c = (char)(hex(p[1]) * 16 + hex(p[2]));
			p += 2;
		}
		lull_str_add(&path, &c, 1);
	}
	return path.at;
}

/* ---- diagnostics ---- */

static void put_position(struct lull_json *j, const char *key, u32 line, u32 column)
{
	lull_json_key(j, key);
	lull_json_object(j);
	lull_json_key_u64(j, "line", line);
	lull_json_key_u64(j, "character", column);
	lull_json_end(j);
}

static void put_diagnostic(struct lull_json *j, const struct lull_diagnosis *d)
{
	lull_json_object(j);
	lull_json_key(j, "range");
	lull_json_object(j);
	put_position(j, "start", d->line - 1, 0);
	put_position(j, "end", d->line - 1, END_OF_LINE_COLUMN);
	lull_json_end(j);
	lull_json_key_u64(j, "severity",
			  d->is_old	? SEVERITY_HINT
			  : d->is_first ? SEVERITY_WARNING
					: SEVERITY_NOTE);
	lull_json_key_text(j, "code", d->cause);
	lull_json_key_text(j, "source", "lull");
	lull_json_key_text(j, "message", d->text);
	lull_json_end(j);
}

/* Those of one file; none if it is closed. */
static void publish(const struct lsp *s, const struct document *doc, bool is_closed)
{
	const struct lull_diagnosis *d = s->diagnoses.at;
	struct lull_rpc_reply r;
	struct lull_json *j = lull_rpc_notify(&r, &s->out, "textDocument/publishDiagnostics");

	lull_json_object(j);
	lull_json_key_text(j, "uri", doc->uri);
	lull_json_key_array(j, "diagnostics");
	for (size_t i = 0; !is_closed && i < s->diagnoses.n; i++)
		if (doc->path && d[i].file && !strcmp(d[i].file, doc->path))
			put_diagnostic(j, &d[i]);
	lull_rpc_send(&r);
}

static void publish_all(const struct lsp *s)
{
	const struct document *docs = s->documents.at;

	for (size_t i = 0; i < s->documents.n; i++)
		publish(s, &docs[i], false);
}

static void log_message(const struct lsp *s, const char *text)
{
	struct lull_rpc_reply r;
	struct lull_json *j = lull_rpc_notify(&r, &s->out, "window/logMessage");

	lull_json_object(j);
	lull_json_key_u64(j, "type", LOG_WARNING);
	lull_json_key_text(j, "message", text);
	lull_rpc_send(&r);
}

/* ---- reports ---- */

/* The report to show, and when it changed; NULL if there is none. The caller frees it. */
static char *find_report(const struct lsp *s, i64 *time_ns)
{
	struct lull_str path = LULL_STR_INIT;
	struct lull_vec files;
	struct stat st;

	if (s->options->report) {
		if (stat(s->options->report, &st))
			return NULL;
		*time_ns = (i64)st.st_mtim.tv_sec * 1000000000 + st.st_mtim.tv_nsec;
		return lull_strdup(s->options->report);
	}
	lull_newest_list(s->folder, ".lull", &files);
	if (files.n) {
		const struct lull_newest *first = files.at;

		lull_str_addf(&path, "%s/%s", s->folder, first->path);
		*time_ns = first->time_ns;
	}
	lull_newest_release(&files);
	return path.at;
}

/* Read the newest report if it is another than before, and show its findings. */
static void refresh(struct lsp *s)
{
	struct lull_err err;
	i64 time_ns = 0;
	char *report = find_report(s, &time_ns);

	if (!report ? !s->report
		    : s->report && !strcmp(report, s->report) && time_ns == s->report_time_ns) {
		free(report);
		return;
	}
	free(s->report);
	s->report = report;
	s->report_time_ns = time_ns;
	lull_diagnose_release(&s->diagnoses);
	if (report && lull_diagnose(report, s->folder, &s->diagnoses, &err))
		log_message(s, err.msg);
	publish_all(s);
}

/* ---- messages ---- */

static char *text_at(const struct lull_rpc_message *m, const char *const *keys)
{
	struct lull_jvalue v = lull_jpick_path(&m->params, keys);
	struct lull_str text = LULL_STR_INIT;

	lull_jvalue_text(&v, &text);
	return text.at;
}

/* The folder of the editor: the first of several, or the one of older editors. */
static char *root_of(const struct lull_rpc_message *m)
{
	struct lull_jvalue folders = lull_jpick(&m->params, "workspaceFolders"), first;
	struct lull_str uri = LULL_STR_INIT;
	struct lull_jitems items;
	char *path = NULL, *old;

	lull_jitems_init(&items, &folders);
	if (folders.first == '[' && lull_jitems_next(&items, NULL, &first)) {
		first = lull_jpick(&first, "uri");
		if (lull_jvalue_text(&first, &uri))
			path = path_of(lull_str_text(&uri));
	}
	lull_jitems_release(&items);
	lull_str_release(&uri);
	old = path ? NULL : text_at(m, (const char *const[]){ "rootUri", NULL });
	if (old)
		path = path_of(old);
	free(old);
	return path;
}

static void on_initialize(struct lsp *s, const struct lull_rpc_message *m)
{
	struct lull_rpc_reply r;
	struct lull_json *j = lull_rpc_result(&r, &s->out, &m->id);
	char *root = root_of(m);

	if (!s->options->folder && root) {
		free(s->folder);
		s->folder = root;
	} else {
		free(root);
	}
	s->is_initialized = true;
	lull_json_object(j);
	lull_json_key(j, "capabilities");
	lull_json_object(j);
	lull_json_key(j, "textDocumentSync");
	lull_json_object(j);
	lull_json_key(j, "openClose");
	lull_json_bool(j, true);
	lull_json_key_u64(j, "change", 0);
	lull_json_key(j, "save");
	lull_json_bool(j, true);
	lull_json_end(j);
	lull_json_end(j);
	lull_json_key(j, "serverInfo");
	lull_json_object(j);
	lull_json_key_text(j, "name", "lull");
	lull_json_key_text(j, "version", LULL_VERSION);
	lull_rpc_send(&r);
}

static void on_shutdown(struct lsp *s, const struct lull_rpc_message *m)
{
	struct lull_rpc_reply r;

	s->is_shut_down = true;
	lull_json_null(lull_rpc_result(&r, &s->out, &m->id));
	lull_rpc_send(&r);
}

static void on_exit_message(struct lsp *s, const struct lull_rpc_message *m)
{
	(void)m;
	s->is_over = true;
	s->status = s->is_shut_down ? 0 : 1;
}

static struct document *find_document(struct lsp *s, const char *uri)
{
	struct document *docs = s->documents.at;

	for (size_t i = 0; i < s->documents.n; i++)
		if (!strcmp(docs[i].uri, uri))
			return &docs[i];
	return NULL;
}

static void close_document(struct lsp *s, struct document *doc)
{
	struct document *docs = s->documents.at;

	free(doc->uri);
	free(doc->path);
	*doc = docs[--s->documents.n];
}

static char *uri_of(const struct lull_rpc_message *m)
{
	return text_at(m, (const char *const[]){ "textDocument", "uri", NULL });
}

static void on_open(struct lsp *s, const struct lull_rpc_message *m)
{
	char *uri = uri_of(m), *path = uri ? path_of(uri) : NULL;
	struct document *doc;

	if (uri && !find_document(s, uri)) {
		doc = lull_vec_push(&s->documents);
		doc->uri = lull_strdup(uri);
		doc->path = path ? realpath(path, NULL) : NULL;
		publish(s, doc, false);
	}
	free(uri);
	free(path);
}

/* The file has other lines now: what is said of them is a hint. */
static void on_save(struct lsp *s, const struct lull_rpc_message *m)
{
	(void)m;
	free(s->report);
	s->report = NULL;
	refresh(s);
}

static void on_close(struct lsp *s, const struct lull_rpc_message *m)
{
	char *uri = uri_of(m);
	struct document *doc = uri ? find_document(s, uri) : NULL;

	if (doc) {
		publish(s, doc, true);
		close_document(s, doc);
	}
	free(uri);
}

static const struct {
	const char *name;
	void (*run)(struct lsp *s, const struct lull_rpc_message *m);
	bool is_request;
} methods[] = {
	{ "initialize", on_initialize, true },	    { "shutdown", on_shutdown, true },
	{ "exit", on_exit_message, false },	    { "textDocument/didOpen", on_open, false },
	{ "textDocument/didSave", on_save, false }, { "textDocument/didClose", on_close, false },
};

static void handle(struct lsp *s, const char *text, size_t len)
{
	struct lull_rpc_message m;
	bool is_known = false;

	if (!lull_rpc_parse(&m, text, len, &s->out))
		return;
	for (size_t i = 0; i < LULL_COUNT_OF(methods) && !is_known; i++) {
		bool is_first = methods[i].run == on_initialize;

		if (strcmp(methods[i].name, lull_str_text(&m.method)) != 0 ||
		    methods[i].is_request != (m.id.json != NULL))
			continue;
		is_known = true;
		if (s->is_initialized || is_first || methods[i].run == on_exit_message)
			methods[i].run(s, &m);
		else if (m.id.json)
			lull_rpc_fail(&s->out, &m.id, NOT_INITIALIZED,
				      "initialize has to come first");
	}
	if (!is_known && m.id.json && m.method.len)
		lull_rpc_fail(&s->out, &m.id, LULL_RPC_NO_METHOD, "there is no method %s",
			      lull_str_text(&m.method));
	lull_rpc_message_release(&m);
}

/* ---- input ---- */

/* The length that a header says; false if it is none of the protocol. */
static bool take_header(const char *text, size_t len, size_t *length)
{
	static const char key[] = "Content-Length:";
	bool is_there = false;

	for (const char *p = text; p < text + len; p += strcspn(p, "\n") + 1) {
		if (strncasecmp(p, key, sizeof(key) - 1) != 0)
			continue;
		*length = strtoull(p + sizeof(key) - 1, NULL, 10);
		is_there = *length <= MAX_MESSAGE_BYTES;
	}
	return is_there;
}

/* Handle the messages that are complete. */
static int take_messages(struct lsp *s, struct lull_str *in, struct lull_err *err)
{
	size_t from = 0, length = 0;

	while (!s->is_over) {
		const char *text = lull_str_text(in) + from;
		size_t left = in->len - from;
		const char *end = memmem(text, left, "\r\n\r\n", 4);
		size_t head = end ? (size_t)(end - text) : left;

		if (head > MAX_HEADER_BYTES || (end && !take_header(text, head, &length)))
			return lull_fail(err, LULL_E_FORMAT,
					 "the input is no Language Server Protocol: each message "
					 "starts with \"Content-Length: N\" of at most %u bytes",
					 MAX_MESSAGE_BYTES);
		if (!end || left < head + 4 + length)
			break;
		handle(s, text + head + 4, length);
		from += head + 4 + length;
	}
	if (from)
		memmove(in->at, in->at + from, in->len - from);
	in->len -= from;
	return LULL_OK;
}

static int loop(struct lsp *s, struct lull_err *err)
{
	struct lull_str in = LULL_STR_INIT;
	int rc = LULL_OK;

	while (!s->is_over && !rc) {
		struct pollfd fd = { .fd = s->options->in, .events = POLLIN };
		int n = poll(&fd, 1, LOOK_MS);

		if (n > 0) {
			char *room = lull_str_room(&in, 1u << 16);
			ssize_t got = read(s->options->in, room, 1u << 16);

			lull_str_take(&in, room + (got > 0 ? got : 0));
			/* An editor that vanishes has not said goodbye. */
			if (got == 0 || (got < 0 && errno != EINTR)) {
				s->is_over = true;
				s->status = s->is_shut_down ? 0 : 1;
				break;
			}
			rc = take_messages(s, &in, err);
		}
		if (s->is_initialized && !s->is_shut_down && !s->is_over)
			refresh(s);
	}
	lull_str_release(&in);
	return rc;
}

int lull_lsp_serve(const struct lull_lsp_options *options, struct lull_err *err)
{
	struct lsp s = { .options = options, .out = { .to = options->out, .has_headers = true } };
	int rc;

	s.folder = lull_strdup(options->folder ? options->folder : ".");
	lull_vec_init(&s.documents, sizeof(struct document));
	lull_vec_init(&s.diagnoses, sizeof(struct lull_diagnosis));
	signal(SIGPIPE, SIG_IGN);
	rc = loop(&s, err);
	while (s.documents.n)
		close_document(&s, s.documents.at);
	lull_vec_release(&s.documents);
	lull_diagnose_release(&s.diagnoses);
	free(s.folder);
	free(s.report);
	return rc ? rc : s.status;
}
