#include "cmd/kernel/kernel_usual.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "cmd/losses.h"
#include "import/import.h"
#include "trace/reader.h"

static void shape_of(const struct lull_launch_row *l, u32 shape[6])
{
	shape[0] = l->grid_x;
	shape[1] = l->grid_y;
	shape[2] = l->grid_z;
	shape[3] = l->block_x;
	shape[4] = l->block_y;
	shape[5] = l->block_z;
}

int lull_kernel_usual_read(const char *path, struct lull_vec *to, struct lull_err *err)
{
	size_t n, n_launches;
	const struct lull_launch_row *launches;
	struct lull_kernel_usual *all;
	struct lull_kernel_cols cols;
	struct lull_reader *r;
	struct lull_cursor c;

	lull_vec_init(to, sizeof(struct lull_kernel_usual));
	if (lull_import_open(path, &r, err))
		return err->code;
	launches = lull_reader_dim(r, LULL_TABLE_launch, &n_launches);
	for (size_t i = 0; i < n_launches; i++) {
		struct lull_kernel_usual *usual = lull_vec_push(to);

		/* Rows may differ in shared memory only; those are looked up as one below. */
		usual->name = lull_strdup(lull_reader_string(r, launches[i].name, NULL));
		shape_of(&launches[i], usual->shape);
	}
	all = to->at;
	lull_cursor_init(&c, r, LULL_TABLE_kernel, 0, UINT64_MAX);
	while ((n = lull_cursor_next(&c, &cols)) > 0)
		for (size_t i = 0; i < n; i++)
			if (cols.launch[i] && cols.launch[i] <= n_launches) {
				all[cols.launch[i] - 1].n++;
				all[cols.launch[i] - 1].total_ns += cols.dur_ns[i];
			}
	lull_cursor_release(&c);
	lull_losses_close(r, path);
	return LULL_OK;
}

bool lull_kernel_usual_of(const struct lull_vec *all, const struct lull_profile *p,
			  struct lull_kernel_usual *sum)
{
	const struct lull_kernel_usual *at = all->at;

	*sum = (struct lull_kernel_usual){ 0 };
	shape_of(&p->launch, sum->shape);
	for (size_t i = 0; i < all->n; i++)
		if (memcmp(at[i].shape, sum->shape, sizeof(sum->shape)) == 0 &&
		    strcmp(at[i].name, p->name) == 0) {
			sum->n += at[i].n;
			sum->total_ns += at[i].total_ns;
		}
	return sum->n;
}

void lull_kernel_usual_release(struct lull_vec *all)
{
	struct lull_kernel_usual *at = all->at;

	for (size_t i = 0; i < all->n; i++)
		free(at[i].name);
	lull_vec_release(all);
}
