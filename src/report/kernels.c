#include "report/kernels.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/str.h"
#include "symbol/demangle.h"
#include "report/nvtx.h"

/* A piece of a longer text. */
struct piece {
	const char *at;
	size_t len;
};

static struct piece plain_name(struct lull_reader *r, const struct lull_launch_row *launch,
			       const struct lull_report_options *options)
{
	bool is_mangled = lull_report_has_arg(options, "mangled") && launch->mangled_name;
	struct piece name;

	name.at =
		lull_reader_string(r, is_mangled ? launch->mangled_name : launch->name, &name.len);
	if (lull_report_has_arg(options, "base"))
		name.at = lull_base_name(name.at, &name.len);
	return name;
}

void lull_kernels_init(struct lull_kernels *k, struct lull_reader *r,
		       const struct lull_report_options *options)
{
	size_t n;

	*k = (struct lull_kernels){ .reader = r };
	k->launches = lull_reader_dim(r, LULL_TABLE_launch, &n);
	k->names = lull_alloc(n + 1, sizeof(*k->names));
	lull_intern_init(&k->texts);
	lull_map_init(&k->prefixed);
	/* Number 0 is the kernel of which nothing is known. */
	lull_intern_add(&k->texts, "", 0);
	for (size_t i = 0; i < n; i++) {
		struct piece name = plain_name(r, &k->launches[i], options);

		k->names[i + 1] = lull_intern_add(&k->texts, name.at, name.len);
	}
	k->has_ranges = lull_report_has_arg(options, "nvtx-name");
	if (k->has_ranges) {
		lull_link_init(&k->link, r);
		lull_nest_init(&k->nest, r, LULL_SPAN_ALL, LULL_NEST_ONE_THREAD);
	}
}

void lull_kernels_release(struct lull_kernels *k)
{
	free(k->names);
	lull_intern_release(&k->texts);
	lull_map_release(&k->prefixed);
	if (k->has_ranges) {
		lull_link_release(&k->link);
		lull_nest_release(&k->nest);
	}
}

unsigned lull_kernels_wants(const struct lull_kernels *k)
{
	return k->has_ranges ? LULL_WORK_WANT_CALL : 0;
}

/* The label of the innermost range around the launch, 0 if there is none. */
static u32 label_of(const struct lull_kernels *k, const struct lull_work *kernel)
{
	const struct lull_call *call = lull_link_find(&k->link, kernel);
	u32 number = call ? lull_nest_find(&k->nest, call->lane, lull_call_span(call)) : 0;

	return number ? lull_nest_get(&k->nest, number)->label : 0;
}

u32 lull_kernels_name(struct lull_kernels *k, const struct lull_work *kernel)
{
	u32 name = k->names[kernel->what], label = k->has_ranges ? label_of(k, kernel) : 0;
	struct lull_str text = LULL_STR_INIT;
	u32 *known;

	if (!label)
		return name;
	known = lull_map_add(&k->prefixed, (u64)label << 32 | name, NULL);
	if (!*known) {
		lull_nvtx_label_name(&text, k->reader, label);
		lull_str_addf(&text, "/%s", lull_kernels_text(k, name));
		*known = lull_intern_add(&k->texts, text.at, text.len) + 1;
		lull_str_release(&text);
	}
	return *known - 1;
}

const char *lull_kernels_text(const struct lull_kernels *k, u32 name)
{
	return lull_intern_get(&k->texts, name);
}

const struct lull_launch_row *lull_kernels_launch(const struct lull_kernels *k,
						  const struct lull_work *kernel)
{
	static const struct lull_launch_row unknown = { 0 };

	return kernel->what ? &k->launches[kernel->what - 1] : &unknown;
}
