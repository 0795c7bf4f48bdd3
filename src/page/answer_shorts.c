/*
 * shorts: the short names of kernels, as tables and `lull why` have them (text/kernel_name.h).
 *
 *	[[5, "gemm 128×64 bf16"], ...]		by id of the name; kernels that have no shorter one
 *						are left out
 */
#include "page/page.h"

#include <stdlib.h>
#include <string.h>

#include "base/map.h"
#include "base/mem.h"
#include "text/labels.h"

/* The ids of the kernels' names, each once, in the order of their first launches. */
static u32 *name_ids(struct lull_reader *r, size_t *n_names)
{
	size_t n;
	const struct lull_launch_row *launches = lull_reader_dim(r, LULL_TABLE_launch, &n);
	u32 *ids = lull_alloc(n + 1, sizeof(*ids));
	struct lull_map known;

	lull_map_init(&known);
	*n_names = 0;
	for (size_t i = 0; i < n; i++) {
		bool is_new;

		lull_map_add(&known, launches[i].name, &is_new);
		if (is_new)
			ids[(*n_names)++] = launches[i].name;
	}
	lull_map_release(&known);
	return ids;
}

static int run(struct lull_question *q, struct lull_err *err)
{
	struct lull_labels labels;
	struct lull_json j;
	const char **texts;
	size_t n;
	u32 *ids = name_ids(q->reader, &n);

	(void)err;
	texts = lull_alloc(n + 1, sizeof(*texts));
	for (size_t i = 0; i < n; i++)
		texts[i] = lull_reader_string(q->reader, ids[i], NULL);
	lull_labels_init(&labels, true);
	lull_labels_add(&labels, texts, n);
	lull_json_init(&j, q->to);
	lull_json_array(&j);
	for (size_t i = 0; i < n; i++) {
		const char *label = lull_labels_get(&labels, texts[i]);

		if (!strcmp(label, texts[i]))
			continue;
		lull_json_array(&j);
		lull_json_u64(&j, ids[i]);
		lull_json_text(&j, label);
		lull_json_end(&j);
	}
	lull_json_end(&j);
	lull_labels_release(&labels);
	free(texts);
	free(ids);
	return LULL_OK;
}

const struct lull_answer lull_answer_shorts = {
	.name = "shorts",
	.type = "application/json",
	.is_packed = true,
	.run = run,
};
