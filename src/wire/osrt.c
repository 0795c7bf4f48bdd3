#include "wire/osrt.h"

const char *lull_osrt_name(u32 ix)
{
	static const char *const names[] = {
#define OSCALL(ix, kind, nest, type, name, params, args, worth) [ix] = #name,
#include "wire/osrt.def"
#undef OSCALL
	};

	return ix < LULL_COUNT_OF(names) ? names[ix] : NULL;
}
