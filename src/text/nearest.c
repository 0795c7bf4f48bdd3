#include "text/nearest.h"

#include <string.h>

#define MAX_LEN 63

static size_t least(size_t a, size_t b, size_t c)
{
	size_t ab = a < b ? a : b;

	return ab < c ? ab : c;
}

/*
 * Edits (insert, delete, replace, swap of neighbours) that turn a into b: the optimal string
 * alignment distance, three rows at a time. Swaps count as one because they are what hurried
 * fingers do.
 */
static size_t distance(const char *a, const char *b)
{
	size_t rows[3][MAX_LEN + 1];
	size_t len_a = strlen(a), len_b = strlen(b);

	for (size_t j = 0; j <= len_b; j++)
		rows[0][j] = j;
	for (size_t i = 1; i <= len_a; i++) {
		size_t *now = rows[i % 3], *prev = rows[(i + 2) % 3], *before = rows[(i + 1) % 3];

		now[0] = i;
		for (size_t j = 1; j <= len_b; j++) {
			now[j] = least(prev[j] + 1, now[j - 1] + 1,
				       prev[j - 1] + (a[i - 1] != b[j - 1]));
			if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] &&
			    before[j - 2] + 1 < now[j])
				now[j] = before[j - 2] + 1;
		}
	}
	return rows[len_a % 3][len_b];
}

void lull_nearest_add(struct lull_nearest *near, const char *name)
{
	size_t len_word = strlen(near->word), len_name = strlen(name), d;

	if (len_word > MAX_LEN || len_name > MAX_LEN)
		return;
	d = distance(near->word, name);
	if (d > (len_word > len_name ? len_word : len_name) / 3)
		return;
	if (near->best && d >= near->best_distance)
		return;
	near->best = name;
	near->best_distance = d;
}
