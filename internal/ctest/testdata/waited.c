// Short messages to and fro between two procs, after which rank 0 computes before it sends the
// next, and again.
#include <mpi.h>
#include <stdio.h>
#include <unistd.h>

enum { TIMES = 3, ROUNDS = 2000, COMPUTES = 100000, LATE = 6 };

int main(int argc, char **argv)
{
	int rank;
	double x = 1;
	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	for (int k = 0; k < TIMES && rank < 2; k++) {
		for (int i = 0; i < ROUNDS; i++) {
			if (rank == 0)
				MPI_Send(&x, 1, MPI_DOUBLE, 1, 4, MPI_COMM_WORLD);
			MPI_Recv(&x, 1, MPI_DOUBLE, 1 - rank, 4, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
			if (rank == 1)
				MPI_Send(&x, 1, MPI_DOUBLE, 0, 4, MPI_COMM_WORLD);
		}
		if (rank == 0) {
			usleep(COMPUTES);
			MPI_Send(&x, 1, MPI_DOUBLE, 1, LATE + k, MPI_COMM_WORLD);
			usleep(COMPUTES / 10); // so that it is an entry of its own
		} else
			MPI_Recv(&x, 1, MPI_DOUBLE, 0, LATE + k, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	}
	MPI_Barrier(MPI_COMM_WORLD);
	if (rank == 0)
		printf("OK waited\n");
	MPI_Finalize();
	return 0;
}
