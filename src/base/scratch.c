#include "base/scratch.h"

#include <stdlib.h>
#include <unistd.h>

int lull_scratch_make(struct lull_scratch *s, const char *name, struct lull_err *err)
{
	const char *tmp = getenv("TMPDIR");

	lull_str_addf(&s->folder, "%s/lull-XXXXXX", tmp && *tmp ? tmp : "/tmp");
	if (!mkdtemp(s->folder.at))
		return lull_fail_errno(err, "making the folder %s", lull_str_text(&s->folder));
	lull_str_addf(&s->file, "%s/%s", lull_str_text(&s->folder), name);
	return LULL_OK;
}

void lull_scratch_remove(struct lull_scratch *s)
{
	if (s->file.len) {
		unlink(lull_str_text(&s->file));
		rmdir(lull_str_text(&s->folder));
	}
	lull_str_release(&s->folder);
	lull_str_release(&s->file);
}
