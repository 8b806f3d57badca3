// What a report counts: short messages to and fro, most of them without Go, and collective
// operations.
#include <mpi.h>
#include <stdio.h>

enum { ROUNDS = 3000, FLOCK = 30 };

int main(int argc, char **argv)
{
	int rank, size;
	char data[64] = { 0 };
	double sum, one = 1;
	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &size);
	int other = rank ^ 1;
	for (int i = 0; i < 2 * ROUNDS / FLOCK; i++) {
		int sends = rank % 2 == i % 2;
		if (!sends && i % 4 == 0)
			MPI_Barrier(MPI_COMM_WORLD); // all are there before they are received
		for (int k = 0; k < FLOCK; k++)
			if (sends)
				MPI_Send(data, sizeof data, MPI_BYTE, other, 1, MPI_COMM_WORLD);
			else
				MPI_Recv(data, sizeof data, MPI_BYTE, other, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
		if (sends && i % 4 == 0)
			MPI_Barrier(MPI_COMM_WORLD);
	}
	for (int i = 0; i < ROUNDS; i++)
		MPI_Allreduce(&one, &sum, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
	int to = (rank + 1) % size, from = (rank + size - 1) % size;
	MPI_Sendrecv(&one, 1, MPI_DOUBLE, to, 2, &sum, 1, MPI_DOUBLE, from, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	MPI_Sendrecv_replace(&one, 1, MPI_DOUBLE, to, 3, from, 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	MPI_Request r;
	MPI_Ibarrier(MPI_COMM_WORLD, &r);
	MPI_Wait(&r, MPI_STATUS_IGNORE);
	if (rank == 0)
		printf("OK counted\n");
	MPI_Finalize();
	return 0;
}
