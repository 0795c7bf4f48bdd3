#include "cmd/diff_profiled.h"

#include <math.h>
#include <stdio.h>

#include "text/shorten.h"
#include "text/term.h"

void lull_diff_profiled_init(struct lull_diff_profiled *d, struct lull_reader *before,
			     struct lull_reader *after)
{
	lull_profiles_read(&d->side[0], before);
	lull_profiles_read(&d->side[1], after);
	lull_vec_init(&d->changes, sizeof(struct lull_change));
	if (d->side[0].items.n && d->side[1].items.n)
		lull_changes_find(&d->changes, &d->side[0], &d->side[1]);
}

void lull_diff_profiled_release(struct lull_diff_profiled *d)
{
	lull_vec_release(&d->changes);
	lull_profiles_release(&d->side[0]);
	lull_profiles_release(&d->side[1]);
}

/* ---- for people ---- */

static void print_pair(const char *label, const char *before, const char *after)
{
	printf("  %-26s %14s %14s\n", label, before, after);
}

static void print_values(const struct lull_change *c)
{
	int stall = lull_change_stall(c);

	print_pair("", "before", "after");
	print_pair("Time", lull_k_format(c->dur_ns[0], "ns").text,
		   lull_k_format(c->dur_ns[1], "ns").text);
	for (int k = 0; k < LULL_N_CHANGES; k++) {
		const f64 *v = c->values[k];
		const char *unit = lull_k_infos[lull_change_infos[k].k].unit;

		if (isnan(v[0]) || isnan(v[1]) || (v[0] == 0 && v[1] == 0))
			continue;
		print_pair(lull_change_infos[k].label, lull_k_format(v[0], unit).text,
			   lull_k_format(v[1], unit).text);
	}
	if (stall >= 0)
		print_pair(lull_stalls[stall].title,
			   lull_k_format(100 * c->stalls[stall][0], "%").text,
			   lull_k_format(100 * c->stalls[stall][1], "%").text);
	print_pair("Verdict", c->verdict[0], c->verdict[1]);
}

void lull_diff_profiled_print(const struct lull_diff_profiled *d, u64 top)
{
	const struct lull_change *c = d->changes.at;
	int width = lull_term_width(stdout);

	if (d->changes.n)
		printf("\nProfiled kernels, mean of a launch:\n");
	for (size_t i = 0; i < d->changes.n && (!top || i < top); i++) {
		struct lull_str name = LULL_STR_INIT;

		lull_shorten_name(&name, c[i].name, (size_t)width);
		printf("%s%s\n  ", i ? "\n" : "", lull_str_text(&name));
		if (c[i].was) {
			lull_str_clear(&name);
			lull_shorten_name(&name, c[i].was, (size_t)width - 40);
			printf("compared with %s, the only other kernel before\n  ",
			       lull_str_text(&name));
		}
		lull_str_release(&name);
		lull_term_wrap(stdout, c[i].why, 2, width);
		if (c[i].is_changed)
			print_values(&c[i]);
	}
}

/* ---- for scripts ---- */

static void pair(struct lull_json *j, const char *key, const f64 v[2])
{
	if (isnan(v[0]) && isnan(v[1]))
		return;
	lull_json_key(j, key);
	lull_json_array(j);
	lull_json_f64(j, v[0]);
	lull_json_f64(j, v[1]);
	lull_json_end(j);
}

void lull_diff_profiled_json(const struct lull_diff_profiled *d, struct lull_json *j)
{
	const struct lull_change *c = d->changes.at;

	lull_json_key(j, "profiled");
	lull_json_array(j);
	for (size_t i = 0; i < d->changes.n; i++) {
		lull_json_object(j);
		lull_json_key(j, "name");
		lull_json_text(j, c[i].name);
		lull_json_key_text(j, "was", c[i].was);
		pair(j, "n", (const f64[2]){ (f64)c[i].n[0], (f64)c[i].n[1] });
		pair(j, "time_ns", c[i].dur_ns);
		lull_json_key(j, "verdict");
		lull_json_array(j);
		lull_json_text(j, c[i].verdict[0]);
		lull_json_text(j, c[i].verdict[1]);
		lull_json_end(j);
		lull_json_key(j, "why");
		lull_json_text(j, c[i].why);
		for (int k = 0; k < LULL_N_CHANGES; k++)
			pair(j, lull_k_infos[lull_change_infos[k].k].key, c[i].values[k]);
		lull_json_key(j, "stalls");
		lull_json_object(j);
		for (int k = 0; k < LULL_N_STALLS; k++)
			pair(j, lull_stalls[k].reason, c[i].stalls[k]);
		lull_json_end(j);
		lull_json_end(j);
	}
	lull_json_end(j);
}
