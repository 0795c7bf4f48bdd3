/* Requests of servers, as the package in python/ sees them. */
#include "agent/nvtx/request_tell.h"
#include "agent/python/python_module.h"

/* More requests in a batch than this are left out. */
#define MAX_IDS 256u

static struct {
	u64 n_requests; /* under the interpreter lock */
} requests;

py_object *lull_py_request_now(py_object *self, py_object *unused)
{
	(void)self;
	(void)unused;
	return lull_py.PyLong_FromUnsignedLongLong(lull_time());
}

py_object *lull_py_request(py_object *self, py_object *const *args, i64 n_args)
{
	struct lull_request r = { .id = ++requests.n_requests };

	(void)self;
	if (n_args == 3 && lull_has_recording()) {
		r.name = lull_py_text(args[0]);
		r.trace = lull_py_text(args[1]);
		lull_request_arrived(&r, lull_py_number(args[2]));
	}
	return lull_py.PyLong_FromUnsignedLongLong(r.id);
}

py_object *lull_py_request_mark(py_object *self, py_object *const *args, i64 n_args)
{
	struct lull_text name;

	(void)self;
	if (n_args == 3 && lull_has_recording()) {
		name = lull_py_text(args[2]);
		lull_request_mark((enum lull_request_kind)lull_py_number(args[0]),
				  lull_py_number(args[1]), &name);
	}
	return lull_py_none();
}

py_object *lull_py_request_work(py_object *self, py_object *const *args, i64 n_args)
{
	struct lull_text name = { 0 };
	u64 ids[MAX_IDS];
	u32 n = 0;

	(void)self;
	if (!lull_has_recording())
		return lull_py_none();
	if (n_args > 1)
		name = lull_py_text(args[0]);
	for (; n < MAX_IDS && n + 1 < n_args; n++)
		ids[n] = lull_py_number(args[n + 1]);
	lull_request_work(&name, ids, n);
	return lull_py_none();
}

py_object *lull_py_request_trouble(py_object *self, py_object *unused)
{
	(void)self;
	(void)unused;
	lull_issue(LULL_ISSUE_request_partly, 1);
	return lull_py_none();
}
