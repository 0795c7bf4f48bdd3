/*
 * decimal - a number as text, since printf() is not for other people's programs.
 */
#ifndef LULL_AGENT_CORE_DECIMAL_H
#define LULL_AGENT_CORE_DECIMAL_H

#include "base/types.h"

#define LULL_DECIMAL_BYTES 21 /* of the longest, with its end */

/* The text, which lies in `room`. */
static inline const char *lull_decimal(u64 value, char room[LULL_DECIMAL_BYTES])
{
	char *at = &room[LULL_DECIMAL_BYTES - 1];

	*at = '\0';
	do
		*--at = (char)('0' + value % 10);
	while (value /= 10);
	return at;
}

#endif
