/* The program of package pair, line by line, for other MPIs: latency SECONDS, or stream OMIT
 * SECONDS. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LENGTH = 256 << 10, DEPTH = 256, DATA = 1, STOP = 2, MOST = 1 << 20 };

static char data[LENGTH], word[1];
static MPI_Request reqs[DEPTH];
static double trips[MOST];

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static void latency(int rank, double whole)
{
    double begun = MPI_Wtime();
    int n = 0;
    for (;;) {
        double at = MPI_Wtime();
        data[0] = n < 8 || (at - begun <= whole && n < MOST - 1);
        if (rank == 0)
            MPI_Send(data, 8, MPI_BYTE, 1, DATA, MPI_COMM_WORLD);
        MPI_Recv(data, 8, MPI_BYTE, 1 - rank, DATA, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        if (rank == 1)
            MPI_Send(data, 8, MPI_BYTE, 0, DATA, MPI_COMM_WORLD);
        trips[n++] = (MPI_Wtime() - at) * 1e3;
        if (data[0] == 0 || n == MOST)
            break;
    }
    if (rank == 0) {
        qsort(trips + 3, n - 3, sizeof *trips, compare);
        printf("pair: %g ms\n", trips[3 + (n - 3) / 2]);
        fflush(stdout);
    }
}

static void sender(void)
{
    MPI_Request enough;
    int done = 0;
    MPI_Irecv(word, 1, MPI_BYTE, 1, STOP, MPI_COMM_WORLD, &enough);
    for (int i = 0; i < DEPTH; i++)
        reqs[i] = MPI_REQUEST_NULL;
    for (int i = 0;; i = (i + 1) % DEPTH) {
        MPI_Wait(&reqs[i], MPI_STATUS_IGNORE);
        MPI_Test(&enough, &done, MPI_STATUS_IGNORE);
        if (done)
            break;
        MPI_Isend(data, LENGTH, MPI_BYTE, 1, DATA, MPI_COMM_WORLD, &reqs[i]);
    }
    MPI_Waitall(DEPTH, reqs, MPI_STATUSES_IGNORE);
    MPI_Send(data, 0, MPI_BYTE, 1, DATA, MPI_COMM_WORLD);
}

static void receiver(double omit, double whole)
{
    double first = 0, begun = 0, bytes = 0;
    int stopped = 0, last = 0;
    for (int i = 0; i < DEPTH; i++)
        MPI_Irecv(data, LENGTH, MPI_BYTE, 0, DATA, MPI_COMM_WORLD, &reqs[i]);
    for (int i = 0;; i = (i + 1) % DEPTH) {
        MPI_Status st;
        int n;
        MPI_Wait(&reqs[i], &st);
        MPI_Get_count(&st, MPI_BYTE, &n);
        if (n == 0) {
            last = i;
            break;
        }
        double now = MPI_Wtime();
        if (first == 0) {
            first = now;
        } else if (begun == 0 && now - first >= omit) {
            begun = now;
        } else if (begun != 0 && !stopped) {
            bytes += LENGTH;
            if (now - begun >= whole) {
                printf("pair: %g Mb/s\n", bytes * 8 / 1e6 / (now - begun));
                fflush(stdout);
                stopped = 1;
                MPI_Send(word, 1, MPI_BYTE, 0, STOP, MPI_COMM_WORLD);
            }
        }
        MPI_Irecv(data, LENGTH, MPI_BYTE, 0, DATA, MPI_COMM_WORLD, &reqs[i]);
    }
    for (int i = 1; i < DEPTH; i++) { /* nobody sends to these any more */
        MPI_Cancel(&reqs[(last + i) % DEPTH]);
        MPI_Wait(&reqs[(last + i) % DEPTH], MPI_STATUS_IGNORE);
    }
}

int main(int argc, char **argv)
{
    int rank, size;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    if (size == 2 && argc == 3 && strcmp(argv[1], "latency") == 0)
        latency(rank, atof(argv[2]));
    else if (size == 2 && argc == 4 && strcmp(argv[1], "stream") == 0 && rank == 0)
        sender();
    else if (size == 2 && argc == 4 && strcmp(argv[1], "stream") == 0)
        receiver(atof(argv[2]), atof(argv[3]));
    else {
        fprintf(stderr, "pair: start 2 procs with latency SECONDS, or stream OMIT SECONDS\n");
        MPI_Abort(MPI_COMM_WORLD, 2);
    }
    return MPI_Finalize();
}
