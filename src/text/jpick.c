#include "text/jpick.h"

#include <string.h>

/* jscan reads a copy with room after it; what it finds is moved back to the text. */
static struct lull_jtext moved(const struct lull_jitems *items, const struct lull_jtext *found)
{
	return (struct lull_jtext){ items->base + (found->at - items->scan.window), found->len,
				    found->has_escapes };
}

void lull_jitems_init(struct lull_jitems *items, const struct lull_jvalue *from)
{
	static const struct lull_jtext nothing = { "", 0, false };
	bool has_items = from->first == '{' || from->first == '[';

	items->base = has_items ? from->text.at : nothing.at;
	items->is_object = from->first == '{';
	lull_jscan_init_text(&items->scan, has_items ? &from->text : &nothing);
	if (has_items)
		items->scan.p++;
}

bool lull_jitems_next(struct lull_jitems *items, struct lull_jtext *key, struct lull_jvalue *item)
{
	struct lull_jscan *j = &items->scan;
	struct lull_jtext found;

	if (items->is_object) {
		if (lull_jscan_pair(j, &found))
			return false;
		if (key)
			*key = moved(items, &found);
	} else {
		if (lull_jscan_peek(j) == ',')
			j->p++;
		if (!lull_jscan_peek(j) || *j->p == ']')
			return false;
	}
	if (lull_jscan_value(j, &found, &item->first))
		return false;
	item->text = moved(items, &found);
	return true;
}

void lull_jitems_release(struct lull_jitems *items)
{
	lull_jscan_release(&items->scan);
}

struct lull_jvalue lull_jpick(const struct lull_jvalue *object, const char *key)
{
	struct lull_jvalue item = { .first = 0 };
	struct lull_jitems items;
	struct lull_jtext name;
	bool is_found = false;

	if (object->first != '{')
		return item;
	lull_jitems_init(&items, object);
	while (!is_found && lull_jitems_next(&items, &name, &item))
		is_found = lull_jtext_is(&name, key);
	lull_jitems_release(&items);
	return is_found ? item : (struct lull_jvalue){ .first = 0 };
}

struct lull_jvalue lull_jpick_path(const struct lull_jvalue *object, const char *const *keys)
{
	struct lull_jvalue at = *object;

	for (; *keys; keys++)
		at = lull_jpick(&at, *keys);
	return at;
}

struct lull_jvalue lull_jpick_all(const char *text, size_t len)
{
	struct lull_jvalue v;

	while (len && strchr(" \t\r\n", *text)) {
		text++;
		len--;
	}
	while (len && strchr(" \t\r\n", text[len - 1]))
		len--;
	v.first = len ? *text : 0;
	v.text = (struct lull_jtext){ text, len, false };
	if (v.first == '"') {
		v.text = (struct lull_jtext){ text + 1, len - 2, true };
	}
	return v;
}

bool lull_jvalue_text(const struct lull_jvalue *v, struct lull_str *to)
{
	if (v->first != '"')
		return false;
	lull_jtext_add(to, &v->text);
	return true;
}
