/*
 * lib_plugin: a file that lib_guest loads and unloads. It calls a watched function and tells its address, by one entry.
 */
#include "lib_watched.h"

extern "C" number_fn *call_and_tell(int *n);

number_fn *call_and_tell(int *n)
{
	for (int i = 0; i < 10; i++)
		*n = w_direct(*n);
	return w_direct;
}
