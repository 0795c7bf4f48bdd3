/*
 * machine - facts about this machine that a reader of a report wants, as keys and values.
 *
 *	host.name host.kernel host.os host.arch host.libc
 *	cpu.model cpu.count memory.bytes container user.is_root
 *	driver.version gpu.0.model gpu.0.bus gpu.0.uuid gpu.1.model ...
 *
 * What cannot be found out is left out. No environment, no user names, no paths.
 */
#ifndef LULL_RECORD_SESSION_MACHINE_H
#define LULL_RECORD_SESSION_MACHINE_H

#include "base/str.h"
#include "base/types.h"

/* Told one fact; both texts are valid until it returns. */
typedef void lull_machine_fact(void *ctx, const char *key, const char *value);

/* Report every fact that can be found out, in the order above. Costs a few file reads. */
void lull_machine_read(lull_machine_fact *fact, void *ctx);

/* "docker", "podman", "kubernetes", "lxc", "apptainer", "container" for another kind, or "none". */
const char *lull_machine_container(void);

/* Set `version` to that of the loaded NVIDIA kernel driver; false if none is loaded. */
bool lull_machine_driver(struct lull_str *version);

#endif
