/*
 * What cannot work is said in one line, before the program runs where possible; a report that
 * cannot be written never harms the program; a file that is no report never harms the reader.
 */
#include "support/profile.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/str.h"
#include "support/guest.h"
#include "trace/file_frame.h"

#define TOUR LULL_BUILD "/e2e/tour"
#define LEAN "--python-sampling=false -s none --cpuctxsw=none "

/* Ranges and marks that take 700 KB: more than there is room for wherever they are used. */
#define FLOOD "600000"

/* One line that begins like this and has that in it. */
static void expect_line(const char *text, const char *begin, const char *part)
{
	const char *end = strchr(text, '\n');

	if (strncmp(text, begin, strlen(begin)) != 0 || !strstr(text, part) || !end || end[1])
		fail_msg("expected one line '%s...%s...', got '%s'", begin, part, text);
}

/* The words make lull say one line and return the status, and no program runs. */
static void expect_refusal(int status, const char *words, const char *part)
{
	char text[8192];
	int got = test_profile_run(text, "profile %s touch %%R/ran", words);

	if (got != status)
		fail_msg("%s: status %d, not %d: %s", words, got, status, text);
	expect_line(text, "lull profile: ", part);
	assert_false(test_profile_exists("ran"));
	assert_int_equal(test_profile_count_files(".part"), 0);
}

static void a_program_that_cannot_start_has_the_status_of_a_shell(void **state)
{
	char text[8192], longer[8192], *path = strdup(getenv("PATH"));

	(void)state;
	assert_int_equal(test_profile_run(text, "profile -o %%R/r /no/such/program"), 127);
	expect_line(text, "lull profile: ", "'/no/such/program' not found");
	assert_int_equal(test_profile_run(text, "profile -o %%R/r no-such-program-anywhere"), 127);
	expect_line(text, "lull profile: ", "not found");
	assert_int_equal(test_profile_run(text, "profile -o %%R/r /etc/passwd"), 126);
	expect_line(text, "lull profile: ", "cannot execute '/etc/passwd': Permission denied");
	assert_int_equal(test_profile_run(text, "profile -o %%R/r /tmp"), 126);
	expect_line(text, "lull profile: ", "cannot execute '/tmp'");
	assert_int_equal(test_profile_run(text, "launch -o %%R/r /no/such/program"), 127);
	expect_line(text, "lull launch: ", "not found");
	/* A file that is there, but no program. */
	test_profile_touch("lull-test-tool");
	snprintf(longer, sizeof(longer), "/no/such/folder::%s:%s", test_profile_path("."), path);
	setenv("PATH", longer, 1);
	assert_int_equal(test_profile_run(text, "profile -o %%R/r lull-test-tool"), 126);
	expect_line(text, "lull profile: ", "cannot execute 'lull-test-tool': Permission denied");
	assert_int_equal(test_profile_run(text, "profile -o %%R/r no-such-program-anywhere"), 127);
	expect_line(text, "lull profile: ", "not found");
	setenv("PATH", path, 1);
	free(path);
	assert_int_equal(test_profile_count_files(".lull"), 0);
	assert_int_equal(test_profile_count_files(".part"), 0);
}

static void a_program_that_fails_under_lull_kernel_is_not_told_to_use_it(void **state)
{
	char text[8192];

	(void)state;
	assert_int_equal(test_profile_run(text, "kernel -o %%R/k sh -c 'exit 3'"), 3);
	assert_non_null(strstr(text, "no kernel was measured; the program ended with status 3"));
	assert_null(strstr(text, "lull kernel -- PROGRAM"));
}

static void unknown_words_are_refused(void **state)
{
	(void)state;
	expect_refusal(2, "--no-such-option", "unknown option --no-such-option");
	expect_refusal(2, "--sample=sometimes", "sometimes");
	expect_refusal(2, "--trace=nvtx,nonsense", "nonsense");
	expect_refusal(2, "--duration=soon", "soon");
	expect_refusal(2, "--duration=-1", "is not a time such as");
	expect_refusal(2, "--sampling-frequency=0", "between 1 and 8000");
	expect_refusal(2, "--python-sampling-frequency=5000", "between 1 and 1000");
	expect_refusal(2, "--kill=gently", "gently");
	expect_refusal(2, "--wait=forever", "forever");
	expect_refusal(2, "--capture-range=nvtx", "--nvtx-capture");
	expect_refusal(2, "--capture-range-end=whenever", "whenever");
	expect_refusal(2, "--capture-range-end=repeat-shutdown", "needs a count");
	expect_refusal(2, "--export=papyrus", "papyrus");
	expect_refusal(2, "--export=hdf", "parquet and sqlite");
	expect_refusal(2, "--command-file=words", "lull profile $(cat FILE) PROGRAM");
}

static void lines_written_for_nsys_are_taken(void **state)
{
	char text[8192];

	(void)state;
	/* The line that most guides to PyTorch give: all of it means something here. */
	assert_int_equal(test_profile_run(text,
					  "profile -w true -t cuda,nvtx,osrt,cudnn,cublas -s cpu "
					  "--capture-range=cudaProfilerApi "
					  "--stop-on-range-end=true --cudabacktrace=true -x true "
					  "-o %%R/a true"),
			 0);
	expect_line(text, "lull: ", "the program never called cudaProfilerStart()");
	assert_int_equal(test_profile_run(text, "profile " LEAN "-t nvtx,opengl,vulkan -b dwarf "
						"--gpuctxsw=true --python-sampling-frequency=2000 "
						"--trace-fork-before-exec=true -o %%R/b true"),
			 0);
	assert_non_null(strstr(text, "lull: --trace: not supported, ignored: opengl, vulkan"));
	assert_non_null(strstr(text, "lull: --backtrace has no effect: "));
	assert_non_null(strstr(text, "lull: --gpuctxsw has no effect: "));
	assert_non_null(strstr(text, "the limit is 1000 Hz"));
	assert_null(strstr(text, "--trace-fork-before-exec"));
	assert_true(test_profile_exists("b.lull"));
	assert_int_equal(test_profile_run(text, "profile -q -t opengl -w false -o %%R/c true"), 0);
	assert_string_equal(text, "");
}

static void a_report_that_cannot_be_created_starts_no_program(void **state)
{
	(void)state;
	expect_refusal(1, "-o /no/such/folder/r", "there is no folder /no/such/folder");
	expect_refusal(1, "-o /proc/r", "/proc/r.lull.part");
	assert_int_equal(mkdir(test_profile_path("folder.lull"), 0755), 0);
	expect_refusal(1, "-o %R/folder", "folder.lull");
	expect_refusal(1, "-f -o %R/folder", "folder.lull is a folder");
	expect_refusal(2, "-o %R/", "names no file");
}

/* The number after "flood is over: ". */
static u64 n_emitted(const char *text)
{
	const char *at = strstr(text, "flood is over: ");

	if (!at)
		fail_msg("the program did not finish: %s", text);
	return strtoull(at + 15, NULL, 10);
}

static u64 number_before(const char *text, const char *word)
{
	const char *at = strstr(text, word);

	if (!at)
		fail_msg("nothing is %s in '%s'", word, text);
	while (at > text && at[-1] >= '0' && at[-1] <= '9')
		at--;
	return strtoull(at, NULL, 10);
}

/* The report of a flood that did not fit: what is there is readable, the rest was counted. */
static void expect_partial(const char *name, u64 emitted, u64 n_lost)
{
	struct lull_reader *r = test_profile_open(name);
	u64 n = test_profile_marks(r, "drop", 0) + test_profile_ranges(r, "flood");

	print_message("%llu ranges and marks, %llu rows in the report, %llu counted as lost\n",
		      (unsigned long long)(2 * emitted), (unsigned long long)n,
		      (unsigned long long)n_lost);
	assert_true(n > 1000);
	assert_true(n < 2 * emitted);
	assert_true(n + n_lost >= 2 * emitted);
	lull_reader_close(r);
}

/* What the recorder shares with the program needs 77 KB of the limit; the report is larger. */
#define LIMIT_BLOCKS "160"

/* One run of it; false if its end fitted by chance: the report is whole, with a counted gap. */
static bool flood_once(char *text, int status, int expected)
{
	char command[512];
	FILE *pipe;
	size_t n;

	snprintf(command, sizeof(command),
		 "ulimit -S -f " LIMIT_BLOCKS "; %s %s profile -o %s " LEAN
		 "sh -c 'ulimit -S -f unlimited; " TOUR " flood " FLOOD " %d' 2>&1",
		 test_profile_limit(), test_profile_command(), test_profile_path("limit"), status);
	pipe = popen(command, "r");
	assert_non_null(pipe);
	n = fread(text, 1, 8191, pipe);
	text[n] = '\0';
	assert_int_equal(pclose(pipe) >> 8, expected);
	assert_non_null(strstr(text, "File too large"));
	return access(test_profile_path("limit.lull"), F_OK) != 0;
}

/* The limit is the recorder's alone: the program lifts it for itself. */
static void flood_with_limit(char *text, int status, int expected)
{
	for (u32 i = 0; i < 20 && !flood_once(text, status, expected); i++)
		assert_int_equal(unlink(test_profile_path("limit.lull")), 0);
}

static void a_file_size_limit_harms_only_the_report(void **state)
{
	char text[8192];
	u64 emitted, n_lost;

	(void)state;
	flood_with_limit(text, 0, 1);
	emitted = n_emitted(text);
	expect_line(strchr(text, '\n') + 1, "lull profile: writing ", "File too large");
	assert_non_null(strstr(text, "lull recover "));
	n_lost = number_before(text, " events lost");
	assert_int_equal(test_profile_run(text, "recover %%R/limit.lull.part"), 0);
	expect_partial("limit.lull", emitted, n_lost);
	assert_int_equal(unlink(test_profile_path("limit.lull")), 0);
	/* The program's own failure is what counts. */
	flood_with_limit(text, 7, 7);
	expect_line(strchr(text, '\n') + 1, "lull profile: writing ", "File too large");
}

/* Too little for the session itself: nothing is started. */
static void a_small_file_size_limit_is_said(void **state)
{
	char text[8192], command[512];
	FILE *pipe;
	size_t n;

	(void)state;
	snprintf(command, sizeof(command), "ulimit -S -f 8; %s %s profile -o %s echo it ran 2>&1",
		 test_profile_limit(), test_profile_command(), test_profile_path("tiny"));
	pipe = popen(command, "r");
	assert_non_null(pipe);
	n = fread(text, 1, sizeof(text) - 1, pipe);
	text[n] = '\0';
	assert_int_equal(pclose(pipe) >> 8, 1);
	assert_non_null(strstr(text, "File too large"));
	assert_null(strstr(text, "it ran\n"));
}

/* A file system of 16 MiB in the folder, all but 300 KiB of it taken. */
static void mount_small(void)
{
	struct lull_str command = LULL_STR_INIT;
	const char *at = test_profile_path("small");
	int status;

	if (getuid() != 0)
		test_skip("mounting a small file system needs root");
	lull_str_addf(&command,
		      "mkdir %s && mount -t tmpfs -o size=16m none %s 2>/dev/null && "
		      "head -c 16470000 /dev/zero >%s/filler",
		      at, at, at);
	status = system(command.at);
	lull_str_release(&command);
	if (status != 0)
		test_skip("mounting a small file system is refused here");
}

static void unmount_small(void)
{
	struct lull_str command = LULL_STR_INIT;

	lull_str_addf(&command, "umount %s", test_profile_path("small"));
	assert_int_equal(system(command.at), 0);
	lull_str_release(&command);
}

static void a_full_disk_harms_only_the_report(void **state)
{
	char text[8192];
	u64 emitted, n_lost;
	int rc;

	(void)state;
	mount_small();
	/*
	 * To the last byte, before the recorder seals: what is left over would be enough at times.
	 */
	rc = test_profile_run(text,
			      "profile -o %%R/small/r " LEAN "sh -c '" TOUR " flood " FLOOD " 0; "
			      "cat /dev/zero >%%R/small/more 2>/dev/null; exit 0'");
	emitted = n_emitted(text);
	assert_int_equal(rc, 1);
	expect_line(strchr(text, '\n') + 1, "lull profile: writing ", "No space left on device");
	n_lost = number_before(text, " events lost");
	/* Nowhere to seal it either; but elsewhere there is room. */
	assert_int_equal(test_profile_run(text, "recover %%R/small/r.lull.part"), 1);
	expect_line(text, "lull recover: ", "No space left on device");
	assert_int_equal(test_profile_run(text, "recover -o %%R/saved.lull %%R/small/r.lull.part"),
			 0);
	unmount_small();
	expect_partial("saved.lull", emitted, n_lost);
}

/* Take what room there is. */
static void fill_small(void)
{
	static const char zeros[4096];
	int fd = open(test_profile_path("small/more"), O_WRONLY | O_CREAT, 0600);

	assert_true(fd >= 0);
	while (write(fd, zeros, sizeof(zeros)) > 0)
		continue;
	close(fd);
}

static i64 part_bytes(void)
{
	struct stat st;

	return stat(test_profile_path("small/r.lull.part"), &st) == 0 ? (i64)st.st_size : 0;
}

/* What `lull status` of the recorder says has this in it. */
static bool says(pid_t recorder, const char *words)
{
	char text[8192];

	return test_profile_run(text, "status --session=lull-%d", (int)recorder) == 0 &&
	       strstr(text, words) != NULL;
}

static void a_disk_that_was_full_for_a_while_leaves_a_counted_gap(void **state)
{
	struct guest_counts *counts;
	struct lull_reader *r;
	i64 full_bytes;
	pid_t pid;

	(void)state;
	mount_small();
	counts = guest_counts_map(test_profile_path("counts"));
	assert_non_null(counts);
	setenv("TEST_COUNTS", test_profile_path("counts"), 1);
	pid = test_profile_launch("profile -o %%R/small/r " LEAN TOUR
				  " flood %%R/stop 0 >%%R/said 2>&1");
	unsetenv("TEST_COUNTS");
	test_wait_for(part_bytes() > 20000);
	fill_small();
	test_wait_for(says(pid, "No space left on device"));
	full_bytes = part_bytes();
	assert_int_equal(unlink(test_profile_path("small/filler")), 0);
	assert_int_equal(unlink(test_profile_path("small/more")), 0);
	test_wait_for(part_bytes() > full_bytes + 20000);
	test_profile_touch("stop");
	assert_int_equal(test_profile_wait(pid), 1);
	r = test_profile_open("small/r.lull");
	assert_true(test_profile_issue(r, "disk_full") > 0);
	expect_partial("small/r.lull", counts->n_emitted,
		       test_profile_issue(r, "disk_full") + test_profile_issue(r, "buffer_full"));
	lull_reader_close(r);
	unmount_small();
}

/* Run lull where /dev/shm is what `mount` makes of it. */
static int run_in_namespace(char *text, const char *mount, const char *words)
{
	struct lull_str command = LULL_STR_INIT;
	FILE *pipe;
	size_t n;
	int status;

	test_profile_need_namespace();
	lull_str_addf(&command,
		      "mkdir -p %s; TMPDIR=%s unshare -m sh -c '%s && %s %s profile -q -o "
		      "%s %s' 2>&1",
		      test_profile_path("tmp"), test_profile_path("tmp"), mount,
		      test_profile_limit(), test_profile_command(), test_profile_path("r"), words);
	pipe = popen(command.at, "r");
	assert_non_null(pipe);
	n = fread(text, 1, 8191, pipe);
	text[n] = '\0';
	status = pclose(pipe);
	lull_str_release(&command);
	return status >> 8;
}

static void expect_fallback(const char *mount)
{
	struct lull_reader *r;
	char text[8192], expected[256];

	assert_int_equal(run_in_namespace(text, mount,
					  "sh -c \"echo \\$LULL_SESSION; exec " TOUR
					  " leaf here 3\""),
			 3);
	snprintf(expected, sizeof(expected), "%s/lull-", test_profile_path("tmp"));
	assert_int_equal(strncmp(text, expected, strlen(expected)), 0);
	r = test_profile_open("r.lull");
	assert_int_equal(test_profile_marks(r, "here", 0), 1);
	lull_reader_close(r);
	assert_int_equal(unlink(test_profile_path("r.lull")), 0);
	/* Only an empty folder is removed by this. */
	assert_int_equal(rmdir(test_profile_path("tmp")), 0);
}

static bool is_in_tmp(const char *path)
{
	char *real = realpath(path, NULL);
	bool is_there = real && strncmp(real, "/tmp/", 5) == 0;

	free(real);
	return is_there;
}

static void without_shared_memory_the_buffers_go_to_tmpdir(void **state)
{
	(void)state;
	expect_fallback("mount -t tmpfs -o size=1m none /dev/shm");
	expect_fallback("mount -t tmpfs -o ro none /dev/shm");
	/* As in a container: it has what we need, but then the program has not. */
	expect_fallback("mount -t tmpfs -o size=128m none /dev/shm");
}

static void without_room_for_buffers_no_program_is_started(void **state)
{
	char text[8192];

	(void)state;
	if (is_in_tmp(test_profile_command()))
		test_skip("the tree lies in /tmp, and a small /tmp would hide it");
	assert_int_equal(run_in_namespace(text,
					  "mount -t tmpfs -o ro none /dev/shm && TMPDIR=/tmp && "
					  "mount -t tmpfs -o size=1m none /tmp",
					  "true"),
			 1);
	expect_line(text, "lull profile: no space for buffers", "set TMPDIR");
}

static void put_file(const char *name, const void *bytes, size_t n)
{
	FILE *file = fopen(test_profile_path(name), "w");

	assert_non_null(file);
	assert_int_equal(fwrite(bytes, 1, n, file), n);
	fclose(file);
}

static const char *const readers[] = { "info", "stats", "export -t jsonlines -o -", "recover" };

static void what_is_no_report_is_one_line_for_every_reader(void **state)
{
	static const char *const names[] = { "empty", "random", "text", "folder", "missing" };
	unsigned char noise[4096];
	char text[8192], begin[32];
	unsigned seed = 7;

	(void)state;
	for (size_t i = 0; i < sizeof(noise); i++)
		noise[i] = (unsigned char)(rand_r(&seed) >> 8);
	put_file("empty", "", 0);
	put_file("random", noise, sizeof(noise));
	for (size_t i = 0; i < sizeof(noise); i++)
		noise[i] = "all work and no play\n"[i % 21];
	put_file("text", noise, sizeof(noise));
	assert_int_equal(mkdir(test_profile_path("folder"), 0755), 0);
	for (size_t i = 0; i < LULL_COUNT_OF(readers); i++) {
		snprintf(begin, sizeof(begin), "lull %.*s: ", (int)strcspn(readers[i], " "),
			 readers[i]);
		for (size_t j = 0; j < LULL_COUNT_OF(names); j++) {
			assert_int_equal(test_profile_run(text, "%s %%R/%s", readers[i], names[j]),
					 1);
			expect_line(text, begin, names[j]);
		}
	}
}

/* Every reader survives the first `len` bytes of the report; 0 or 1, and on 1 one line. */
static void try_cut(const struct lull_str *report, size_t len)
{
	char text[8192];
	struct stat st;
	int status = 0;

	for (size_t i = 0; i < LULL_COUNT_OF(readers); i++) {
		put_file("cut", report->at, len);
		status = test_profile_run(text,
					  "%s %%R/cut >%%R/out 2>&1 || exit $?; :", readers[i]);
		if (status != 0 && status != 1)
			fail_msg("%s returned %d for %zu bytes of %zu", readers[i], status, len,
				 report->len);
	}
	/* The last one was recover: it makes a whole report, or leaves the file alone. */
	if (status == 0) {
		lull_reader_close(test_profile_open("cut"));
		return;
	}
	assert_int_equal(stat(test_profile_path("cut"), &st), 0);
	assert_int_equal(st.st_size, len);
}

static void a_report_cut_at_any_block_is_read_as_far_as_it_goes(void **state)
{
	struct lull_str report = LULL_STR_INIT;
	const struct lull_entry *blocks;
	struct lull_reader *r;
	char bytes[4096];
	size_t n_blocks, n;
	FILE *file;

	(void)state;
	assert_int_equal(
		test_profile_run(NULL, "profile -q " LEAN "-o %%R/whole " TOUR " takes 1 0"), 0);
	file = fopen(test_profile_path("whole.lull"), "r");
	assert_non_null(file);
	while ((n = fread(bytes, 1, sizeof(bytes), file)) > 0)
		lull_str_add(&report, bytes, n);
	fclose(file);
	r = test_profile_open("whole.lull");
	blocks = lull_reader_blocks(r, &n_blocks);
	print_message("%zu blocks\n", n_blocks);
	assert_true(n_blocks > 5);
	for (size_t i = 0; i < n_blocks; i++) {
		try_cut(&report, blocks[i].off);
		if (i % 4 == 0)
			try_cut(&report, blocks[i].off + 9);
	}
	try_cut(&report, report.len - 1);
	lull_reader_close(r);
	lull_str_release(&report);
}

static void recovery_keeps_what_it_cannot_use(void **state)
{
	char text[8192], bytes[4096];
	struct stat whole, rest;
	FILE *file;
	size_t n;

	(void)state;
	assert_int_equal(test_profile_run(NULL, "profile -q " LEAN "-o %%R/r " TOUR " takes 1 0"),
			 0);
	file = fopen(test_profile_path("r.lull"), "r");
	assert_non_null(file);
	n = fread(bytes, 1, 1000, file);
	fclose(file);
	put_file("tiny.lull", bytes, n);
	assert_int_equal(test_profile_run(text, "recover %%R/tiny.lull"), 1);
	expect_line(text, "lull recover: ", "nothing to recover; the file was not changed");
	assert_int_equal(stat(test_profile_path("tiny.lull"), &rest), 0);
	assert_int_equal(rest.st_size, n);
	/* Without its last bytes it has no index, and all rows. */
	assert_int_equal(stat(test_profile_path("r.lull"), &whole), 0);
	assert_int_equal(truncate(test_profile_path("r.lull"), whole.st_size - 1), 0);
	assert_int_equal(test_profile_run(text, "stats -r nvtx_sum %%R/r.lull"), 0);
	assert_non_null(strstr(text, "r.lull has no end: it was cut off after"));
	assert_int_equal(test_profile_run(text, "recover %%R/r.lull"), 0);
	assert_non_null(strstr(text, "r.lull.cut  the original file"));
	assert_int_equal(stat(test_profile_path("r.lull.cut"), &rest), 0);
	assert_int_equal(rest.st_size, whole.st_size - 1);
	lull_reader_close(test_profile_open("r.lull"));
}

static int set_up(void **state)
{
	(void)state;
	test_profile_begin();
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	/* A test that failed may have left it mounted. */
	if (access(test_profile_path("small/filler"), F_OK) == 0 ||
	    access(test_profile_path("small/r.lull.part"), F_OK) == 0)
		unmount_small();
	test_profile_end();
	return 0;
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_program_that_cannot_start_has_the_status_of_a_shell),
		TEST(a_program_that_fails_under_lull_kernel_is_not_told_to_use_it),
		TEST(unknown_words_are_refused),
		TEST(lines_written_for_nsys_are_taken),
		TEST(a_report_that_cannot_be_created_starts_no_program),
		TEST(a_file_size_limit_harms_only_the_report),
		TEST(a_small_file_size_limit_is_said),
		TEST(a_full_disk_harms_only_the_report),
		TEST(a_disk_that_was_full_for_a_while_leaves_a_counted_gap),
		TEST(without_shared_memory_the_buffers_go_to_tmpdir),
		TEST(without_room_for_buffers_no_program_is_started),
		TEST(what_is_no_report_is_one_line_for_every_reader),
		TEST(a_report_cut_at_any_block_is_read_as_far_as_it_goes),
		TEST(recovery_keeps_what_it_cannot_use),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
