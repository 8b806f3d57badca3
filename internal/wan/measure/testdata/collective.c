/* The program of package collective for other MPIs: PAUSE TIMES OPERATION:BYTES... */
#include <mpi.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { UNMEASURED = 3, MOST = 1000 };

static uint64_t now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_REALTIME, &t);
    return (uint64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static void once(const char *name, int bytes, uint64_t compute, uint64_t *one, uint64_t *all, uint64_t *other)
{
    int n = bytes / 8;
    if (strcmp(name, "barrier") == 0)
        MPI_Barrier(MPI_COMM_WORLD);
    else if (strcmp(name, "bcast") == 0)
        MPI_Bcast(one, n, MPI_UINT64_T, 0, MPI_COMM_WORLD);
    else if (strcmp(name, "allreduce") == 0)
        MPI_Allreduce(one, all, n, MPI_UINT64_T, MPI_SUM, MPI_COMM_WORLD);
    else if (strcmp(name, "iallreduce") == 0) {
        MPI_Request q;
        uint64_t begun = now();
        MPI_Iallreduce(one, all, bytes / 16, MPI_C_DOUBLE_COMPLEX, MPI_PROD, MPI_COMM_WORLD, &q);
        while (now() - begun < compute)
            sched_yield(); /* there are more procs than cores */
        MPI_Wait(&q, MPI_STATUS_IGNORE);
    } else if (strcmp(name, "allgather") == 0)
        MPI_Allgather(one, n, MPI_UINT64_T, all, n, MPI_UINT64_T, MPI_COMM_WORLD);
    else if (strcmp(name, "alltoall") == 0)
        MPI_Alltoall(other, n, MPI_UINT64_T, all, n, MPI_UINT64_T, MPI_COMM_WORLD);
    else {
        fprintf(stderr, "collective: there is no operation %s\n", name);
        MPI_Abort(MPI_COMM_WORLD, 2);
    }
}

static double measure(uint64_t pause, int times, const char *name, int bytes)
{
    static double took[MOST];
    int rank, size;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    uint64_t *one = calloc(bytes + 8, 1), *all = calloc((size_t)bytes + 8, size), *other = calloc((size_t)bytes + 8, size);
    uint64_t last = 0;
    int n = 0;
    for (int i = 0; i <= UNMEASURED + times; i++) {
        uint64_t mine[2] = { now(), last }, latest[2];
        MPI_Allreduce(mine, latest, 2, MPI_UINT64_T, MPI_MAX, MPI_COMM_WORLD);
        if (i > UNMEASURED)
            took[n++] = latest[1] / 1e6;
        if (i == UNMEASURED + times)
            break;
        uint64_t begin = latest[0] + pause;
        struct timespec t = { begin / 1000000000, begin % 1000000000 };
        while (now() < begin) /* a signal may end it */
            clock_nanosleep(CLOCK_REALTIME, TIMER_ABSTIME, &t, NULL);
        once(name, bytes, pause / 10 * 3, one, all, other);
        last = now() - begin;
    }
    free(one);
    free(all);
    free(other);
    qsort(took, n, sizeof *took, compare);
    return took[n / 2];
}

int main(int argc, char **argv)
{
    int rank;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    int times = argc > 3 ? atoi(argv[2]) : 0;
    if (times < 1 || times >= MOST) {
        fprintf(stderr, "collective: write PAUSE TIMES OPERATION:BYTES...\n");
        MPI_Abort(MPI_COMM_WORLD, 2);
    }
    for (int i = 3; i < argc; i++) {
        char name[64] = "";
        int bytes = 0;
        sscanf(argv[i], "%63[^:]:%d", name, &bytes);
        double ms = measure(atof(argv[1]) * 1e9, times, name, bytes);
        if (rank == 0) {
            printf("collective: %s %d %g ms\n", name, bytes, ms);
            fflush(stdout);
        }
    }
    if (rank == 0) {
        printf("collective: end\n");
        fflush(stdout);
    }
    return MPI_Finalize();
}
