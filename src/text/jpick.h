/*
 * jpick - take values out of a JSON text in memory, by their keys.
 *
 * For messages and other small texts, which lull_jcheck() has accepted. Each call looks through the
 * object again.
 *
 * Ownership:  values are pieces of the text they were taken from.
 */
#ifndef LULL_TEXT_JPICK_H
#define LULL_TEXT_JPICK_H

#include "base/str.h"
#include "base/types.h"
#include "text/jscan.h"

/* A value: its text (of a string what is between the quotes), and its first character; 0: none. */
struct lull_jvalue {
	struct lull_jtext text;
	char first;
};

/* The value of a key; .first is 0 if `object` is none, or has no such key. */
struct lull_jvalue lull_jpick(const struct lull_jvalue *object, const char *key);

/* The same through objects in objects: keys up to NULL. */
struct lull_jvalue lull_jpick_path(const struct lull_jvalue *object, const char *const *keys);

/* The value that a text is, white space around it left out. */
struct lull_jvalue lull_jpick_all(const char *text, size_t len);

/* Append a string to `to`, escapes resolved, NULs as U+FFFD. False if the value is none. */
bool lull_jvalue_text(const struct lull_jvalue *v, struct lull_str *to);

/* Items of an array, one by one, or pairs of an object. */
struct lull_jitems {
	struct lull_jscan scan; /* private */
	const char *base;	/* private */
	bool is_object;		/* private */
};

/* Start; anything but an array or object has no items. Ends with lull_jitems_release(). */
void lull_jitems_init(struct lull_jitems *items, const struct lull_jvalue *from);

/* The next item; of an object with its key, which may be NULL. False after the last. */
bool lull_jitems_next(struct lull_jitems *items, struct lull_jtext *key, struct lull_jvalue *item);

/* Free it. */
void lull_jitems_release(struct lull_jitems *items);

#endif
