#include "cmd/open.h"

#include "import/import.h"
#include "import/other_name.h"

int lull_open(const char *path, struct lull_reader **r, struct lull_str *used, struct lull_err *err)
{
	lull_other_name(path, used);
	return lull_import_open(lull_str_text(used), r, err);
}
