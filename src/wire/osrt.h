/*
 * osrt - names of the timed calls of the C library, by their number on the wire (osrt.def).
 */
#ifndef LULL_WIRE_OSRT_H
#define LULL_WIRE_OSRT_H

#include "base/types.h"

/* The call with this number, or NULL if there is none. Static, never freed. */
const char *lull_osrt_name(u32 ix);

#endif
