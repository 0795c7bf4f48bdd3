#include "record/session/machine.h"

#include <glob.h>
#include <gnu/libc-version.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/sysinfo.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "base/file.h"

/* Where facts go, and two texts that are used over and over. */
struct sink {
	lull_machine_fact *fact;
	void *ctx;
	struct lull_str file;
	struct lull_str value;
};

static void say(const struct sink *s, const char *key, const char *value)
{
	if (*value)
		s->fact(s->ctx, key, value);
}

static void say_u64(const struct sink *s, const char *key, u64 value)
{
	char text[24];

	snprintf(text, sizeof(text), "%" PRIu64, value);
	say(s, key, text);
}

/* The value of `name` in the file that was read last. */
static bool say_value(struct sink *s, const char *key, const char *name, char separator)
{
	lull_str_clear(&s->value);
	if (!lull_file_value(lull_str_text(&s->file), name, separator, &s->value))
		return false;
	say(s, key, lull_str_text(&s->value));
	return true;
}

static void say_host(struct sink *s)
{
	struct utsname names;

	if (!uname(&names)) {
		say(s, "host.name", names.nodename);
		say(s, "host.kernel", names.release);
		say(s, "host.arch", names.machine);
	}
	if (lull_file_read("/etc/os-release", &s->file))
		say_value(s, "host.os", "PRETTY_NAME", '=');
	lull_str_clear(&s->value);
	lull_str_addf(&s->value, "glibc %s", gnu_get_libc_version());
	say(s, "host.libc", s->value.at);
}

/*
 * x86 has a model name. Arm has only numbers, of which implementer and part name the core.
 */
static void say_cpu(struct sink *s)
{
	struct lull_str model = LULL_STR_INIT;

	if (lull_file_read("/proc/cpuinfo", &s->file) &&
	    !say_value(s, "cpu.model", "model name", ':')) {
		lull_str_puts(&model, "implementer ");
		if (lull_file_value(s->file.at, "CPU implementer", ':', &model)) {
			lull_str_puts(&model, " part ");
			lull_file_value(s->file.at, "CPU part", ':', &model);
			say(s, "cpu.model", model.at);
		}
	}
	lull_str_release(&model);
	say_u64(s, "cpu.count", (u64)get_nprocs());
}

static void say_memory(const struct sink *s)
{
	struct sysinfo info;

	if (!sysinfo(&info))
		say_u64(s, "memory.bytes", (u64)info.totalram * info.mem_unit);
}

/* Marks of the container runtimes, the most telling first. */
static const struct {
	const char *path;
	const char *contains; /* NULL: that the file is there is enough */
	const char *name;
} containers[] = {
	{ "/var/run/secrets/kubernetes.io", NULL, "kubernetes" },
	{ "/run/.containerenv", NULL, "podman" },
	{ "/.dockerenv", NULL, "docker" },
	{ "/proc/1/cgroup", "kubepods", "kubernetes" },
	{ "/proc/1/cgroup", "docker", "docker" },
	{ "/proc/1/cgroup", "libpod", "podman" },
	{ "/proc/1/cgroup", "lxc", "lxc" },
	{ "/run/systemd/container", "lxc", "lxc" },
	{ "/run/systemd/container", NULL, "container" },
	{ "/.singularity.d", NULL, "apptainer" },
};

const char *lull_machine_container(void)
{
	struct lull_str text = LULL_STR_INIT;
	const char *name = "none";

	for (size_t i = 0; i < LULL_COUNT_OF(containers); i++) {
		if (access(containers[i].path, F_OK))
			continue;
		if (containers[i].contains && (!lull_file_read(containers[i].path, &text) ||
					       !strstr(text.at, containers[i].contains)))
			continue;
		name = containers[i].name;
		break;
	}
	lull_str_release(&text);
	return name;
}

bool lull_machine_driver(struct lull_str *version)
{
	return lull_file_line("/sys/module/nvidia/version", version);
}

static void say_gpus(struct sink *s)
{
	static const char *const fields[][2] = { { "model", "Model" },
						 { "bus", "Bus Location" },
						 { "uuid", "GPU UUID" } };
	glob_t found;

	if (lull_machine_driver(&s->value))
		say(s, "driver.version", s->value.at);
	if (glob("/proc/driver/nvidia/gpus/*/information", 0, NULL, &found))
		return;
	for (size_t i = 0; i < found.gl_pathc; i++) {
		if (!lull_file_read(found.gl_pathv[i], &s->file))
			continue;
		for (size_t f = 0; f < LULL_COUNT_OF(fields); f++) {
			char key[32];

			snprintf(key, sizeof(key), "gpu.%zu.%s", i, fields[f][0]);
			say_value(s, key, fields[f][1], ':');
		}
	}
	globfree(&found);
}

void lull_machine_read(lull_machine_fact *fact, void *ctx)
{
	struct sink s = { fact, ctx, LULL_STR_INIT, LULL_STR_INIT };

	say_host(&s);
	say_cpu(&s);
	say_memory(&s);
	say(&s, "container", lull_machine_container());
	say(&s, "user.is_root", geteuid() ? "no" : "yes");
	say_gpus(&s);
	lull_str_release(&s.file);
	lull_str_release(&s.value);
}
