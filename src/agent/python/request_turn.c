/*
 * request_turn - which request a thread of Python turns to: what the package does for each callback
 * of an event loop and each item of a queue.
 *
 * It could be in Python, and was: such a function takes a microsecond where caches are cold, as
 * they are in a server, and a request of asyncio has a hundred of them. The objects are the
 * package's, `Request` and `Batch` of _requests.py, and what is done with them here is what it
 * would do.
 *
 * No error of ours reaches the program: what fails is left out.
 */
#include "agent/nvtx/request_tell.h"
#include "agent/python/python_module.h"

/* More requests in a batch than this are left out. */
#define MAX_IDS 256

/* Items of a queue that are known; if it is emptied by other means they are forgotten. */
#define MAX_KNOWN 10000

/* Attributes, and the key of what a thread was told of last. */
#define NAMES(N)      \
	N(_context)   \
	N(_lull_tags) \
	N(_lull_told) \
	N(get)        \
	N(id)         \
	N(is_open)    \
	N(name)       \
	N(requests)

static struct {
	py_object *request, *batch; /* the types */
	py_object *current;	    /* the context variable */
	py_object *run;		    /* Handle._run of asyncio, as it was */
#define N(name) py_object *name;
	struct {
		NAMES(N)
	} word;
#undef N
} turn;

/* ---- objects ---- */

static void drop(py_object *object)
{
	if (object)
		lull_py.Py_DecRef(object);
}

/* A new reference, NULL if there is none. */
static py_object *attribute(py_object *of, py_object *name)
{
	py_object *found = lull_py.PyObject_GetAttr(of, name);

	if (!found)
		lull_py.PyErr_Clear();
	return found;
}

static bool is_a(py_object *object, const py_object *type)
{
	py_object *its = lull_py.PyObject_Type(object);

	drop(its);
	return its == type;
}

static bool is_open(py_object *request)
{
	py_object *value = attribute(request, turn.word.is_open);
	int is = value ? lull_py.PyObject_IsTrue(value) : 0;

	drop(value);
	return is > 0;
}

/* The requests of a batch that are open: a list that nobody changes. A new reference, or NULL. */
static py_object *all_open(py_object *batch)
{
	py_object *all = attribute(batch, turn.word.requests), *open;
	i64 n = all ? lull_py.PyList_Size(all) : 0, n_open = 0;

	for (i64 i = 0; i < n; i++)
		n_open += is_open(lull_py.PyList_GetItem(all, i));
	if (n_open == n)
		return all;
	open = lull_py.PyList_New(0);
	for (i64 i = 0; open && i < n; i++) {
		py_object *one = lull_py.PyList_GetItem(all, i);

		if (one && is_open(one))
			lull_py.PyList_Append(open, one);
	}
	drop(all);
	if (open)
		lull_py.PyObject_SetAttr(batch, turn.word.requests, open);
	return open;
}

/* What the thread was told of last; borrowed, NULL for none. */
static py_object *told(void)
{
	py_object *dict = lull_py.PyThreadState_GetDict();
	py_object *found = dict ? lull_py.PyDict_GetItem(dict, turn.word._lull_told) : NULL;

	return found == lull_py.none ? NULL : found;
}

static void set_told(py_object *request)
{
	py_object *dict = lull_py.PyThreadState_GetDict();

	if (dict && lull_py.PyDict_SetItem(dict, turn.word._lull_told,
					   request ? request : lull_py.none) != 0)
		lull_py.PyErr_Clear();
}

/* ---- turning ---- */

static void tell(py_object *const *requests, u32 n)
{
	py_object *name = n ? attribute(requests[0], turn.word.name) : NULL;
	struct lull_text text = name ? lull_py_text(name) : (struct lull_text){ 0 };
	u64 ids[MAX_IDS];

	for (u32 i = 0; i < n; i++) {
		py_object *id = attribute(requests[i], turn.word.id);

		ids[i] = id ? lull_py_number(id) : 0;
		drop(id);
	}
	lull_request_work(&text, ids, name ? n : 0);
	drop(name);
}

static void tell_batch(py_object *batch)
{
	py_object *open = all_open(batch), *requests[MAX_IDS] = { NULL };
	i64 n = open ? lull_py.PyList_Size(open) : 0;

	n = n < MAX_IDS ? n : MAX_IDS;
	for (i64 i = 0; i < n; i++)
		requests[i] = lull_py.PyList_GetItem(open, i);
	tell(requests, (u32)n);
	drop(open);
}

static bool has_open(py_object *batch)
{
	py_object *all = attribute(batch, turn.word.requests);
	i64 n = all ? lull_py.PyList_Size(all) : 0;
	bool has = false;

	for (i64 i = 0; i < n && !has; i++)
		has = is_open(lull_py.PyList_GetItem(all, i));
	drop(all);
	return has;
}

/* The thread works for this one from now on, NULL: for none. */
static void turn_to(py_object *request)
{
	bool is_batch = request && is_a(request, turn.batch);

	if (request && !(is_batch ? has_open(request) : is_open(request)))
		request = NULL;
	if (told() == request)
		return;
	set_told(request);
	if (!lull_has_recording())
		return;
	if (is_batch && request)
		tell_batch(request);
	else
		tell(&request, request ? 1 : 0);
}

static bool is_ready(void)
{
	return turn.current != NULL;
}

py_object *lull_py_request_turns(py_object *self, py_object *const *args, i64 n_args)
{
	(void)self;
	if (n_args != 3 || is_ready())
		return lull_py_none();
#define N(name) turn.word.name = lull_py.PyUnicode_InternFromString(#name);
	NAMES(N)
#undef N
	turn.request = args[0];
	turn.batch = args[1];
	for (int i = 0; i < 3; i++)
		lull_py.Py_IncRef(args[i]); /* for good */
	turn.current = args[2];
	return lull_py_none();
}

py_object *lull_py_request_work_for(py_object *self, py_object *request)
{
	(void)self;
	turn_to(request == lull_py.none ? NULL : request);
	return lull_py_none();
}

py_object *lull_py_request_told(py_object *self, py_object *unused)
{
	py_object *found = told();

	(void)self;
	(void)unused;
	found = found ? found : lull_py.none;
	lull_py.Py_IncRef(found);
	return found;
}

py_object *lull_py_request_set_told(py_object *self, py_object *request)
{
	(void)self;
	set_told(request == lull_py.none ? NULL : request);
	return lull_py_none();
}

/* What the code works for, a new reference, or NULL. */
static py_object *holder_of_now(void)
{
	py_object *holder = NULL;

	if (lull_py.PyContextVar_Get(turn.current, NULL, &holder) != 0) {
		lull_py.PyErr_Clear();
		return NULL;
	}
	if (holder != lull_py.none)
		return holder;
	drop(holder);
	return NULL;
}

static void mark_token(py_object *request)
{
	static const char name[] = "token";
	struct lull_text text = lull_text(name, sizeof(name) - 1);
	py_object *id = is_open(request) ? attribute(request, turn.word.id) : NULL;

	if (id)
		lull_request_mark(LULL_REQUEST_TOKEN, lull_py_number(id), &text);
	drop(id);
}

/* A token for this request, or for the present one if it is None. */
py_object *lull_py_request_token(py_object *self, py_object *request)
{
	py_object *holder = NULL, *open;

	(void)self;
	if (!is_ready())
		return lull_py_none();
	if (request == lull_py.none)
		request = holder = holder_of_now();
	if (request && is_a(request, turn.request)) {
		mark_token(request);
	} else if (request && is_a(request, turn.batch)) {
		open = all_open(request);
		for (i64 i = 0, n = open ? lull_py.PyList_Size(open) : 0; i < n; i++)
			mark_token(lull_py.PyList_GetItem(open, i));
		drop(open);
	}
	drop(holder);
	return lull_py_none();
}

/* ---- callbacks of asyncio ---- */

/* Handle._run(): the callback works for the request of its context. */
static py_object *run(py_object *self, py_object *unused)
{
	py_object *context = attribute(self, turn.word._context), *request = NULL, *result;
	py_object *error[3];

	(void)unused;
	if (context)
		request = lull_py.PyObject_CallMethodObjArgs(context, turn.word.get, turn.current,
							     NULL);
	if (!request)
		lull_py.PyErr_Clear();
	else if (request != lull_py.none)
		turn_to(request);
	drop(request);
	drop(context);
	result = lull_py.PyObject_CallFunctionObjArgs(turn.run, self, NULL);
	if (!result)
		lull_py.PyErr_Fetch(&error[0], &error[1], &error[2]);
	if (told())
		turn_to(NULL);
	if (!result)
		lull_py.PyErr_Restore(error[0], error[1], error[2]);
	return result;
}

/* request_handles(Handle): what it has in place of its _run(), which is called by that; or None. */
py_object *lull_py_request_handles(py_object *self, py_object *handle)
{
	static const struct py_method method = { "_run", (void *)run, WITHOUT_ARGS,
						 "_run($self, /)\n--\n\n" };
	py_object *made, *name = lull_py.PyUnicode_InternFromString("_run");

	(void)self;
	if (is_ready() && !turn.run)
		turn.run = attribute(handle, name);
	drop(name);
	made = turn.run ? lull_py.PyDescr_NewMethod(handle, &method) : NULL;
	if (made)
		return made;
	lull_py.PyErr_Clear();
	return lull_py_none();
}

/* ---- items of queues ---- */

/* The dict of a queue that has the holders of its items: by the id of an item a list of lists. */
static py_object *tags_of(py_object *queue)
{
	py_object *tags = attribute(queue, turn.word._lull_tags);

	if (tags != lull_py.none)
		return tags;
	drop(tags);
	return NULL;
}

/* The requests that this code works for, as a list; a new reference, NULL if there are none. */
static py_object *holders(void)
{
	py_object *holder = holder_of_now(), *list = NULL;

	if (holder && is_a(holder, turn.batch)) {
		list = all_open(holder);
	} else if (holder && is_open(holder)) {
		list = lull_py.PyList_New(0);
		if (list)
			lull_py.PyList_Append(list, holder);
	}
	drop(holder);
	if (list && lull_py.PyList_Size(list) > 0)
		return list;
	drop(list);
	return NULL;
}

static void put_tag(py_object *tags, py_object *item, py_object *list)
{
	py_object *key = lull_py.PyLong_FromVoidPtr(item);
	py_object *waiting = key ? lull_py.PyDict_GetItem(tags, key) : NULL, *made = NULL;

	/* The same object may wait in it twice, so each has a list. */
	if (key && !waiting)
		waiting = made = lull_py.PyList_New(0);
	if (waiting && lull_py.PyList_Append(waiting, list) == 0 && made)
		lull_py.PyDict_SetItem(tags, key, made);
	drop(made);
	drop(key);
}

/* request_tag(queue, item): it is put into it, for those that this code works for. */
py_object *lull_py_request_tag(py_object *self, py_object *const *args, i64 n_args)
{
	py_object *list, *tags;

	(void)self;
	if (n_args != 2)
		return lull_py_none();
	list = holders();
	tags = tags_of(args[0]);
	if (!tags && list) {
		tags = lull_py.PyDict_New();
		if (tags && lull_py.PyObject_SetAttr(args[0], turn.word._lull_tags, tags) != 0)
			lull_py.PyErr_Clear();
	}
	if (tags && !list)
		list = lull_py.PyList_New(0); /* it has none, but its turn */
	if (tags && lull_py.PyDict_Size(tags) > MAX_KNOWN)
		lull_py.PyDict_Clear(tags);
	if (tags && list)
		put_tag(tags, args[1], list);
	lull_py.PyErr_Clear();
	drop(tags);
	drop(list);
	return lull_py_none();
}

/* request_untag(queue, item): the requests that it was put in for, as a list, or None. */
py_object *lull_py_request_untag(py_object *self, py_object *const *args, i64 n_args)
{
	py_object *tags = n_args == 2 ? tags_of(args[0]) : NULL, *key, *waiting, *found = NULL;

	(void)self;
	key = tags && lull_py.PyDict_Size(tags) > 0 ? lull_py.PyLong_FromVoidPtr(args[1]) : NULL;
	waiting = key ? lull_py.PyDict_GetItem(tags, key) : NULL;
	if (waiting && lull_py.PyList_Size(waiting) > 0) {
		found = lull_py.PyList_GetItem(waiting, 0);
		lull_py.Py_IncRef(found);
		lull_py.PyList_SetSlice(waiting, 0, 1, NULL);
		if (!lull_py.PyList_Size(waiting))
			lull_py.PyDict_DelItem(tags, key);
	}
	lull_py.PyErr_Clear();
	drop(key);
	drop(tags);
	if (found && lull_py.PyList_Size(found) > 0)
		return found;
	drop(found);
	return lull_py_none();
}
