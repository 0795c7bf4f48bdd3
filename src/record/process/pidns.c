#include "record/process/pidns.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/file.h"

static u64 namespace_of(const char *process)
{
	char path[64];
	struct stat st;

	snprintf(path, sizeof(path), "/proc/%.32s/ns/pid", process);
	return stat(path, &st) == 0 ? st.st_ino : 0;
}

u64 lull_pidns_own(void)
{
	return namespace_of("self");
}

/* Its number in the innermost namespace it is in: the last of the line "NSpid: 4242 17". */
static u32 inner_pid(const char *process)
{
	struct lull_str text = LULL_STR_INIT;
	const char *line;
	char path[64], *end;
	u32 pid = 0;

	snprintf(path, sizeof(path), "/proc/%.32s/status", process);
	line = lull_file_read(path, &text) ? strstr(text.at, "\nNSpid:") : NULL;
	for (line = line ? line + 7 : NULL; line; line = end) {
		unsigned long value = strtoul(line, &end, 10);

		if (end == line)
			break;
		pid = (u32)value;
		if (*end == '\n')
			break;
	}
	lull_str_release(&text);
	return pid;
}

u32 lull_pidns_find(u64 pid_ns, u32 pid)
{
	DIR *dir = opendir("/proc");
	struct dirent *e;
	u32 found = 0;

	while (dir && !found && (e = readdir(dir)))
		if (e->d_name[0] >= '1' && e->d_name[0] <= '9' &&
		    namespace_of(e->d_name) == pid_ns && inner_pid(e->d_name) == pid)
			found = (u32)strtoul(e->d_name, NULL, 10);
	if (dir)
		closedir(dir);
	return found;
}
