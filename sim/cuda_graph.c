/*
 * cuda_graph - work that is captured once and launched often. One stream, one node after another.
 */
#include "cuda_int.h"

#include <stdatomic.h>
#include <string.h>

struct node {
	u64 id;
	struct sim_work work;
	struct sim_job job;
};

/* A graph, or one that can be launched: that is a copy of the nodes under an id of its own. */
struct sim_graph {
	u32 id;
	size_t n_nodes, room;
	struct node *nodes;
};

static _Atomic u32 n_graphs;
static _Atomic u64 n_nodes;

static struct sim_graph *new_graph(void)
{
	struct sim_graph *graph = calloc(1, sizeof(*graph));

	if (graph)
		graph->id = atomic_fetch_add(&n_graphs, 1) + 1;
	return graph;
}

static void free_graph(struct sim_graph *graph)
{
	if (graph)
		free(graph->nodes);
	free(graph);
}

int lull_sim_graph_add(struct sim_graph *graph, const struct sim_work *work,
		       const struct sim_job *job)
{
	if (graph->n_nodes == graph->room) {
		size_t room = graph->room ? graph->room * 2 : 16;
		struct node *nodes = realloc(graph->nodes, room * sizeof(*nodes));

		if (!nodes)
			return SIM_E_MEMORY;
		graph->nodes = nodes;
		graph->room = room;
	}
	graph->nodes[graph->n_nodes++] = (struct node){
		.id = atomic_fetch_add(&n_nodes, 1) + 1,
		.work = *work,
		.job = *job,
	};
	return SIM_OK;
}

int cuStreamBeginCapture_v2(void *stream, int mode)
{
	struct sim_call call = SIM_ENTER(cuStreamBeginCapture_v2);
	struct sim_stream *s = lull_sim_stream(stream);
	int result = SIM_OK;

	(void)mode;
	if (!s)
		return lull_sim_leave(&call, SIM_E_HANDLE);
	if (s == &s->context->null_stream || s->capture)
		return lull_sim_leave(&call, SIM_E_CAPTURE_UNSUPPORTED);
	lull_sim_lock();
	s->capture = new_graph();
	if (!s->capture)
		result = SIM_E_MEMORY;
	lull_sim_unlock();
	return lull_sim_leave(&call, result);
}

int cuStreamEndCapture(void *stream, void **graph)
{
	struct sim_call call = SIM_ENTER(cuStreamEndCapture);
	struct sim_stream *s = lull_sim_stream(stream);

	if (!s || !s->capture)
		return lull_sim_leave(&call, s ? SIM_E_CAPTURE_UNMATCHED : SIM_E_HANDLE);
	lull_sim_lock();
	*graph = s->capture;
	s->capture = NULL;
	lull_sim_unlock();
	return lull_sim_leave(&call, SIM_OK);
}

static int instantiate(void **exec, const struct sim_graph *graph)
{
	struct sim_graph *copy = graph ? new_graph() : NULL;

	if (!copy)
		return graph ? SIM_E_MEMORY : SIM_E_HANDLE;
	for (size_t i = 0; i < graph->n_nodes; i++) {
		if (lull_sim_graph_add(copy, &graph->nodes[i].work, &graph->nodes[i].job)) {
			free_graph(copy);
			return SIM_E_MEMORY;
		}
	}
	*exec = copy;
	return SIM_OK;
}

int cuGraphInstantiateWithFlags(void **exec, void *graph, u64 flags)
{
	struct sim_call call = SIM_ENTER(cuGraphInstantiateWithFlags);

	(void)flags;
	return lull_sim_leave(&call, instantiate(exec, graph));
}

int cuGraphInstantiate_v2(void **exec, void *graph, void **error_node, char *log, size_t room)
{
	struct sim_call call = SIM_ENTER(cuGraphInstantiate_v2);

	if (error_node)
		*error_node = NULL;
	if (log && room)
		*log = '\0';
	return lull_sim_leave(&call, instantiate(exec, graph));
}

/* Queue all nodes without a break; `whole` gets the times of all of them together. */
static void queue_nodes(const struct sim_graph *exec, struct sim_stream *stream, bool tell_nodes,
			struct sim_work *whole)
{
	for (size_t i = 0; i < exec->n_nodes; i++) {
		const struct node *node = &exec->nodes[i];
		struct sim_work work = node->work;

		work.correlation = whole->correlation;
		work.stream_id = stream->id;
		work.graph_id = exec->id;
		work.graph_node_id = node->id;
		lull_sim_lock();
		lull_sim_place(stream, &work, &node->job);
		work.ticket = lull_sim_execute(&node->job);
		stream->ticket = work.ticket ? work.ticket : stream->ticket;
		lull_sim_unlock();
		if (tell_nodes)
			lull_sim_tell(&work);
		whole->start_ns = i ? whole->start_ns : work.start_ns;
		whole->end_ns = work.end_ns;
	}
}

int cuGraphLaunch(void *exec, void *stream)
{
	struct sim_call call = SIM_ENTER(cuGraphLaunch);
	const struct sim_hooks *hooks = lull_sim_hooks();
	const struct sim_graph *graph = exec;
	struct sim_stream *s = lull_sim_stream(stream);
	bool is_whole = hooks && hooks->wants_graphs();
	struct sim_work whole = { .kind = SIM_GRAPH, .correlation = call.correlation };

	if (!graph || !s)
		return lull_sim_leave(&call, SIM_E_HANDLE);
	if (s->capture)
		return lull_sim_leave(&call, SIM_E_CAPTURE_UNSUPPORTED);
	whole.context_id = s->context->id;
	whole.stream_id = s->id;
	whole.graph_id = graph->id;
	queue_nodes(graph, s, !is_whole, &whole);
	if (is_whole && graph->n_nodes)
		lull_sim_tell(&whole);
	return lull_sim_leave(&call, SIM_OK);
}

int cuGraphDestroy(void *graph)
{
	struct sim_call call = SIM_ENTER(cuGraphDestroy);

	free_graph(graph);
	return lull_sim_leave(&call, graph ? SIM_OK : SIM_E_HANDLE);
}

int cuGraphExecDestroy(void *exec)
{
	struct sim_call call = SIM_ENTER(cuGraphExecDestroy);

	free_graph(exec);
	return lull_sim_leave(&call, exec ? SIM_OK : SIM_E_HANDLE);
}
