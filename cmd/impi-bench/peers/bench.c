/* The loops of impi-bench, for other MPI implementations. They are the same as
 * in worker.go and collective.go, line by line, so that ratios compare libraries and not loops.
 *
 * usage: bench BENCHMARK TARGET_SECONDS SIZE...
 * Rank 0 prints one JSON object per size. */
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { WINDOW = 64, DEPTH = 16, TAG = 1, CONTROL = 2 };

static int rank, size;
static const char *program;
static MPI_Comm other; /* rank 0 to its partner */
static char port[MPI_MAX_PORT_NAME];
static char *out, *in; /* a block for each rank */
static double *sums[2];
static MPI_Request reqs[WINDOW];
static MPI_Status statuses[WINDOW];

/* Half a round trip per iteration counts. Pairs of ranks do it at the same time. */
static void pingpong(int64_t n, int len)
{
    int peer = rank ^ 1;
    for (int64_t i = 0; i < n; i++) {
        if (rank % 2 == 0) {
            MPI_Send(out, len, MPI_BYTE, peer, TAG, MPI_COMM_WORLD);
            MPI_Recv(in, len, MPI_BYTE, peer, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        } else {
            MPI_Recv(in, len, MPI_BYTE, peer, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            MPI_Send(out, len, MPI_BYTE, peer, TAG, MPI_COMM_WORLD);
        }
    }
}

/* One direction, `depth` messages at a time, an answer after each such window. */
static void windows(int64_t n, int len, int depth)
{
    int peer = rank ^ 1;
    char token = 0;
    for (int64_t i = 0; i < n; i++) {
        if (rank % 2 == 0) {
            for (int k = 0; k < depth; k++)
                MPI_Isend(out, len, MPI_BYTE, peer, TAG, MPI_COMM_WORLD, &reqs[k]);
            MPI_Waitall(depth, reqs, statuses);
            MPI_Recv(&token, 1, MPI_BYTE, peer, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        } else {
            for (int k = 0; k < depth; k++)
                MPI_Irecv(in, len, MPI_BYTE, peer, TAG, MPI_COMM_WORLD, &reqs[k]);
            MPI_Waitall(depth, reqs, statuses);
            MPI_Send(&token, 1, MPI_BYTE, peer, TAG, MPI_COMM_WORLD);
        }
    }
}

static int is(const char *bench, const char *name) { return strcmp(bench, name) == 0; }

static void collective(const char *bench, int len, int root)
{
    MPI_Comm made;
    if (is(bench, "barrier")) {
        MPI_Barrier(MPI_COMM_WORLD);
    } else if (is(bench, "bcast")) {
        MPI_Bcast(out, len, MPI_BYTE, root, MPI_COMM_WORLD);
    } else if (is(bench, "reduce")) {
        MPI_Reduce(sums[0], sums[1], len / 8, MPI_DOUBLE, MPI_SUM, root, MPI_COMM_WORLD);
    } else if (is(bench, "allreduce")) {
        MPI_Allreduce(sums[0], sums[1], len / 8, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    } else if (is(bench, "alltoall")) {
        MPI_Alltoall(out, len, MPI_BYTE, in, len, MPI_BYTE, MPI_COMM_WORLD);
    } else if (is(bench, "gather")) {
        MPI_Gather(out, len, MPI_BYTE, in, len, MPI_BYTE, root, MPI_COMM_WORLD);
    } else if (is(bench, "scatter")) {
        MPI_Scatter(out, len, MPI_BYTE, in, len, MPI_BYTE, root, MPI_COMM_WORLD);
    } else if (is(bench, "allgather")) {
        MPI_Allgather(out, len, MPI_BYTE, in, len, MPI_BYTE, MPI_COMM_WORLD);
    } else if (is(bench, "comm_dup")) {
        MPI_Comm_dup(MPI_COMM_WORLD, &made);
        MPI_Comm_free(&made);
    } else {
        MPI_Comm_split(MPI_COMM_WORLD, rank % 2, rank, &made);
        MPI_Comm_free(&made);
    }
}

/* Each rank is the root in turn, so that none runs far ahead of the others, and a
 * barrier follows the last operation that has one. */
static void collectives(const char *bench, int64_t n, int len)
{
    int root = 0;
    for (int64_t i = 0; i < n; i++) {
        collective(bench, len, root);
        root = root == size - 1 ? 0 : root + 1;
    }
    if (is(bench, "bcast") || is(bench, "reduce") || is(bench, "gather") || is(bench, "scatter"))
        MPI_Barrier(MPI_COMM_WORLD);
}

/* A proc that rank 0 has spawned, a world of its own; an empty port means that it is
 * to go. */
static void partner(MPI_Comm parent)
{
    char port[MPI_MAX_PORT_NAME];
    int64_t n = 1;
    int len;
    MPI_Comm made;
    MPI_Status status;
    MPI_Recv(port, sizeof port, MPI_CHAR, 0, TAG, parent, &status);
    MPI_Get_count(&status, MPI_CHAR, &len);
    while (len > 0 && n > 0) {
        MPI_Recv(&n, 1, MPI_INT64_T, 0, CONTROL, parent, MPI_STATUS_IGNORE);
        for (int64_t i = 0; i < n; i++) {
            MPI_Comm_connect(port, MPI_INFO_NULL, 0, MPI_COMM_SELF, &made);
            MPI_Comm_disconnect(&made);
        }
    }
    MPI_Comm_disconnect(&parent);
}

static MPI_Comm spawned(int procs)
{
    static char word[] = "partner";
    char *args[] = {word, NULL};
    MPI_Comm made;
    MPI_Comm_spawn(program, args, procs, MPI_INFO_NULL, 0, MPI_COMM_SELF, &made, MPI_ERRCODES_IGNORE);
    return made;
}

static void take_partner(void)
{
    MPI_Open_port(MPI_INFO_NULL, port);
    other = spawned(1);
    MPI_Send(port, (int)strlen(port) + 1, MPI_CHAR, 0, TAG, other);
}

static void leave_partner(void)
{
    int64_t never = 0;
    MPI_Send(&never, 1, MPI_INT64_T, 0, CONTROL, other);
    MPI_Comm_disconnect(&other);
    MPI_Close_port(port);
}

static void connects(int64_t n)
{
    MPI_Comm made;
    MPI_Send(&n, 1, MPI_INT64_T, 0, CONTROL, other);
    for (int64_t i = 0; i < n; i++) {
        MPI_Comm_accept(port, MPI_INFO_NULL, 0, MPI_COMM_SELF, &made);
        MPI_Comm_disconnect(&made);
    }
}

static void spawns(int64_t n, int procs)
{
    for (int64_t i = 0; i < n; i++) {
        MPI_Comm made = spawned(procs);
        for (int r = 0; r < procs; r++)
            MPI_Send(NULL, 0, MPI_CHAR, r, TAG, made);
        MPI_Comm_disconnect(&made);
    }
}

static void iterate(const char *bench, int64_t n, int len)
{
    if (is(bench, "pingpong"))
        pingpong(n, len);
    else if (is(bench, "stream"))
        windows(n, len, DEPTH);
    else if (is(bench, "rate"))
        windows(n, len, WINDOW);
    else if (is(bench, "connect") || is(bench, "spawn")) {
        if (rank == 0 && is(bench, "spawn"))
            spawns(n, len);
        else if (rank == 0)
            connects(n);
    } else
        collectives(bench, n, len);
}

/* Rank 0 tells the others how many iterations come next. */
static int64_t agree(int64_t n)
{
    if (rank == 0) {
        for (int r = 1; r < size; r++)
            MPI_Send(&n, 1, MPI_INT64_T, r, CONTROL, MPI_COMM_WORLD);
    } else {
        MPI_Recv(&n, 1, MPI_INT64_T, 0, CONTROL, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    }
    return n;
}

/* Iterations are doubled until they take a tenth of the target; then as many
 * as fill the target are measured. */
static void measure(const char *bench, int len, double target)
{
    int64_t n = 8;
    int final = 0;
    if (rank == 0 && is(bench, "connect"))
        take_partner();
    for (;;) {
        n = agree(n);
        if (n == 0)
            return;
        double t0 = MPI_Wtime();
        iterate(bench, n, len);
        double t = MPI_Wtime() - t0;
        if (rank != 0)
            continue;
        if (final) {
            printf("{\"size\":%d,\"iterations\":%lld,\"seconds\":%.9f}\n", len, (long long)n, t);
            fflush(stdout);
            if (is(bench, "connect"))
                leave_partner();
            n = 0;
        } else if (t < target / 10) {
            n *= 2;
        } else {
            n = (int64_t)(n * target / t) + 1;
            final = 1;
        }
    }
}

/* A program that does nothing; rank 0 says how much memory that took. */
static void exist(void)
{
    long pages = 0, resident = 0;
    FILE *f = fopen("/proc/self/statm", "r");
    if (f != NULL) {
        if (fscanf(f, "%ld %ld", &pages, &resident) != 2)
            resident = 0;
        fclose(f);
    }
    if (rank == 0)
        printf("{\"size\":%d,\"iterations\":1,\"seconds\":1,\"resident\":%ld}\n", size, resident * sysconf(_SC_PAGESIZE));
}

/* Memory that was written to: pages that never were are all one page of zeroes. */
static char *filled(size_t n)
{
    char *p = malloc(n + 1);
    memset(p, 1, n + 1);
    return p;
}

static double *numbers(int n)
{
    double *v = malloc((n + 1) * sizeof *v);
    for (int i = 0; i < n; i++)
        v[i] = i;
    return v;
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Comm parent;
    MPI_Comm_get_parent(&parent);
    if (parent != MPI_COMM_NULL) {
        partner(parent);
        MPI_Finalize();
        return 0;
    }
    program = argv[0];
    if (argc < 4 || size < 2) {
        fprintf(stderr, "usage: bench BENCHMARK TARGET_SECONDS SIZE... (at least 2 ranks)\n");
        MPI_Abort(MPI_COMM_WORLD, 2);
    }
    if (strcmp(argv[1], "start") == 0 || strcmp(argv[1], "memory") == 0) {
        exist();
        argc = 0;
    }
    for (int i = 3; i < argc; i++) {
        int len = atoi(argv[i]);
        out = filled((size_t)len * size);
        in = filled((size_t)len * size);
        sums[0] = numbers(len / 8);
        sums[1] = numbers(len / 8);
        measure(argv[1], len, atof(argv[2]));
        free(out);
        free(in);
        free(sums[0]);
        free(sums[1]);
    }
    MPI_Finalize();
    return 0;
}
