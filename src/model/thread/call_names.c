#include "model/thread/call_names.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "model/thread/doing.h"
#include "model/words.h"

void lull_call_names_init(struct lull_call_names *c, struct lull_reader *r)
{
	c->reader = r;
	c->n = lull_reader_n_strings(r) + 1;
	c->at = lull_alloc(c->n, sizeof(*c->at));
}

void lull_call_names_release(struct lull_call_names *c)
{
	free(c->at);
}

static enum lull_call_effect effect_of(const char *name, u32 bits)
{
	if (!strncmp(name, "open", 4) || !strncmp(name, "creat", 5))
		return LULL_CALL_OPENS;
	if (!strncmp(name, "fopen", 5))
		return LULL_CALL_FOPENS;
	if (!strcmp(name, "popen"))
		return LULL_CALL_POPENS;
	if (!strcmp(name, "close"))
		return LULL_CALL_CLOSES;
	if (!strcmp(name, "getaddrinfo"))
		return LULL_CALL_ASKED; /* it has no descriptor */
	if (!strncmp(name, "accept", 6))
		return LULL_CALL_ACCEPTS;
	if (!strcmp(name, "connect"))
		return LULL_CALL_CONNECTS;
	if ((bits & LULL_IN_SOCKET) ||
	    (!strncmp(name, "send", 4) && strncmp(name, "sendfile", 8) != 0))
		return LULL_CALL_TALKS;
	return LULL_CALL_ASKED;
}

bool lull_call_opens(const char *name)
{
	enum lull_call_effect effect = effect_of(name, 0);

	return effect == LULL_CALL_OPENS || effect == LULL_CALL_FOPENS;
}

struct lull_call_name lull_call_names_look(struct lull_call_names *c, u32 string)
{
	const char *name = lull_reader_string(c->reader, string, NULL);
	struct lull_call_name found = { .bits = lull_oscall_bits(name) | lull_doing_call(name),
					.is_known = 1 };

	found.effect = (u8)effect_of(name, found.bits);
	if (string < c->n)
		c->at[string] = found;
	return found;
}
