/* What impi-node native test measures beside the shim: the same messages in a program that the
 * mpicc of a site's own MPI has compiled for that MPI alone. Rank 0 writes one line of JSON, after
 * a word by which it is found in what the launcher writes. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { ROUNDS = 7, TURNS = 2000, LONGS = 64, LONG = 1 << 20, ROOM = 512 };

static char fabric[ROOM], buffer[LONG];

/* device takes what MPICH and its kin have in their version, as "MPICH Device: ch4:ofi". */
static void device(void)
{
	char text[MPI_MAX_LIBRARY_VERSION_STRING] = "", *at;
	int n;
	MPI_Get_library_version(text, &n);
	if (!(at = strstr(text, "Device:")))
		return;
	at += strlen("Device:");
	at += strspn(at, " \t");
	snprintf(fabric, sizeof fabric, "%.*s", (int)strcspn(at, " \t\r\n"), at);
}

/* has reports whether a list of names has one. */
static int has(const char *list, const char *name)
{
	size_t n = strlen(name);
	for (const char *at = list; (at = strstr(at, name)); at++)
		if ((at == list || at[-1] == ' ') && (at[n] == 0 || at[n] == ' '))
			return 1;
	return 0;
}

/* of_kind lists the components of Open MPI of a kind that are open: they have control variables,
 * such as pml_ob1_priority. Those that it has not chosen were closed in Init. */
static void of_kind(const char *kind, char *list, size_t room)
{
	int all = 0;
	MPI_T_cvar_get_num(&all);
	for (int i = 0; i < all; i++) {
		char name[256] = "", one[64], of[8];
		int length = sizeof name, none = 0, verbosity, binding, scope;
		MPI_Datatype type;
		MPI_T_enum values;
		if (MPI_T_cvar_get_info(i, name, &length, &verbosity, &type, &values, NULL, &none, &binding, &scope) ||
		    sscanf(name, "%7[a-z]_%63[a-z0-9]_", of, one) != 2 || strcmp(of, kind) || !strcmp(one, "base") ||
		    strlen(name) <= strlen(of) + 1 + strlen(one) || has(list, one) || strlen(list) + strlen(one) + 2 > room)
			continue;
		if (*list)
			strcat(list, " ");
		strcat(list, one);
	}
}

/* components tells what carries messages in Open MPI: a pml, and what that is made of. */
static void components(void)
{
	char pml[100] = "", below[300] = "";
	const char *kind = "";
	int level;
	if (MPI_T_init_thread(MPI_THREAD_SINGLE, &level))
		return;
	of_kind("pml", pml, sizeof pml);
	if (has(pml, "ob1"))
		of_kind(kind = "btl", below, sizeof below);
	else if (has(pml, "cm"))
		of_kind(kind = "mtl", below, sizeof below);
	if (*pml)
		snprintf(fabric, sizeof fabric, "pml %s%s%s%s%s", pml, *below ? ", " : "", *below ? kind : "", *below ? " " : "", below);
	MPI_T_finalize();
}

static int ascending(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;
	return (x > y) - (x < y);
}

static double median(double *list)
{
	qsort(list, ROUNDS, sizeof *list, ascending);
	return list[ROUNDS / 2];
}

static int other; /* rank 0's other one is 1, and the other way round */

static void send(int n) { MPI_Send(buffer, n, MPI_BYTE, other, 1, MPI_COMM_WORLD); }

static void receive(int n) { MPI_Recv(buffer, n, MPI_BYTE, other, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE); }

static void measure(double *trip, double *stream)
{
	double trips[ROUNDS], streams[ROUNDS];
	int first = other == 1;
	for (int r = 0; r < ROUNDS; r++) {
		double begin = MPI_Wtime();
		for (int i = 0; i < TURNS; i++) {
			if (first)
				send(8);
			receive(8);
			if (!first)
				send(8);
		}
		trips[r] = (MPI_Wtime() - begin) / (2 * TURNS);
		begin = MPI_Wtime();
		for (int i = 0; i < LONGS; i++)
			first ? send(LONG) : receive(LONG);
		first ? receive(8) : send(8);
		streams[r] = LONGS * (double)LONG / (MPI_Wtime() - begin);
	}
	*trip = median(trips);
	*stream = median(streams);
}

int main(int argc, char **argv)
{
	double trip, stream;
	int rank, size, done = 0;
	MPI_Request end;
	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &size);
	if (size < 2)
		MPI_Abort(MPI_COMM_WORLD, 1);
	if (rank < 2) {
		other = 1 - rank;
		measure(&trip, &stream);
	}
	if (rank == 0) {
		device();
		components();
		for (char *c = fabric; *c; c++)
			if (*c == '"' || *c == '\\' || (unsigned char)*c < ' ')
				*c = ' ';
		printf("impi-native {\"half_trip_ns\":%.0f,\"rate_bytes_per_s\":%.0f,\"fabric\":\"%s\"}\n", trip * 1e9, stream, fabric);
		fflush(stdout);
	}
	MPI_Ibarrier(MPI_COMM_WORLD, &end); /* those that only wait leave their cores to ranks 0 and 1 */
	while (!done) {
		struct timespec pause = {0, 1000000};
		MPI_Test(&end, &done, MPI_STATUS_IGNORE);
		if (!done)
			nanosleep(&pause, NULL);
	}
	MPI_Finalize();
	return 0;
}
