#include "cause/children.h"

#include "cause/evidence.h"

struct lull_children lull_children_find(const struct lull_subject *s)
{
	size_t n;
	const struct lull_process_row *all = lull_reader_dim(s->reader, LULL_TABLE_process, &n);
	const struct lull_process_row *own = &all[s->process - 1];
	u64 from_ns = lull_round_begin_ns(&s->rounds, s->rounds.first_steady);
	u64 to_ns = lull_round_begin_ns(&s->rounds, (u32)s->rounds.all.n);
	struct lull_children c = { 0 };

	for (size_t i = 0; i < n; i++) {
		u64 end_ns = all[i].end_ns ? all[i].end_ns : to_ns;
		struct lull_span life = { all[i].start_ns, end_ns };

		if (all[i].parent_pid != own->pid || &all[i] == own || end_ns <= from_ns ||
		    life.from_ns >= to_ns)
			continue;
		c.name = !c.n || c.name == all[i].name ? all[i].name : 0;
		c.n++;
		c.life_ns += (f64)(life.to_ns - life.from_ns);
		life = lull_span_cut(life, from_ns, to_ns);
		c.at_once += (f64)(life.to_ns - life.from_ns) / (f64)(to_ns - from_ns);
	}
	c.life_ns /= c.n ? c.n : 1;
	return c;
}

static bool are_short(const struct lull_children *c, const struct lull_why *why)
{
	return c->n && c->life_ns < why->step_ns;
}

bool lull_show_children(const struct lull_why *why, struct lull_finding *f)
{
	struct lull_children c = lull_children_find(why->lead);
	const char *name = lull_reader_string(why->reader, c.name, NULL);

	if (!are_short(&c, why))
		return false;
	lull_show(f, "process", NULL, "child processes%s%s start %s and live for %s each",
		  *name ? " named " : "", name,
		  lull_show_often(c.at_once * why->step_ns / c.life_ns).text,
		  lull_why_time(c.life_ns).text);
	return true;
}
