/*
 * from_sockets - requests of a server that nobody names, by what it reads and sends on its
 * connections.
 *
 * A connection is what accept() gave. A request on it begins when data comes in after an answer, or
 * after the connection was accepted, and ends with the last data that is sent before more comes in
 * or the connection is closed. A loop that waits for many connections has the data of each that it
 * reads then from the end of its wait.
 *
 * A thread works for a request from the moment at which it has read its data until it answers,
 * reads for another request or waits. What it did before it sends was for this answer, back to its
 * last wait or other call on a connection: so one that goes on with a request later, or takes it
 * from another thread, is seen when it answers. If it came to nothing else meanwhile, the waits in
 * between are of the request, too.
 *
 * Connections inside the program are not of a server: those of a DataLoader, whose workers hand
 * files to the main process. They are told by three signs: as many connect() as accept(), no work
 * of a device for the process that accepts, and such work for another one.
 *
 * Calls of connections that were there before lull attach, and are shorter than the threshold of
 * the recording, are not there. If the first data of a connection is not seen, its first request
 * counts from accept().
 */
#include <stdlib.h>
#include <string.h>

#include "base/map.h"
#include "base/mem.h"
#include "base/sort.h"
#include "model/work.h"
#include "request/name_class.h"
#include "request/requests_int.h"

enum kind { NOTHING, ACCEPTED, CONNECTED, CAME, SENT, CLOSED, WAITS };

static const struct {
	const char *name;
	enum kind kind;
} names[] = {
	{ "accept", ACCEPTED },	 { "accept4", ACCEPTED },  { "recv", CAME },
	{ "recvfrom", CAME },	 { "recvmsg", CAME },	   { "read", CAME },
	{ "readv", CAME },	 { "__recv_chk", CAME },   { "__recvfrom_chk", CAME },
	{ "__read_chk", CAME },	 { "send", SENT },	   { "sendto", SENT },
	{ "sendmsg", SENT },	 { "write", SENT },	   { "writev", SENT },
	{ "close", CLOSED },	 { "shutdown", CLOSED },   { "poll", WAITS },
	{ "ppoll", WAITS },	 { "select", WAITS },	   { "pselect", WAITS },
	{ "epoll_wait", WAITS }, { "epoll_pwait", WAITS }, { "connect", CONNECTED },
	{ "__poll_chk", WAITS }, { "__ppoll_chk", WAITS }, { "sendmmsg", SENT },
};

/* A read that takes longer has waited for its data. */
#define LONG_READ_NS 100000u

struct call {
	u64 at_ns; /* what it means holds from here: its end where it takes something in */
	u64 start_ns, end_ns;
	i64 fd, ret;
	u32 process, lane;
	u8 kind;
};

/* A connection, and the request on it. */
struct connection {
	i64 fd;
	u32 process;
	bool is_open;
	bool has_request;
	bool has_data;		   /* of the request: some came in */
	u64 gone_ns;		   /* its client has left before an answer; 0 = not */
	u64 id, start_ns, sent_ns; /* of the request; sent_ns 0: nothing yet */
	u64 late_ns;		   /* its thread did not look for so long before */
	u32 lane;		   /* that took it in */
};

/* What a thread works for. */
struct working {
	u64 id, from_ns; /* id 0: nothing that is known */
	u64 wait_ns;	 /* it began to wait, perhaps again since; 0 = not after from_ns */
	u64 awake_ns;	 /* the end of its last wait */
	u64 woke_ns;	 /* the end of its last wait for many descriptors */
	i64 n_ready;	 /* so many of those were ready, and it has not come to them yet */
	u64 asked_ns;	 /* it last learned who is there */
	u64 late_ns; /* who is there now may have been for so long: it was busy until it asked */
};

struct sockets {
	struct lull_request_reader *q;
	struct lull_vec calls;	     /* struct call, by at_ns */
	struct lull_vec connections; /* struct connection */
	struct lull_map places;	     /* where those of a process and a descriptor are */
	struct lull_name_classes kinds;
	struct working *working; /* by lane */
	u64 n_requests, n_accepted, n_connected;
};

static u8 kind_of(const char *name)
{
	for (size_t i = 0; i < LULL_COUNT_OF(names); i++)
		if (!strcmp(name, names[i].name))
			return (u8)names[i].kind;
	return NOTHING;
}

static int by_time(const void *a, const void *b)
{
	const struct call *x = a, *y = b;

	return x->at_ns < y->at_ns ? -1 : x->at_ns > y->at_ns;
}

static void take_call(struct sockets *s, const struct lull_oscall_cols *cols, size_t i, u8 kind)
{
	u64 end_ns = lull_span_end_ns(cols->start_ns[i], cols->dur_ns[i]);

	*(struct call *)lull_vec_push(&s->calls) = (struct call){
		.at_ns = kind == ACCEPTED || kind == CAME || kind == WAITS ? end_ns
									   : cols->start_ns[i],
		.start_ns = cols->start_ns[i],
		.end_ns = end_ns,
		.fd = kind == ACCEPTED ? cols->ret[i] : cols->arg[i],
		.ret = cols->ret[i],
		.process = s->q->lanes[cols->lane[i] - 1].process,
		.lane = cols->lane[i],
		.kind = kind,
	};
}

static void read_calls(struct sockets *s)
{
	struct lull_request_reader *q = s->q;
	struct lull_oscall_cols cols;
	struct lull_cursor c;
	size_t n;

	lull_cursor_init(&c, q->reader, LULL_TABLE_oscall, q->window.from_ns, q->window.to_ns);
	while ((n = lull_cursor_next(&c, &cols)) > 0) {
		for (size_t i = 0; i < n; i++) {
			u8 kind = lull_name_class(&s->kinds, cols.name[i], kind_of);

			if (kind != NOTHING && cols.lane[i])
				take_call(s, &cols, i, kind);
		}
	}
	lull_cursor_release(&c);
	lull_sort(s->calls.at, s->calls.n, sizeof(struct call), by_time);
}

/* ---- threads ---- */

static void keep_slice(struct sockets *s, u32 lane, u64 id, u64 from_ns, u64 to_ns)
{
	if (id && to_ns > from_ns)
		*(struct lull_request_slice *)lull_vec_push(&s->q->slices) =
			(struct lull_request_slice){ .from_ns = from_ns,
						     .to_ns = to_ns,
						     .id = id,
						     .process = s->q->lanes[lane - 1].process,
						     .lane = lane,
						     .request = LULL_NO_REQUEST };
}

/* What the thread has done so far was for what it works for, up to its first wait. */
static void settle(struct sockets *s, u32 lane, u64 at_ns)
{
	struct working *w = &s->working[lane];

	keep_slice(s, lane, w->id, w->from_ns, w->wait_ns ? w->wait_ns : at_ns);
	w->from_ns = w->wait_ns ? w->awake_ns : at_ns;
	w->id = w->wait_ns = 0;
}

static void work(struct sockets *s, const struct call *a, u64 id)
{
	struct working *w = &s->working[a->lane];

	if (w->id == id) {
		w->wait_ns = 0; /* for more of its data */
		return;
	}
	settle(s, a->lane, a->start_ns);
	w->id = id;
	w->from_ns = a->end_ns;
}

/* The call waits, or may have. */
static void wait(struct sockets *s, const struct call *a)
{
	struct working *w = &s->working[a->lane];

	if (!w->wait_ns)
		w->wait_ns = a->start_ns;
	w->awake_ns = a->end_ns;
}

/* It has sent an answer: what it did until then was for this one. */
static void answer(struct sockets *s, const struct call *a, u64 id, u64 start_ns)
{
	struct working *w = &s->working[a->lane];

	if (w->id != id) {
		u64 from_ns;

		if (w->wait_ns)
			settle(s, a->lane, a->start_ns);
		from_ns = w->from_ns > start_ns ? w->from_ns : start_ns;
		keep_slice(s, a->lane, w->id, w->from_ns, from_ns);
		w->from_ns = from_ns;
	}
	keep_slice(s, a->lane, id, w->from_ns, a->end_ns);
	w->id = w->wait_ns = 0;
	w->from_ns = a->end_ns;
}

/* ---- connections ---- */

static u64 place_key(const struct call *c)
{
	return (u64)c->process << 32 | (u32)c->fd;
}

static struct connection *find(struct sockets *s, const struct call *c)
{
	u32 *ix = lull_map_find(&s->places, place_key(c));

	return ix ? lull_vec_get(&s->connections, *ix) : NULL;
}

static struct connection *add(struct sockets *s, const struct call *c)
{
	*lull_map_add(&s->places, place_key(c), NULL) = (u32)s->connections.n;
	return lull_vec_push(&s->connections);
}

static void end_request(struct sockets *s, struct connection *c)
{
	bool is_hung_up = !c->sent_ns && c->has_data && c->gone_ns;
	u64 end_ns = is_hung_up ? c->gone_ns : c->sent_ns;

	if (c->has_request && end_ns > c->start_ns) {
		*(struct lull_one_request *)lull_vec_push(&s->q->to->all) =
			(struct lull_one_request){ .id = c->id,
						   .start_ns = c->start_ns,
						   .end_ns = end_ns,
						   .process = c->process,
						   .lane = c->lane,
						   .late_ns = c->late_ns,
						   .end = is_hung_up ? LULL_REQUEST_IS_HUNG_UP
								     : LULL_REQUEST_OK };
		s->q->to->n_hung_up += is_hung_up;
	}
	c->has_request = false;
	c->sent_ns = c->gone_ns = 0;
}

/* The recording ends. */
static void cut_request(struct sockets *s, struct connection *c)
{
	s->q->to->n_cut_end += c->has_request && c->has_data && !c->sent_ns && !c->gone_ns;
	end_request(s, c);
}

static void begin_request(struct sockets *s, struct connection *c, u32 lane, u64 at_ns)
{
	c->has_request = true;
	c->has_data = false;
	c->id = ++s->n_requests;
	c->start_ns = at_ns;
	c->sent_ns = 0;
	c->lane = lane;
}

static void on_accept(struct sockets *s, const struct call *a)
{
	struct connection *c = find(s, a);

	if (a->ret < 0)
		return;
	if (!c)
		c = add(s, a);
	end_request(s, c);
	*c = (struct connection){ .fd = a->fd, .process = a->process, .is_open = true };
	begin_request(s, c, a->lane, a->end_ns);
	c->late_ns = s->working[a->lane].late_ns;
}

/* When the data were there that the call has read: a wait for many descriptors may have told. */
static u64 came_ns(struct sockets *s, const struct call *a, u64 least_ns)
{
	struct working *w = &s->working[a->lane];

	if (w->n_ready <= 0 || a->end_ns - a->start_ns > LONG_READ_NS)
		return a->end_ns;
	w->n_ready--;
	return w->woke_ns > least_ns ? w->woke_ns : least_ns;
}

/*
 * For how long the data may have been there before: until the thread asked, which learned it at
 * once, and not before the connection or the last answer on it.
 */
static u64 late_ns(const struct sockets *s, u32 lane, u64 start_ns, u64 least_ns)
{
	u64 ns = s->working[lane].late_ns;

	if (s->working[lane].woke_ns != start_ns)
		return 0;
	return ns < start_ns - least_ns ? ns : start_ns - least_ns;
}

/* Nothing more comes, or nothing can be sent; of a socket that is full, more is sent later. */
static void leave(struct connection *c, const struct call *a)
{
	if (!c->gone_ns)
		c->gone_ns = a->end_ns;
}

static void on_data(struct sockets *s, struct connection *c, const struct call *a)
{
	if (a->ret <= 0) {
		wait(s, a);
		if (!a->ret)
			leave(c, a);
		return;
	}
	if (c->sent_ns || !c->has_request) {
		u64 sent_ns = c->sent_ns;

		end_request(s, c);
		begin_request(s, c, a->lane, came_ns(s, a, sent_ns));
		c->late_ns = late_ns(s, a->lane, c->start_ns, sent_ns);
	} else if (!c->has_data) {
		/* The first data: the request counts from here, not from accept(). */
		c->start_ns = came_ns(s, a, c->start_ns);
		c->lane = a->lane;
	}
	c->has_data = true;
	work(s, a, c->id);
}

static void on_sent(struct sockets *s, struct connection *c, const struct call *a)
{
	if (a->ret < 0)
		leave(c, a);
	if (a->ret <= 0 || !c->has_request)
		return;
	answer(s, a, c->id, c->start_ns);
	c->sent_ns = a->end_ns;
}

static void on_wait(struct sockets *s, const struct call *a)
{
	struct working *w = &s->working[a->lane];

	wait(s, a);
	/* A connection that a wait has told of is there since that wait. */
	if (a->kind == WAITS || w->n_ready <= 0) {
		bool is_at_once = a->end_ns - a->start_ns <= LONG_READ_NS && w->asked_ns;

		w->late_ns = is_at_once ? a->start_ns - w->asked_ns : 0;
	}
	w->asked_ns = a->end_ns;
	if (a->kind == WAITS) {
		w->woke_ns = a->end_ns;
		w->n_ready = a->ret;
	} else if (a->ret >= 0) {
		w->n_ready--;
	}
}

static void take(struct sockets *s, const struct call *a)
{
	struct connection *c;

	s->n_accepted += a->kind == ACCEPTED;
	s->n_connected += a->kind == CONNECTED;
	if (a->kind == CONNECTED)
		return;
	if (a->kind == ACCEPTED || a->kind == WAITS)
		on_wait(s, a);
	if (a->kind == ACCEPTED)
		on_accept(s, a);
	c = a->kind == WAITS || a->kind == ACCEPTED ? NULL : find(s, a);
	if (!c || !c->is_open)
		return;
	if (a->kind == CAME) {
		on_data(s, c, a);
	} else if (a->kind == SENT) {
		on_sent(s, c, a);
	} else {
		if (s->working[a->lane].id == c->id)
			settle(s, a->lane, a->start_ns);
		end_request(s, c);
		c->is_open = false;
	}
}

/* Whether a device works for a process that has requests; or, `is_other`, for one that has none. */
static bool has_device(const struct lull_request_reader *q, bool is_other)
{
	const struct lull_one_request *all = q->to->all.at;
	struct lull_map serves;
	bool has = false;

	lull_map_init(&serves);
	for (size_t i = 0; i < q->to->all.n; i++)
		lull_map_add(&serves, all[i].process, NULL);
	for (size_t lane = 0; lane < q->n_lanes && !has; lane++)
		has = q->lanes[lane].kind == LULL_LANE_STREAM &&
		      !lull_map_find(&serves, q->lanes[lane].process) == is_other;
	lull_map_release(&serves);
	return has;
}

static bool is_internal(const struct sockets *s)
{
	return s->n_connected >= s->n_accepted && !has_device(s->q, false) &&
	       has_device(s->q, true);
}

/* Whether a connection is accepted at all; few programs do. */
static bool has_accepted(struct sockets *s)
{
	struct lull_oscall_cols cols;
	struct lull_cursor c;
	bool has = false;
	size_t n;

	lull_cursor_init(&c, s->q->reader, LULL_TABLE_oscall, s->q->window.from_ns,
			 s->q->window.to_ns);
	lull_cursor_want(&c, "name");
	while (!has && (n = lull_cursor_next(&c, &cols)) > 0)
		for (size_t i = 0; i < n && !has; i++)
			has = lull_name_class(&s->kinds, cols.name[i], kind_of) == ACCEPTED;
	lull_cursor_release(&c);
	return has;
}

static void follow(struct sockets *s)
{
	struct lull_request_reader *q = s->q;
	struct connection *c;

	read_calls(s);
	for (size_t i = 0; i < s->calls.n; i++)
		take(s, lull_vec_get(&s->calls, i));
	c = s->connections.at;
	for (size_t i = 0; i < s->connections.n; i++)
		cut_request(s, &c[i]);
	for (u32 lane = 1; lane <= q->n_lanes; lane++)
		settle(s, lane, q->to->span.to_ns);
	/* What never answers is no server, but takes in what others send. */
	if (is_internal(s) || q->to->all.n == q->to->n_hung_up)
		q->to->all.n = q->slices.n = q->to->n_hung_up = q->to->n_cut_end = 0;
}

void lull_request_from_sockets(struct lull_request_reader *q)
{
	struct sockets s = { .q = q };

	lull_name_classes_init(&s.kinds, q->reader);
	lull_map_init(&s.places);
	lull_vec_init(&s.calls, sizeof(struct call));
	lull_vec_init(&s.connections, sizeof(struct connection));
	s.working = lull_alloc(q->n_lanes + 1, sizeof(*s.working));
	if (has_accepted(&s))
		follow(&s);
	free(s.working);
	lull_map_release(&s.places);
	lull_name_classes_release(&s.kinds);
	lull_vec_release(&s.calls);
	lull_vec_release(&s.connections);
}
