/*
 * python_module - the agent as an extension module of Python: what its methods share.
 *
 * The functions are those of Python's stable interface, looked up when the module is loaded
 * (source_torch.c). A method is called with the interpreter lock held.
 */
#ifndef LULL_AGENT_PYTHON_PYTHON_MODULE_H
#define LULL_AGENT_PYTHON_PYTHON_MODULE_H

#include "agent/core/ring.h"

typedef struct py_object py_object; /* PyObject, which nobody here looks into */

/* PyMethodDef */
struct py_method {
	const char *name;
	void *function;
	int flags;
	const char *doc;
};
enum { WITH_ARGS = 0x80, WITHOUT_ARGS = 4, WITH_ONE = 8 };

/* PyModuleDef */
struct py_module {
	i64 n_references;
	void *type;
	void *init;
	i64 index;
	void *copy;
	const char *name;
	const char *doc;
	i64 size;
	const struct py_method *methods;
	void *slots, *traverse, *clear, *release;
};

#define PYTHON_API 1013

/* What is used of Python. */
#define PYTHON_FUNCTIONS(F)                                                         \
	F(py_object *, PyModule_Create2, (struct py_module *, int))                 \
	F(int, PyModule_AddFunctions, (py_object *, const struct py_method *))      \
	F(const char *, PyUnicode_AsUTF8AndSize, (py_object *, i64 *))              \
	F(unsigned long long, PyLong_AsUnsignedLongLong, (py_object *))             \
	F(py_object *, PyLong_FromUnsignedLongLong, (unsigned long long))           \
	F(void, PyErr_Clear, (void))                                                \
	F(void, PyErr_Fetch, (py_object **, py_object **, py_object **))            \
	F(void, PyErr_Restore, (py_object *, py_object *, py_object *))             \
	F(void, Py_IncRef, (py_object *))                                           \
	F(void, Py_DecRef, (py_object *))                                           \
	F(py_object *, PyObject_Type, (py_object *))                                \
	F(py_object *, PyObject_GetAttr, (py_object *, py_object *))                \
	F(int, PyObject_SetAttr, (py_object *, py_object *, py_object *))           \
	F(int, PyObject_IsTrue, (py_object *))                                      \
	F(py_object *, PyObject_CallFunctionObjArgs, (py_object *, ...))            \
	F(py_object *, PyObject_CallMethodObjArgs, (py_object *, py_object *, ...)) \
	F(py_object *, PyDescr_NewMethod, (py_object *, const struct py_method *))  \
	F(py_object *, PyUnicode_InternFromString, (const char *))                  \
	F(int, PyContextVar_Get, (py_object *, py_object *, py_object **))          \
	F(py_object *, PyThreadState_GetDict, (void))                               \
	F(py_object *, PyDict_New, (void))                                          \
	F(py_object *, PyDict_GetItem, (py_object *, py_object *))                  \
	F(int, PyDict_SetItem, (py_object *, py_object *, py_object *))             \
	F(int, PyDict_DelItem, (py_object *, py_object *))                          \
	F(i64, PyDict_Size, (py_object *))                                          \
	F(void, PyDict_Clear, (py_object *))                                        \
	F(py_object *, PyList_New, (i64))                                           \
	F(i64, PyList_Size, (py_object *))                                          \
	F(py_object *, PyList_GetItem, (py_object *, i64))                          \
	F(int, PyList_Append, (py_object *, py_object *))                           \
	F(int, PyList_SetSlice, (py_object *, i64, i64, py_object *))               \
	F(py_object *, PyLong_FromVoidPtr, (void *))

#define AS_SLOT(type, name, params) type(*name) params;
struct lull_py {
	PYTHON_FUNCTIONS(AS_SLOT)
	py_object *none; /* _Py_NoneStruct */
};
#undef AS_SLOT

/* Filled in before the first method can be called. */
extern struct lull_py lull_py __attribute__((visibility("hidden")));

/* None, as a method returns it. */
static inline py_object *lull_py_none(void)
{
	lull_py.Py_IncRef(lull_py.none);
	return lull_py.none;
}

/* A string of Python; empty if it is none. */
static inline struct lull_text lull_py_text(py_object *from)
{
	i64 len = 0;
	const char *bytes = lull_py.PyUnicode_AsUTF8AndSize(from, &len);

	if (!bytes)
		lull_py.PyErr_Clear();
	return lull_text(bytes ? bytes : "", bytes ? (size_t)len : 0);
}

/* An integer of Python; UINT64_MAX if it is none. */
static inline u64 lull_py_number(py_object *from)
{
	u64 value = lull_py.PyLong_AsUnsignedLongLong(from);

	if (value == UINT64_MAX)
		lull_py.PyErr_Clear();
	return value;
}

/* ---- methods of request_methods.c ---- */

/* request_now(): this moment, for request(). */
py_object *lull_py_request_now(py_object *self, py_object *unused);

/* request_arrival(fd): when the last data came into this socket if that is known, else now. */
py_object *lull_py_request_arrival(py_object *self, py_object *fd);

/* request_came(fd): the same of a socket that an event loop reads, to the microsecond (came.h). */
py_object *lull_py_request_came(py_object *self, py_object *fd);

/*
 * request_took(fd): the same, once, for a request of these data that begins now; 0 if the loop has
 * slept since then.
 */
py_object *lull_py_request_took(py_object *self, py_object *fd);

/* request_waiting(fd, moment): the same as of a moment, if data waits there; else 0. */
py_object *lull_py_request_waiting(py_object *self, py_object *const *args, i64 n_args);

/* request(name, traceparent, moment): a request arrived at that moment, 0 for now; its id. */
py_object *lull_py_request(py_object *self, py_object *const *args, i64 n_args);

/* request_mark(kind, id, text): as lull_request_mark(). */
py_object *lull_py_request_mark(py_object *self, py_object *const *args, i64 n_args);

/* request_end(id, text): it has ended, and this thread, which worked for it, works for none. */
py_object *lull_py_request_end(py_object *self, py_object *const *args, i64 n_args);

/* request_work(name, id...): this thread works for these; without arguments for none. */
py_object *lull_py_request_work(py_object *self, py_object *const *args, i64 n_args);

/* request_trouble(): some server could not be hooked. */
py_object *lull_py_request_trouble(py_object *self, py_object *unused);

/* ---- methods of request_turn.c ---- */

/* request_turns(Request, Batch, current): the types and the context variable of the package. */
py_object *lull_py_request_turns(py_object *self, py_object *const *args, i64 n_args);

/* request_work_for(request): this thread works for it, a request, a batch or None. */
py_object *lull_py_request_work_for(py_object *self, py_object *request);

/* What the thread was told of last, and to take this for it. */
py_object *lull_py_request_told(py_object *self, py_object *unused);
py_object *lull_py_request_set_told(py_object *self, py_object *request);

/* request_token(request): a token for it, or None: for the present one. */
py_object *lull_py_request_token(py_object *self, py_object *request);

/* request_handles(Handle): what asyncio is to have in place of Handle._run, or None. */
py_object *lull_py_request_handles(py_object *self, py_object *handle);

/* request_tag(queue, item), request_untag(queue, item): who put it there, as a list, or None. */
py_object *lull_py_request_tag(py_object *self, py_object *const *args, i64 n_args);
py_object *lull_py_request_untag(py_object *self, py_object *const *args, i64 n_args);

#endif
