#include <string.h>

#include "import/pytorch_int.h"

/* ---- devices ---- */

static void take_device_pair(const struct lull_jtext *key, const struct lull_jtext *value,
			     struct lull_mapper *m, struct lull_device_row *row)
{
	i64 number = 0;
	bool is_number = lull_jtext_i64(value, &number);

	if (lull_jtext_is(key, "name"))
		row->name = lull_mapper_text(m, value);
	else if (!is_number)
		return;
	else if (lull_jtext_is(key, "id"))
		row->device_id = (u32)number;
	else if (lull_jtext_is(key, "totalGlobalMem"))
		row->memory_bytes = (u64)number;
	else if (lull_jtext_is(key, "computeMajor"))
		row->capability += 10 * (u32)number;
	else if (lull_jtext_is(key, "computeMinor"))
		row->capability += (u32)number;
	else if (lull_jtext_is(key, "numSms"))
		row->n_sms = (u32)number;
}

/* One object of deviceProperties, at j->p; false at the end of the array. */
static bool take_device(struct lull_chrome *c, struct lull_jscan *j)
{
	struct lull_device_row row = { 0 };
	enum lull_jscan_result got;
	struct lull_jtext key, value;
	char first;
	u32 id;

	while (lull_jscan_peek(j) && *j->p != '{')
		j->p++;
	if (*j->p != '{')
		return false;
	j->p++;
	while (!(got = lull_jscan_pair(j, &key)) && !lull_jscan_value(j, &value, &first))
		take_device_pair(&key, &value, &c->map, &row);
	if (got != LULL_JSCAN_END)
		return false;
	id = lull_mapper_device(&c->map, row.device_id);
	row.process = c->map.main_process;
	lull_writer_set_dim(c->map.writer, LULL_TABLE_device, id, &row);
	return true;
}

static void take_devices(struct lull_chrome *c, const struct lull_jtext *value)
{
	struct lull_jscan j;

	lull_jscan_init_text(&j, value);
	while (take_device(c, &j))
		;
	lull_jscan_release(&j);
}

/* ---- the job ---- */

/* The pairs of distributedInfo: rank, world_size, backend, ... */
static void take_job(struct lull_chrome *c, const struct lull_jtext *info)
{
	struct lull_jtext key, value;
	struct lull_jscan j;
	char first;
	i64 rank;

	lull_jscan_init_text(&j, info);
	j.p++;
	while (!lull_jscan_pair(&j, &key) && !lull_jscan_value(&j, &value, &first)) {
		if (lull_jtext_is(&key, "rank") && lull_jtext_i64(&value, &rank))
			lull_pytorch(c)->rank = rank;
		lull_chrome_meta(c, "distributed.", &key, &value);
	}
	lull_jscan_release(&j);
}

void lull_pytorch_pair(struct lull_chrome *c, const struct lull_jtext *key,
		       const struct lull_jtext *value, char first)
{
	if (lull_jtext_is(key, "deviceProperties") && first == '[')
		take_devices(c, value);
	else if (lull_jtext_is(key, "distributedInfo") && first == '{')
		take_job(c, value);
	else
		lull_chrome_meta(c, "pytorch.", key, value);
}
