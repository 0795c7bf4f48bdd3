/*
 * fleet_find - the processes of this host that compute on a device, by NVML.
 *
 * NVML may block for long, or crash: a child asks it, and is given ten seconds.
 */
#ifndef LULL_FLEET_FLEET_FIND_H
#define LULL_FLEET_FLEET_FIND_H

#include "base/err.h"
#include "base/vec.h"
#include "fleet/fleet_policy.h"

/*
 * Add them to `to` (struct lull_fleet_process), by pid, each once. Those that are gone meanwhile,
 * or not ours to see, are left out. LULL_E_NOT_FOUND or LULL_E_UNSUPPORTED if NVML cannot be asked.
 */
int lull_fleet_find(struct lull_vec *to, struct lull_err *err);

#endif
