/*
 * assets - the built page, part of the program.
 */
#ifndef LULL_PAGE_ASSETS_H
#define LULL_PAGE_ASSETS_H

#include "base/types.h"

struct lull_asset {
	const char *name; /* after the token; "" is the page itself */
	const char *type; /* MIME */
	const u8 *at;
	const u8 *end;
	const char *sha256; /* in base 64, for policies that allow exactly this */
};

/* All files of ui/, ended by one without a name. Made by tools/embed-ui. */
extern const struct lull_asset lull_assets[];

/* The file of this name, or NULL. */
const struct lull_asset *lull_asset_find(const char *name);

#endif
