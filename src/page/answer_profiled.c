/*
 * profiled: the launches whose counters were read, each with all that is known about it; without
 * any, the command that reads them.
 */
#include "base/str.h"
#include "counter/profile.h"
#include "counter/tell.h"
#include "model/device.h"
#include "page/page.h"

/* About 12 KiB each; who has more reads them with `lull kernel`. */
#define MAX_LAUNCHES 200

static void put_command(struct lull_json *j, const struct lull_question *q)
{
	struct lull_str text = LULL_STR_INIT;

	lull_str_addf(&text, "lull kernel --from %s -- %s", q->report->name,
		      lull_device_command(q->reader));
	lull_page_pair_text(j, "command", lull_str_text(&text));
	lull_str_release(&text);
}

static int run(struct lull_question *q, struct lull_err *err)
{
	struct lull_profiles all;
	struct lull_json j;

	(void)err;
	lull_profiles_read(&all, q->reader);
	lull_json_init(&j, q->to);
	lull_json_object(&j);
	lull_page_pair_u64(&j, "n", all.items.n + all.n_left);
	lull_json_key(&j, "launches");
	lull_json_array(&j);
	for (size_t i = 0; i < all.items.n && i < MAX_LAUNCHES; i++)
		lull_tell_launch(&j, lull_vec_get(&all.items, i));
	lull_json_end(&j);
	if (!all.items.n)
		put_command(&j, q);
	lull_json_end(&j);
	lull_profiles_release(&all);
	return LULL_OK;
}

const struct lull_answer lull_answer_profiled = {
	.name = "profiled",
	.type = "application/json",
	.is_slow = true,
	.is_packed = true,
	.run = run,
};
