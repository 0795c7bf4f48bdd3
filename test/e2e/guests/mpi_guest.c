/*
 * mpi_guest: two ranks that do a little of everything; test_mpi.c knows what. Argument: a file to
 * use.
 */
#include <mpi.h>
#include <stdlib.h>
#include <string.h>

/* A binding of Fortran, as its compiler would call it. */
void mpi_barrier_(MPI_Fint *comm, MPI_Fint *error);

/* Called through the entry that also tells its address, which x86_64 has for both anyway. */
int MPI_Alltoall(const void *from, int n, MPI_Datatype type, void *to, int n_to,
		 MPI_Datatype type_to, MPI_Comm comm) __attribute__((noplt));
static __typeof__(MPI_Alltoall) *volatile exchange;

#define CHECK(condition)                              \
	do {                                          \
		if (!(condition))                     \
			MPI_Abort(MPI_COMM_WORLD, 9); \
	} while (0)

static int rank;

static void between_two(void)
{
	static double doubles[2000];
	int out[100], in[100] = { 0 }, n;
	MPI_Request requests[2];
	MPI_Status status;

	if (rank == 0) {
		MPI_Send(doubles, 1000, MPI_DOUBLE, 1, 7, MPI_COMM_WORLD);
	} else {
		MPI_Recv(doubles, 2000, MPI_DOUBLE, MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD,
			 &status);
		MPI_Get_count(&status, MPI_DOUBLE, &n);
		CHECK(n == 1000 && status.MPI_SOURCE == 0);
	}
	for (int i = 0; i < 100; i++)
		out[i] = i + rank;
	MPI_Irecv(in, 100, MPI_INT, 1 - rank, 8, MPI_COMM_WORLD, &requests[0]);
	MPI_Isend(out, 100, MPI_INT, 1 - rank, 8, MPI_COMM_WORLD, &requests[1]);
	MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
	CHECK(in[99] == 100 - rank);
	MPI_Sendrecv(out, 10, MPI_INT, 1 - rank, 9, in, 20, MPI_INT, 1 - rank, 9, MPI_COMM_WORLD,
		     &status);
	MPI_Send(out, 100, MPI_INT, MPI_PROC_NULL, 10, MPI_COMM_WORLD);
}

static void all_together(void)
{
	double doubles[8] = { 0 }, sums[8];
	float floats[1000] = { 0 };
	char bytes[256] = { 0 };
	int ints[16] = { 0 }, more[16], counts[2] = { 1, 3 }, places[2] = { 0, 1 };
	MPI_Fint world = MPI_Comm_c2f(MPI_COMM_WORLD), error;

	MPI_Bcast(bytes, 256, MPI_BYTE, 0, MPI_COMM_WORLD);
	MPI_Reduce(doubles, sums, 8, MPI_DOUBLE, MPI_SUM, 1, MPI_COMM_WORLD);
	MPI_Allreduce(MPI_IN_PLACE, floats, 1000, MPI_FLOAT, MPI_MAX, MPI_COMM_WORLD);
	/* What is not of the root's business may be nonsense. */
	MPI_Gather(ints, 4, MPI_INT, rank ? NULL : more, rank ? -1 : 4,
		   rank ? MPI_DATATYPE_NULL : MPI_INT, 0, MPI_COMM_WORLD);
	exchange = MPI_Alltoall;
	MPI_Alltoall(ints, 5, MPI_INT, more, 5, MPI_INT, MPI_COMM_WORLD);
	MPI_Allgatherv(ints, counts[rank], MPI_INT, more, counts, places, MPI_INT, MPI_COMM_WORLD);
	MPI_Reduce_scatter(ints, more, counts, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
	MPI_Allgather(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, ints, 2, MPI_INT, MPI_COMM_WORLD);
	mpi_barrier_(&world, &error);
	CHECK(error == MPI_SUCCESS);
}

static void communicators(void)
{
	MPI_Comm pair;
	int n = 1;

	for (int i = 0; i < 2; i++) {
		MPI_Comm_split(MPI_COMM_WORLD, 0, i ? rank : -rank, &pair);
		MPI_Comm_set_name(pair, i ? "straight" : "reversed");
		MPI_Allreduce(MPI_IN_PLACE, &n, 1, MPI_INT, MPI_SUM, pair);
		MPI_Comm_free(&pair);
	}
	CHECK(n == 4);
}

static void memory_and_files(const char *path)
{
	int window[16] = { 0 }, values[16];
	char text[64];
	MPI_Win win;
	MPI_File file;

	MPI_Win_create(window, sizeof(window), sizeof(int), MPI_INFO_NULL, MPI_COMM_WORLD, &win);
	MPI_Win_fence(0, win);
	for (int i = 0; i < 16; i++)
		values[i] = i;
	MPI_Put(values, 16, MPI_INT, 1 - rank, 0, 16, MPI_INT, win);
	MPI_Win_fence(0, win);
	CHECK(window[15] == 15);
	MPI_Win_free(&win);
	memset(text, 'a' + rank, sizeof(text));
	CHECK(MPI_File_open(MPI_COMM_WORLD, path, MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL,
			    &file) == MPI_SUCCESS);
	MPI_File_write_at(file, rank * 64, text, 64, MPI_CHAR, MPI_STATUS_IGNORE);
	MPI_File_read_at(file, rank * 64, text, 64, MPI_CHAR, MPI_STATUS_IGNORE);
	CHECK(text[63] == 'a' + rank);
	MPI_File_close(&file);
}

int main(int argc, char **argv)
{
	int n;

	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &n);
	if (argc < 2 || n != 2)
		MPI_Abort(MPI_COMM_WORLD, 8);
	between_two();
	all_together();
	communicators();
	memory_and_files(argv[1]);
	/* Refused, and the program lives on: nobody may ask MPI about such a rank. */
	MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
	CHECK(MPI_Ssend(&n, 1, MPI_INT, 77, 0, MPI_COMM_WORLD) != MPI_SUCCESS);
	MPI_Finalize();
	return 0;
}
