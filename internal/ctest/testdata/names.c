/* One proc publishes the name of a port, the other looks it up. */
#include <mpi.h>
#include <stdio.h>
#include <string.h>

int main(int argc, char **argv)
{
	char port[MPI_MAX_PORT_NAME] = "", found[MPI_MAX_PORT_NAME] = "";
	int rank, same;

	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	if (rank == 0) {
		MPI_Open_port(MPI_INFO_NULL, port);
		MPI_Publish_name("trial", MPI_INFO_NULL, port);
	}
	MPI_Bcast(port, sizeof port, MPI_CHAR, 0, MPI_COMM_WORLD);
	MPI_Lookup_name("trial", MPI_INFO_NULL, found);
	same = strcmp(port, found) == 0;
	printf("is: rank %d %s the port\n", rank, same ? "finds" : "does not find");
	MPI_Barrier(MPI_COMM_WORLD);
	if (rank == 0) {
		MPI_Unpublish_name("trial", MPI_INFO_NULL, port);
		MPI_Close_port(port);
	}
	MPI_Finalize();
	return !same;
}
