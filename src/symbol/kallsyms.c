#include "symbol/kallsyms.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/sort.h"

struct function {
	u64 addr;
	size_t name_off;
};

void lull_kallsyms_init(struct lull_kallsyms *k)
{
	*k = (struct lull_kallsyms){ 0 };
	lull_vec_init(&k->functions, sizeof(struct function));
}

void lull_kallsyms_release(struct lull_kallsyms *k)
{
	lull_vec_release(&k->functions);
	lull_str_release(&k->names);
}

static int compare(const void *a, const void *b)
{
	const struct function *x = a, *y = b;

	if (x->addr != y->addr)
		return x->addr < y->addr ? -1 : 1;
	return x->name_off < y->name_off ? -1 : x->name_off > y->name_off;
}

/* One line: address, type, name, and for modules a tab and "[module]". */
static void read_line(struct lull_kallsyms *k, const char *line)
{
	char type, name[512], module[128] = "";
	struct function *f;
	u64 addr;

	if (sscanf(line, "%" SCNx64 " %c %511s %127s", &addr, &type, name, module) < 3 || !addr ||
	    !strchr("tTwW", type))
		return;
	f = lull_vec_push(&k->functions);
	*f = (struct function){ addr, k->names.len };
	lull_str_addf(&k->names, "%s%s%s", name, module[0] ? " " : "", module);
	lull_str_add(&k->names, "", 1);
}

int lull_kallsyms_read(struct lull_kallsyms *k, const char *path, struct lull_err *err)
{
	FILE *f = fopen(path, "re");
	char line[1024];

	if (!f)
		return lull_fail_errno(err, "opening %s", path);
	while (fgets(line, sizeof(line), f))
		read_line(k, line);
	fclose(f);
	if (!k->functions.n)
		return lull_fail(
			err, LULL_E_UNSUPPORTED,
			"%s does not show addresses; set kernel.kptr_restrict=0 or run as root",
			path);
	lull_sort(k->functions.at, k->functions.n, sizeof(struct function), compare);
	return LULL_OK;
}

const char *lull_kallsyms_find(const struct lull_kallsyms *k, u64 addr)
{
	const struct function *f = k->functions.at;
	size_t n = lull_vec_upper(&k->functions, offsetof(struct function, addr), addr);

	return n ? k->names.at + f[n - 1].name_off : NULL;
}
