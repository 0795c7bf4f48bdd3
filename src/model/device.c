#include "model/device.h"

#include "base/map.h"
#include "base/mem.h"

u32 *lull_device_rows(struct lull_reader *r)
{
	size_t n;
	const struct lull_device_row *devices = lull_reader_dim(r, LULL_TABLE_device, &n);
	u32 *rows = lull_alloc(n + 1, sizeof(*rows));
	struct lull_map by_uuid;

	lull_map_init(&by_uuid);
	for (u32 id = 1; id <= n; id++) {
		u32 *best;

		if (!devices[id - 1].uuid)
			continue;
		best = lull_map_add(&by_uuid, devices[id - 1].uuid, NULL);
		if (!*best || (!devices[id - 1].process && devices[*best - 1].process))
			*best = id;
	}
	for (u32 id = 1; id <= n; id++) {
		const u32 *best =
			devices[id - 1].uuid ? lull_map_find(&by_uuid, devices[id - 1].uuid) : NULL;

		rows[id] = best ? *best : id;
	}
	lull_map_release(&by_uuid);
	return rows;
}

u32 lull_device_row_of(struct lull_reader *r, u32 device)
{
	size_t n;
	const struct lull_device_row *all = lull_reader_dim(r, LULL_TABLE_device, &n);
	u32 uuid = device && device <= n ? all[device - 1].uuid : 0, first = 0;

	for (u32 id = 1; uuid && id <= n; id++) {
		if (all[id - 1].uuid != uuid)
			continue;
		if (!all[id - 1].process)
			return id;
		first = first ? first : id;
	}
	return first ? first : device;
}

u32 lull_device_number(struct lull_reader *r, u32 device)
{
	size_t n;
	const struct lull_device_row *all = lull_reader_dim(r, LULL_TABLE_device, &n);
	u32 row = lull_device_row_of(r, device);

	return row && row <= n ? all[row - 1].device_id : 0;
}

struct lull_device_row lull_device_joined(struct lull_reader *r, u32 device)
{
	size_t n;
	const struct lull_device_row *all = lull_reader_dim(r, LULL_TABLE_device, &n);
	u32 row = lull_device_row_of(r, device);
	struct lull_device_row d = { 0 };

	if (!row || row > n)
		return d;
	d = all[row - 1];
	for (u32 id = 1; d.uuid && id <= n; id++) {
		const struct lull_device_row *other = &all[id - 1];

		if (other->uuid != d.uuid)
			continue;
		d.name = d.name ? d.name : other->name;
		d.capability = d.capability ? d.capability : other->capability;
		d.n_sms = d.n_sms ? d.n_sms : other->n_sms;
		d.memory_bytes = d.memory_bytes ? d.memory_bytes : other->memory_bytes;
		d.l2_bytes = d.l2_bytes ? d.l2_bytes : other->l2_bytes;
		d.clock_hz = d.clock_hz ? d.clock_hz : other->clock_hz;
		d.bandwidth_bytes = d.bandwidth_bytes ? d.bandwidth_bytes : other->bandwidth_bytes;
		d.given_name = d.given_name ? d.given_name : other->given_name;
		d.is_simulated |= other->is_simulated;
	}
	return d;
}

u32 lull_device_process(struct lull_reader *r, u32 device)
{
	size_t n;
	const struct lull_device_row *all = lull_reader_dim(r, LULL_TABLE_device, &n);
	u32 uuid;

	if (!device || device > n)
		return 0;
	uuid = all[device - 1].uuid;
	for (u32 id = 1; uuid && id <= n; id++) {
		if (all[id - 1].uuid == uuid && all[id - 1].process)
			return all[id - 1].process;
	}
	return all[device - 1].process;
}

/* The command line of a process, NULL if there is none. */
static const char *command_of(struct lull_reader *r, u32 process)
{
	size_t n;
	const struct lull_process_row *processes = lull_reader_dim(r, LULL_TABLE_process, &n);
	const char *line =
		process ? lull_reader_string(r, processes[process - 1].cmdline, NULL) : NULL;

	return line && *line ? line : NULL;
}

const char *lull_device_command(struct lull_reader *r)
{
	size_t n, n_processes = lull_reader_n_dim(r, LULL_TABLE_process);
	const struct lull_device_row *devices = lull_reader_dim(r, LULL_TABLE_device, &n);
	const char *line = NULL;

	for (size_t i = 0; i < n && !line; i++)
		line = command_of(r, devices[i].process);
	for (u32 id = 1; id <= n_processes && !line; id++)
		line = command_of(r, id);
	return line ? line : "PROGRAM";
}
