/*
 * A session's folder that belongs to the user of the recorded program: he may put anything under
 * its names, and the recorder may be root.
 */
#include "unit/unit.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "record/process/image.h"
#include "record/session/session.h"

#define NOBODY 65534u

static char root[64];

static char *in_root(const char *name)
{
	static char paths[4][512];
	static int n;
	char *path = paths[n++ % 4];

	snprintf(path, sizeof(paths[0]), "%s/%s", root, name);
	return path;
}

static void write_file(const char *path)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_EXCL, 0600);

	assert_true(fd >= 0);
	close(fd);
}

static u32 owner_of(const char *path)
{
	struct stat st;

	assert_int_equal(lstat(path, &st), 0);
	return st.st_uid;
}

static int set_up(void **state)
{
	(void)state;
	strcpy(root, "/tmp/lull-test-session-XXXXXX");
	assert_non_null(mkdtemp(root));
	assert_int_equal(mkdir(in_root("dev"), 0755), 0);
	assert_int_equal(mkdir(in_root("dev/shm"), 0755), 0);
	write_file(in_root("victim"));
	return 0;
}

static int tear_down(void **state)
{
	char command[128];

	(void)state;
	snprintf(command, sizeof(command), "rm -rf %s", root);
	return system(command);
}

static void create(struct lull_session *s)
{
	struct lull_err err;

	assert_int_equal(lull_session_create(s, root, "", 0, &err), 0);
}

static char *in_session(const struct lull_session *s, const char *name)
{
	static char path[LULL_SESSION_PATH_MAX + 64];

	snprintf(path, sizeof(path), "%s/%s", s->path, name);
	return path;
}

static void a_link_in_place_of_the_control_page_is_not_given_away(void **state)
{
	struct lull_session s;

	(void)state;
	if (geteuid() != 0)
		skip();
	create(&s);
	assert_int_equal(unlink(in_session(&s, "control")), 0);
	assert_int_equal(symlink(in_root("victim"), in_session(&s, "control")), 0);
	assert_int_equal(lull_session_give(&s, NOBODY, NOBODY), 0);
	assert_int_equal(owner_of(s.path), NOBODY);
	assert_int_equal(owner_of(in_root("victim")), 0);
	lull_session_remove(&s);
	assert_int_equal(access(s.path, F_OK), -1);
	assert_int_equal(access(in_root("victim"), F_OK), 0);
}

static void a_link_in_place_of_the_folder_is_not_followed(void **state)
{
	struct lull_session s;
	struct lull_err err;

	(void)state;
	if (geteuid() != 0)
		skip();
	create(&s);
	assert_int_equal(mkdir(in_root("other"), 0755), 0);
	write_file(in_root("other/control"));
	write_file(in_root("other/file"));
	assert_int_equal(rename(s.path, in_root("moved")), 0);
	assert_int_equal(symlink(in_root("other"), s.path), 0);
	assert_int_equal(lull_session_give(&s, NOBODY, NOBODY), 0);
	assert_int_equal(owner_of(in_root("other")), 0);
	assert_int_equal(owner_of(in_root("other/control")), 0);
	lull_session_remove(&s);
	assert_int_equal(access(in_root("other/file"), F_OK), 0);
	assert_int_equal(access(in_root("moved/control"), F_OK), -1);
	assert_int_not_equal(lull_session_open(&s, s.path, &err), 0);
}

static void what_is_no_plain_file_is_no_control_page(void **state)
{
	struct lull_session s, again;
	struct lull_err err;

	(void)state;
	create(&s);
	assert_int_equal(rename(in_session(&s, "control"), in_root("kept")), 0);
	assert_int_equal(symlink(in_root("kept"), in_session(&s, "control")), 0);
	assert_int_not_equal(lull_session_open(&again, s.path, &err), 0);
	assert_int_equal(unlink(in_session(&s, "control")), 0);
	assert_int_equal(mkfifo(in_session(&s, "control"), 0600), 0);
	assert_int_not_equal(lull_session_open(&again, s.path, &err), 0);
	lull_session_remove(&s);
}

static void what_is_no_plain_file_is_no_image(void **state)
{
	struct lull_image_file f;
	struct lull_session s;
	struct lull_err err;

	(void)state;
	create(&s);
	assert_int_equal(truncate(in_root("victim"), LULL_IMAGE_DATA_OFF), 0);
	assert_int_equal(symlink(in_root("victim"), in_session(&s, "1-1.image")), 0);
	assert_int_equal(lull_image_open(&f, s.dir_fd, "1-1.image", &err), LULL_E_IO);
	assert_int_equal(mkfifo(in_session(&s, "1-2.image"), 0600), 0);
	assert_int_equal(lull_image_open(&f, s.dir_fd, "1-2.image", &err), LULL_E_UNSUPPORTED);
	lull_session_remove(&s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(
			a_link_in_place_of_the_control_page_is_not_given_away, set_up, tear_down),
		cmocka_unit_test_setup_teardown(a_link_in_place_of_the_folder_is_not_followed,
						set_up, tear_down),
		cmocka_unit_test_setup_teardown(what_is_no_plain_file_is_no_control_page, set_up,
						tear_down),
		cmocka_unit_test_setup_teardown(what_is_no_plain_file_is_no_image, set_up,
						tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
