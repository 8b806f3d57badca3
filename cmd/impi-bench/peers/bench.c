/* The loops of impi-bench, for other MPI implementations. They are the same as in worker.go,
 * collective.go, nonblocking.go and onesided.go, line by line, so that ratios compare libraries and
 * not loops.
 *
 * usage: bench BENCHMARK TARGET_SECONDS SIZE...
 * Rank 0 prints one JSON object per size. */
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { WINDOW = 64, DEPTH = 16, TAG = 1, CONTROL = 2, ROUNDS = 21 };

static int rank, size;
static const char *program;
static MPI_Comm other; /* rank 0 to its partner */
static char port[MPI_MAX_PORT_NAME];
static char *out, *in; /* a block for each rank */
static double *sums[2];
static MPI_Win win = MPI_WIN_NULL; /* of one-sided operations */
static int locked;                 /* all ranks of win are */
static int64_t words[3];           /* what is added or put, what was there, what is compared */
static int64_t steps;              /* of computation behind each start, in overlap */
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
    } else if (is(bench, "reduce_scatter")) {
        MPI_Reduce_scatter_block(sums[0], sums[1], len / 8, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
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

/* Work without memory and without MPI. */
static volatile double computed;
static void compute(int64_t n)
{
    double x = computed;
    for (int64_t i = 0; i < n; i++)
        x = x * 0.5 + 1;
    computed = x;
}

static double steps_per_second(void)
{
    enum { STEPS = 1 << 20 };
    double best = 1e9;
    for (int i = 0; i < 5; i++) {
        double t0 = MPI_Wtime();
        compute(STEPS);
        double t = MPI_Wtime() - t0;
        if (t < best)
            best = t;
    }
    return STEPS / best;
}

static void start(const char *bench, int len, int root, MPI_Request *r)
{
    if (is(bench, "ibarrier"))
        MPI_Ibarrier(MPI_COMM_WORLD, r);
    else if (is(bench, "ibcast"))
        MPI_Ibcast(out, len, MPI_BYTE, root, MPI_COMM_WORLD, r);
    else if (is(bench, "ireduce"))
        MPI_Ireduce(sums[0], sums[1], len / 8, MPI_DOUBLE, MPI_SUM, root, MPI_COMM_WORLD, r);
    else if (is(bench, "ialltoall"))
        MPI_Ialltoall(out, len, MPI_BYTE, in, len, MPI_BYTE, MPI_COMM_WORLD, r);
    else if (is(bench, "iallgather"))
        MPI_Iallgather(out, len, MPI_BYTE, in, len, MPI_BYTE, MPI_COMM_WORLD, r);
    else
        MPI_Iallreduce(sums[0], sums[1], len / 8, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD, r);
}

/* Starts an operation and waits for it, n times; the ranks take turns as root. */
static void nonblocking(const char *bench, int64_t n, int len)
{
    /* programs have communicated when they get here: some libraries prepare things then */
    static int synchronized;
    int root = 0;
    MPI_Request r;
    if (!synchronized)
        MPI_Barrier(MPI_COMM_WORLD);
    synchronized = 1;
    for (int64_t i = 0; i < n; i++) {
        start(bench, len, root, &r);
        if (steps > 0)
            compute(steps);
        MPI_Wait(&r, MPI_STATUS_IGNORE);
        root = root == size - 1 ? 0 : root + 1;
    }
    if (is(bench, "ibcast") || is(bench, "ireduce"))
        MPI_Barrier(MPI_COMM_WORLD);
}

/* Even ranks do an operation at their partners, odd ones wait. */
static void access_partner(const char *bench, int len)
{
    int peer = rank ^ 1;
    if (is(bench, "get"))
        MPI_Get(in, len, MPI_BYTE, peer, 0, len, MPI_BYTE, win);
    else if (is(bench, "accumulate"))
        MPI_Accumulate(sums[0], len / 8, MPI_DOUBLE, peer, 0, len / 8, MPI_DOUBLE, MPI_SUM, win);
    else if (is(bench, "fetch_and_op"))
        MPI_Fetch_and_op(&words[0], &words[1], MPI_INT64_T, peer, 0, MPI_SUM, win);
    else if (is(bench, "compare_and_swap"))
        MPI_Compare_and_swap(&words[0], &words[2], &words[1], MPI_INT64_T, peer, 0, win);
    else
        MPI_Put(out, len, MPI_BYTE, peer, 0, len, MPI_BYTE, win);
}

static int is_onesided(const char *bench)
{
    return is(bench, "put") || is(bench, "get") || is(bench, "accumulate") || is(bench, "fetch_and_op") || is(bench, "compare_and_swap") ||
           is(bench, "fence") || is(bench, "win_create");
}

/* The window that an operation needs, with all ranks locked for as long as it lives. */
static void need_window(const char *bench, int len)
{
    void *base;
    int lock = !is(bench, "fence");
    if (!is_onesided(bench) || is(bench, "win_create"))
        return;
    MPI_Win_allocate(len < 8 ? 8 : len, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &base, &win);
    locked = lock;
    if (lock)
        MPI_Win_lock_all(0, win);
}

static void free_window(void)
{
    if (win == MPI_WIN_NULL)
        return;
    if (locked)
        MPI_Win_unlock_all(win);
    MPI_Win_free(&win);
}

static void onesided(const char *bench, int64_t n, int len)
{
    if (is(bench, "win_create")) {
        for (int64_t i = 0; i < n; i++) {
            MPI_Win made;
            MPI_Win_create(words, sizeof words, sizeof words[0], MPI_INFO_NULL, MPI_COMM_WORLD, &made);
            MPI_Win_free(&made);
        }
        return;
    }
    if (is(bench, "fence")) {
        MPI_Win_fence(0, win);
        for (int64_t i = 0; i < n; i++) {
            if (rank % 2 == 0)
                access_partner("put", len);
            MPI_Win_fence(0, win);
        }
        return;
    }
    for (int64_t i = 0; rank % 2 == 0 && i < n; i++) {
        access_partner(bench, len);
        MPI_Win_flush(rank ^ 1, win);
    }
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
    } else if (bench[0] == 'i' || is(bench, "overlap"))
        nonblocking(bench, n, len);
    else if (is_onesided(bench))
        onesided(bench, n, len);
    else
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

/* Tells all ranks how many steps take so many seconds, as rank 0 says. */
static int64_t learn_compute(double seconds)
{
    MPI_Bcast(&seconds, 1, MPI_DOUBLE, 0, MPI_COMM_WORLD);
    return (int64_t)(seconds * steps_per_second());
}

static double part_of_round(int64_t n, int len)
{
    double t0 = MPI_Wtime();
    iterate("overlap", n, len);
    return MPI_Wtime() - t0;
}

static int in_order(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

/* The same number of iallreduces alone, and with computation between start and wait that takes as
 * long as they do, in turns. What the computation hides of the operation's time is the overlap, by
 * the medians of all rounds: another program that ran in one of them must not decide. */
static void overlap(int len, double target)
{
    double alone[ROUNDS], both[ROUNDS], once;
    int64_t n = 8, enough, computation;
    steps = 0;
    for (;; n *= 2) {
        once = part_of_round(agree(n), len);
        enough = agree(once < target / 10 ? 0 : (int64_t)((double)n * target / once / ROUNDS) + 1);
        if (enough != 0)
            break;
    }
    n = enough;
    for (int i = 0; i < ROUNDS; i++)
        alone[i] = part_of_round(n, len);
    qsort(alone, ROUNDS, sizeof *alone, in_order);
    once = alone[ROUNDS / 2];
    computation = learn_compute(once / (double)n);
    for (int i = 0; i < ROUNDS; i++) {
        steps = 0;
        alone[i] = part_of_round(n, len);
        steps = computation;
        both[i] = part_of_round(n, len);
    }
    steps = 0;
    qsort(alone, ROUNDS, sizeof *alone, in_order);
    qsort(both, ROUNDS, sizeof *both, in_order);
    if (rank == 0) {
        double t = alone[ROUNDS / 2], hidden = (t + once - both[ROUNDS / 2]) / t;
        printf("{\"size\":%d,\"iterations\":%lld,\"seconds\":%.9f,\"overlap\":%.6f}\n", len, (long long)n, both[ROUNDS / 2], hidden > 0 ? hidden : 0);
        fflush(stdout);
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
        sums[0] = numbers(len / 8 * size);
        sums[1] = numbers(len / 8 * size);
        need_window(argv[1], len);
        if (is(argv[1], "overlap"))
            overlap(len, atof(argv[2]));
        else
            measure(argv[1], len, atof(argv[2]));
        free_window();
        free(out);
        free(in);
        free(sums[0]);
        free(sums[1]);
    }
    MPI_Finalize();
    return 0;
}
