/*
 * request_http - requests of http.server, and of what is built on it: what the package wraps there.
 *
 * A thread for each request finds few of its code in a cache, so these wrappers are not in Python:
 * a request went through fourteen functions of ours there. Each has the method that it is in place
 * of as its `self`, passes all arguments on, and gives back what that gave.
 *
 * No error of ours reaches the program: what fails is left out.
 */
#include <stdlib.h>
#include <strings.h>

#include "agent/python/python_module.h"

/* Attributes, and what is looked for. */
#define NAMES(N)            \
	N(_headers)         \
	N(_headers_buffer)  \
	N(_is_lull)         \
	N(_lull_arrival)    \
	N(_lull_endless)    \
	N(_lull_request)    \
	N(close_connection) \
	N(command)          \
	N(connection)       \
	N(fileno)           \
	N(get)              \
	N(headers)          \
	N(path)             \
	N(request)          \
	N(server)           \
	N(shutdown_request) \
	N(status)           \
	N(traceparent)

static struct {
	py_object *name_of; /* http_name() of the package */
	py_object *failed;  /* its function for a handler and the error that ended its request */
	py_object
		*closer; /* what is in place of TCPServer.shutdown_request, as the class gives it */
	py_object
		*unclosed; /* by the id of a connection: the request that ends when it is closed */
	py_object *zero, *yes, *no, *empty;
#define N(name) py_object *name;
	struct {
		NAMES(N)
	} word;
#undef N
} http;

/* An argument of a wrapper, the handler or server being the first; borrowed, NULL if not there. */
static py_object *argument(py_object *args, i64 ix)
{
	return lull_py.PyTuple_Size(args) > ix ? lull_py.PyTuple_GetItem(args, ix) : NULL;
}

static bool is_none(const py_object *object)
{
	return !object || object == lull_py.none;
}

/* The request of a handler, a new reference, or NULL. */
static py_object *request_of(py_object *handler)
{
	py_object *request = lull_py_attribute(handler, http.word._lull_request);

	if (!is_none(request))
		return request;
	lull_py_drop(request);
	return NULL;
}

static bool has(py_object *of, py_object *name)
{
	py_object *value = lull_py_attribute(of, name);
	bool is = lull_py_is_true(value);

	lull_py_drop(value);
	return is;
}

/* ---- a request begins ---- */

/* When the data came that the handler reads now. */
static u64 arrival_of(py_object *handler)
{
	py_object *known = lull_py_attribute(handler, http.word._lull_arrival), *connection, *fd;
	u64 moment = is_none(known) ? 0 : lull_py_number(known);

	lull_py_drop(known);
	if (moment && moment != UINT64_MAX) {
		lull_py_set(handler, http.word._lull_arrival, http.zero);
		return moment;
	}
	connection = lull_py_attribute(handler, http.word.connection);
	fd = connection ? lull_py.PyObject_CallMethodObjArgs(connection, http.word.fileno, NULL)
			: NULL;
	if (!fd)
		lull_py.PyErr_Clear();
	moment = fd ? lull_py_arrival((int)lull_py_number(fd)) : lull_time();
	lull_py_drop(fd);
	lull_py_drop(connection);
	return moment;
}

static bool is_traceparent(py_object *line)
{
	static const char name[] = "traceparent";
	py_object *key = lull_py.PyTuple_Size(line) > 0 ? lull_py.PyTuple_GetItem(line, 0) : NULL;
	i64 len = 0;
	const char *text = key ? lull_py.PyUnicode_AsUTF8AndSize(key, &len) : NULL;

	return text && len == sizeof(name) - 1 && strncasecmp(text, name, (size_t)len) == 0;
}

/* Whether the head may have a traceparent: to ask it is a call of Python for each of its lines. */
static bool may_have_trace(py_object *headers)
{
	py_object *lines = lull_py_attribute(headers, http.word._headers);
	i64 n = lines ? lull_py.PyList_Size(lines) : -1;
	bool may = n < 0;

	for (i64 i = 0; i < n && !may; i++)
		may = is_traceparent(lull_py.PyList_GetItem(lines, i));
	lull_py.PyErr_Clear();
	lull_py_drop(lines);
	return may;
}

/* A new reference, or NULL. */
static py_object *trace_of(py_object *handler)
{
	py_object *headers = lull_py_attribute(handler, http.word.headers), *trace = NULL;

	if (headers && may_have_trace(headers))
		trace = lull_py.PyObject_CallMethodObjArgs(headers, http.word.get,
							   http.word.traceparent, http.empty, NULL);
	if (!trace)
		lull_py.PyErr_Clear();
	lull_py_drop(headers);
	return trace;
}

static void begin(py_object *handler, u64 moment)
{
	py_object *command = lull_py_attribute(handler, http.word.command);
	py_object *path = lull_py_attribute(handler, http.word.path);
	py_object *trace = trace_of(handler), *request = NULL;
	py_object *name =
		command && path
			? lull_py.PyObject_CallFunctionObjArgs(http.name_of, command, path, NULL)
			: NULL;

	if (name)
		request = lull_py_begin(name, trace ? trace : http.empty, moment);
	lull_py.PyErr_Clear();
	lull_py_set(handler, http.word._lull_request, request ? request : lull_py.none);
	lull_py_drop(command);
	lull_py_drop(path);
	lull_py_drop(trace);
	lull_py_drop(name);
	lull_py_drop(request);
}

static void end(py_object *handler, py_object *request)
{
	lull_py_set(handler, http.word._lull_request, lull_py.none);
	lull_py_over(request, NULL);
}

/* Its method returns later, or never comes to us: it is done with that one. */
static void end_last(py_object *handler)
{
	py_object *last = request_of(handler);

	if (last)
		end(handler, last);
	lull_py_drop(last);
}

static py_object *parse_request(py_object *original, py_object *args, py_object *kwargs)
{
	py_object *handler = argument(args, 0), *good;
	u64 moment = 0;

	if (handler) {
		end_last(handler);
		moment = arrival_of(handler);
	}
	good = lull_py.PyObject_Call(original, args, kwargs);
	if (good && handler && lull_py_is_true(good))
		begin(handler, moment);
	return good;
}

/* ---- its answer ---- */

/* What a line of the head begins with; borrowed as long as the line is, NULL if it is none. */
static const char *line_at(py_object *lines, i64 ix, i64 *len)
{
	py_object *line = lull_py.PyList_GetItem(lines, ix);
	char *text = NULL;

	if (line && lull_py.PyBytes_AsStringAndSize(line, &text, len) == 0)
		return text;
	lull_py.PyErr_Clear();
	return NULL;
}

static bool begins_with(const char *line, i64 len, const char *with)
{
	size_t n = strlen(with);

	return len >= (i64)n && strncasecmp(line, with, n) == 0;
}

/* 200 of "HTTP/1.0 200 OK", 0 of another line. */
static u64 status_of(const char *line, i64 len)
{
	const char *space = begins_with(line, len, "HTTP/") ? strchr(line, ' ') : NULL;

	return space ? strtoul(space, NULL, 10) : 0;
}

/* The head of the answer is about to be sent: how it ends, and whether it says where. */
static void look_at_head(py_object *handler, py_object *request)
{
	py_object *lines = lull_py_attribute(handler, http.word._headers_buffer), *number;
	i64 n = lines ? lull_py.PyList_Size(lines) : 0, len = 0;
	bool is_endless = false, is_whole = false;
	u64 status = 0;

	for (i64 i = 0; i < n; i++) {
		const char *line = line_at(lines, i, &len);

		if (!line)
			continue;
		if (!i)
			status = status_of(line, len);
		if (begins_with(line, len, "content-length:") ||
		    begins_with(line, len, "transfer-encoding:"))
			status |= (u64)1 << 32;
		is_whole = len == 2; /* the empty line */
	}
	lull_py.PyErr_Clear();
	lull_py_drop(lines);
	is_endless = is_whole && status >= 200 && status < 1000 && status != 204 && status != 304;
	status &= UINT32_MAX;
	if (status >= 200) {
		number = lull_py.PyLong_FromUnsignedLongLong(status);
		lull_py_set(request, http.word.status, number);
		lull_py_drop(number);
	}
	if (is_endless)
		lull_py_set(handler, http.word._lull_endless, http.yes);
	else if (status && has(handler, http.word._lull_endless))
		lull_py_set(handler, http.word._lull_endless, http.no);
}

static py_object *flush_headers(py_object *original, py_object *args, py_object *kwargs)
{
	py_object *handler = argument(args, 0), *request = handler ? request_of(handler) : NULL;

	if (request)
		look_at_head(handler, request);
	lull_py_drop(request);
	return lull_py.PyObject_Call(original, args, kwargs);
}

/* ---- and its end ---- */

static bool is_head(py_object *handler)
{
	static const char name[] = "HEAD";
	py_object *command = lull_py_attribute(handler, http.word.command);
	i64 len = 0;
	const char *text = command ? lull_py.PyUnicode_AsUTF8AndSize(command, &len) : NULL;
	bool is = text && len == sizeof(name) - 1 && memcmp(text, name, sizeof(name) - 1) == 0;

	lull_py.PyErr_Clear();
	lull_py_drop(command);
	return is;
}

/* Whether the server of a handler closes connections where we see it. */
static bool closes_here(py_object *handler)
{
	py_object *server = lull_py_attribute(handler, http.word.server), *type, *closer;
	bool does;

	if (!server)
		return false;
	type = lull_py.PyObject_Type(server);
	closer = type ? lull_py_attribute(type, http.word.shutdown_request) : NULL;
	does = closer && has(closer, http.word._is_lull);
	lull_py_drop(closer);
	lull_py_drop(type);
	lull_py_drop(server);
	return does;
}

/*
 * Whether the client learns from the end of the connection that the answer is whole, and we learn
 * of that.
 */
static bool closes_later(py_object *handler, py_object *request)
{
	py_object *connection, *key;
	bool does;

	if (!has(handler, http.word._lull_endless) || is_head(handler) ||
	    !has(handler, http.word.close_connection) || !closes_here(handler))
		return false;
	connection = lull_py_attribute(handler, http.word.request);
	key = connection ? lull_py.PyLong_FromVoidPtr(connection) : NULL;
	does = key && lull_py.PyDict_SetItem(http.unclosed, key, request) == 0;
	lull_py.PyErr_Clear();
	lull_py_drop(key);
	lull_py_drop(connection);
	return does;
}

/* A method of a handler has returned with which its request ends. */
static void returned(py_object *handler)
{
	py_object *request = request_of(handler);

	if (request && closes_later(handler, request))
		lull_py_set(handler, http.word._lull_request, lull_py.none);
	else if (request)
		end(handler, request);
	lull_py_drop(request);
}

/* The method failed; the error that is set stays. */
static void failed(py_object *handler)
{
	py_object *error[3], *request, *done = NULL;

	lull_py.PyErr_Fetch(&error[0], &error[1], &error[2]);
	lull_py.PyErr_NormalizeException(&error[0], &error[1], &error[2]);
	request = request_of(handler);
	if (request && error[1])
		done = lull_py.PyObject_CallFunctionObjArgs(http.failed, handler, error[1], NULL);
	lull_py.PyErr_Clear();
	lull_py_drop(done);
	lull_py_drop(request);
	lull_py.PyErr_Restore(error[0], error[1], error[2]);
}

static py_object *ends(py_object *original, py_object *args, py_object *kwargs)
{
	py_object *handler = argument(args, 0);
	py_object *result = lull_py.PyObject_Call(original, args, kwargs);

	if (handler && result)
		returned(handler);
	else if (handler)
		failed(handler);
	return result;
}

py_object *lull_py_request_http_over(py_object *self, py_object *handler)
{
	(void)self;
	if (http.unclosed)
		returned(handler);
	return lull_py_none();
}

/* Before: the client may go on while our thread waits for a CPU. */
static py_object *shutdown_request(py_object *original, py_object *args, py_object *kwargs)
{
	py_object *connection = argument(args, 1), *key = NULL, *request = NULL;

	if (!connection && kwargs)
		connection = lull_py.PyDict_GetItem(kwargs, http.word.request);
	if (connection && lull_py.PyDict_Size(http.unclosed) > 0)
		key = lull_py.PyLong_FromVoidPtr(connection);
	request = key ? lull_py.PyDict_GetItem(http.unclosed, key) : NULL;
	if (request) {
		lull_py.Py_IncRef(request);
		lull_py.PyDict_DelItem(http.unclosed, key);
		lull_py_over(request, NULL);
	}
	lull_py.PyErr_Clear();
	lull_py_drop(request);
	lull_py_drop(key);
	return lull_py.PyObject_Call(original, args, kwargs);
}

/* ---- setting up ---- */

#define WRAPPER(name, function)                                         \
	{                                                               \
		name, (void *)(function), WITH_ALL,                     \
			"in place of the method of this name, for lull" \
	}

static const struct py_method wrappers[] = {
	WRAPPER("parse_request", parse_request),       WRAPPER("flush_headers", flush_headers),
	WRAPPER("handle_one_request", ends),	       WRAPPER("finish", ends),
	WRAPPER("shutdown_request", shutdown_request),
};

py_object *lull_py_request_http_wrap(py_object *self, py_object *const *args, i64 n_args)
{
	struct lull_text name = n_args == 2 ? lull_py_text(args[0]) : (struct lull_text){ 0 };
	py_object *made = NULL;

	(void)self;
	for (size_t i = 0; http.unclosed && i < LULL_COUNT_OF(wrappers) && !made; i++)
		if (name.len && strcmp(wrappers[i].name, name.bytes) == 0)
			made = lull_py.PyCFunction_NewEx(&wrappers[i], args[1], NULL);
	lull_py.PyErr_Clear();
	return made ? made : lull_py_none();
}

py_object *lull_py_request_http(py_object *self, py_object *const *args, i64 n_args)
{
	(void)self;
	if (n_args != 2 || http.unclosed)
		return lull_py_none();
#define N(name) http.word.name = lull_py.PyUnicode_InternFromString(#name);
	NAMES(N)
#undef N
	http.name_of = args[0];
	http.failed = args[1];
	for (int i = 0; i < 2; i++)
		lull_py.Py_IncRef(args[i]); /* for good */
	http.zero = lull_py.PyLong_FromUnsignedLongLong(0);
	http.yes = lull_py.PyBool_FromLong(1);
	http.no = lull_py.PyBool_FromLong(0);
	http.empty = lull_py.PyUnicode_InternFromString("");
	http.unclosed = lull_py.PyDict_New();
	return lull_py_none();
}
