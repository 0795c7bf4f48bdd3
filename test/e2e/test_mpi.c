/*
 * Two ranks under mpirun, with each family of MPI that is installed. What is expected is what
 * mpi_guest.c does.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "support/profile.h"

struct call {
	const char *name;
	i64 rank, peer, root, tag; /* rank -9: in no communicator */
	u64 send_bytes, recv_bytes;
};

static const struct call expected[] = {
	{ "MPI_Init", 0, -1, -1, -1, 0, 0 },
	{ "MPI_Init", 1, -1, -1, -1, 0, 0 },
	{ "MPI_Send", 0, 1, -1, 7, 8000, 0 },
	{ "MPI_Recv", 1, 0, -1, 7, 0, 8000 },
	{ "MPI_Irecv", 0, 1, -1, 8, 0, 400 },
	{ "MPI_Isend", 1, 0, -1, 8, 400, 0 },
	{ "MPI_Sendrecv", 0, 1, -1, 9, 40, 40 },
	{ "MPI_Send", 1, -3, -1, 10, 0, 0 },
	{ "MPI_Bcast", 0, -1, 0, -1, 256, 0 },
	{ "MPI_Bcast", 1, -1, 0, -1, 0, 256 },
	{ "MPI_Reduce", 0, -1, 1, -1, 64, 0 },
	{ "MPI_Reduce", 1, -1, 1, -1, 64, 64 },
	{ "MPI_Allreduce", 0, -1, -1, -1, 4000, 4000 },
	{ "MPI_Gather", 0, -1, 0, -1, 16, 32 },
	{ "MPI_Gather", 1, -1, 0, -1, 16, 0 },
	{ "MPI_Alltoall", 0, -1, -1, -1, 40, 40 },
	{ "MPI_Allgatherv", 1, -1, -1, -1, 12, 16 },
	{ "MPI_Reduce_scatter", 1, -1, -1, -1, 16, 12 },
	{ "MPI_Allgather", 0, -1, -1, -1, 0, 16 },
	{ "MPI_Barrier", 0, -1, -1, -1, 0, 0 }, /* by Fortran's name */
	{ "MPI_Put", -9, 1, -1, -1, 64, 0 },
	{ "MPI_File_write_at", -9, -1, -1, -1, 64, 0 },
	{ "MPI_File_read_at", -9, -1, -1, -1, 0, 64 },
	{ "MPI_Finalize", -9, -1, -1, -1, 0, 0 },
};

/* Rows that are as expected; with `comm_name` not NULL only in that communicator. */
static size_t count(struct lull_reader *r, const struct call *want, const char *comm_name)
{
	struct lull_mpi_call_cols cols;
	struct lull_cursor c;
	size_t n, found = 0;

	lull_cursor_init(&c, r, LULL_TABLE_mpi_call, 0, UINT64_MAX);
	while ((n = lull_cursor_next(&c, &cols)) > 0)
		for (size_t i = 0; i < n; i++)
			found += strcmp(lull_reader_string(r, cols.name[i], NULL), want->name) ==
					 0 &&
				 (cols.n_ranks[i] ? (i64)cols.rank[i] : -9) == want->rank &&
				 cols.peer[i] == want->peer && cols.root[i] == want->root &&
				 cols.tag[i] == want->tag &&
				 cols.send_bytes[i] == want->send_bytes &&
				 cols.recv_bytes[i] == want->recv_bytes &&
				 (!comm_name ||
				  strcmp(lull_reader_string(r, cols.comm_name[i], NULL),
					 comm_name) == 0);
	lull_cursor_release(&c);
	return found;
}

static void check_report(const char *name)
{
	struct lull_reader *r = test_profile_open(name);
	struct call split = { "MPI_Allreduce", 1, -1, -1, -1, 4, 4 };

	for (size_t i = 0; i < LULL_COUNT_OF(expected); i++) {
		if (!count(r, &expected[i], NULL))
			print_error("%s of rank %lld\n", expected[i].name,
				    (long long)expected[i].rank);
		assert_true(count(r, &expected[i], NULL) > 0);
	}
	/* The second communicator may have the handle of the first; not its ranks and name. */
	assert_int_equal(count(r, &split, "reversed"), 1);
	assert_int_equal(count(r, &split, "straight"), 1);
	lull_reader_close(r);
}

/* The command that starts ranks; the test is skipped if this family is not installed. */
static const char *find_mpirun(const char *family)
{
	static char text[256];
	char guest[128];

	snprintf(guest, sizeof(guest), LULL_BUILD "/e2e/mpi_guest_%s", family);
	if (access(guest, X_OK) != 0)
		test_skip("%s is not installed (make setup)", family);
	snprintf(text, sizeof(text), "mpirun.%s %s -n 2", family,
		 strcmp(family, "openmpi") == 0 ? "--oversubscribe" : "");
	return text;
}

static void record_both(const char *family)
{
	const char *mpirun = find_mpirun(family);
	char text[8192];

	assert_int_equal(test_profile_run(text,
					  "profile -t mpi -s none -o %%R/%s %s " LULL_BUILD
					  "/e2e/mpi_guest_%s %%R/data-%s",
					  family, mpirun, family, family),
			 0);
	snprintf(text, sizeof(text), "%s.lull", family);
	check_report(text);
}

static void open_mpi_is_understood(void **state)
{
	(void)state;
	record_both("openmpi");
}

static void mpich_is_understood(void **state)
{
	(void)state;
	record_both("mpich");
}

static void a_program_with_copies_of_the_librarys_objects_is_understood(void **state)
{
	const char *mpirun = find_mpirun("openmpi");
	char text[8192];

	(void)state;
	assert_int_equal(test_profile_run(text,
					  "profile -t mpi -s none -o %%R/fixed %s " LULL_BUILD
					  "/e2e/mpi_guest_fixed %%R/data-fixed",
					  mpirun),
			 0);
	check_report("fixed.lull");
}

static void each_rank_can_have_its_own_report(void **state)
{
	const char *mpirun = find_mpirun("openmpi");
	struct call send = { "MPI_Send", 0, 1, -1, 7, 8000, 0 };
	struct lull_reader *r;
	char command[1024];

	(void)state;
	snprintf(command, sizeof(command),
		 "%s %s %s profile -q -t mpi -s none -o '%s.%%q{OMPI_COMM_WORLD_RANK}' " LULL_BUILD
		 "/e2e/mpi_guest_openmpi %s",
		 test_profile_limit(), mpirun, test_profile_command(), test_profile_path("rank"),
		 test_profile_path("data"));
	assert_int_equal(system(command), 0);
	r = test_profile_open("rank.0.lull");
	assert_int_equal(count(r, &send, "MPI_COMM_WORLD"), 1);
	lull_reader_close(r);
	r = test_profile_open("rank.1.lull");
	assert_int_equal(count(r, &send, "MPI_COMM_WORLD"), 0);
	lull_reader_close(r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(open_mpi_is_understood),
		cmocka_unit_test(mpich_is_understood),
		cmocka_unit_test(a_program_with_copies_of_the_librarys_objects_is_understood),
		cmocka_unit_test(each_rank_can_have_its_own_report),
	};
	int failed;

	/* Open MPI refuses to run for root, such as in a container, unless told twice. */
	setenv("OMPI_ALLOW_RUN_AS_ROOT", "1", 1);
	setenv("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1", 1);
	test_profile_begin();
	failed = cmocka_run_group_tests(tests, NULL, NULL);
	test_profile_end();
	return failed;
}
