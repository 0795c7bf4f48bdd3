/*
 * name_class - which class the calls of a name are of, found once for each name.
 *
 * Memory:         a byte for each string of the report.
 * Threads:        one at a time.
 */
#ifndef LULL_REQUEST_NAME_CLASS_H
#define LULL_REQUEST_NAME_CLASS_H

#include "base/types.h"
#include "trace/reader.h"

/* At most 254 classes. */
typedef u8 lull_classify(const char *name);

struct lull_name_classes {
	struct lull_reader *reader;
	u8 *at; /* private: by string, the class + 1; 0 if not known yet */
	u32 n;
};

/* No name is known yet. */
void lull_name_classes_init(struct lull_name_classes *c, struct lull_reader *r);

/* Free it. */
void lull_name_classes_release(struct lull_name_classes *c);

/* The class of this name, a string id that may be damaged. */
u8 lull_name_class(struct lull_name_classes *c, u32 name, lull_classify *classify);

#endif
