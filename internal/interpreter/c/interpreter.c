/*
 * The program on the side of an implementation under test, for any MPI:
 *
 *     mpicc -o interpreter interpreter.c
 *
 * It needs nothing but MPI-1 and C89 with long long. The file doc.go beside this
 * folder says which commands there are and what they answer. The program in Go that
 * comes with impi-conform does the same.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <mpi.h>

#if MPI_VERSION >= 2 /* the old names went with MPI-3 */
#define SET_ERRHANDLER MPI_Comm_set_errhandler
#define GET_ATTR MPI_Comm_get_attr
#else
#define SET_ERRHANDLER MPI_Errhandler_set
#define GET_ATTR MPI_Attr_get
#endif

#define TAG_COMMAND 32001
#define TAG_REPLY 32002
#define MAX_TEXT 8192
#define MAX_ARGS 32
#define MAX_COMMS 64
#define MAX_REQUESTS 4096
#define MAX_COUNTS 256

typedef long long num;
typedef unsigned long long unum;

/* Types of elements. */
enum kind { BYTE, CHARS, SHORT, USHORT, INT, UINT, LONG, ULONG, LLONG, FLOAT, DOUBLE, KINDS };

static const char *const names[KINDS] = {
    "byte", "char", "short", "ushort", "int", "uint", "long", "ulong", "llong", "float", "double"};
static const size_t sizes[KINDS] = {1, 1, sizeof(short), sizeof(short), sizeof(int), sizeof(int),
    sizeof(long), sizeof(long), sizeof(long long), sizeof(float), sizeof(double)};
static const num masks[KINDS] = {0xff, 0x7f, 0x7fff, 0x7fff, -1, -1, -1, -1, -1, 0x7fff, -1};

static MPI_Datatype type_of(enum kind k) {
    switch (k) {
    case CHARS: return MPI_CHAR;
    case SHORT: return MPI_SHORT;
    case USHORT: return MPI_UNSIGNED_SHORT;
    case INT: return MPI_INT;
    case UINT: return MPI_UNSIGNED;
    case LONG: return MPI_LONG;
    case ULONG: return MPI_UNSIGNED_LONG;
    case LLONG: return MPI_LONG_LONG_INT;
    case FLOAT: return MPI_FLOAT;
    case DOUBLE: return MPI_DOUBLE;
    default: return MPI_BYTE;
    }
}

/* A buffer of n elements. */
struct buffer {
    enum kind kind;
    int n;
    void *mem;
};

static num get(const struct buffer *b, int i) {
    switch (b->kind) {
    case SHORT: return ((short *)b->mem)[i];
    case USHORT: return ((unsigned short *)b->mem)[i];
    case INT: return ((int *)b->mem)[i];
    case UINT: return ((unsigned *)b->mem)[i];
    case LONG: return ((long *)b->mem)[i];
    case ULONG: return (num)((unsigned long *)b->mem)[i];
    case LLONG: return ((long long *)b->mem)[i];
    case FLOAT: return (num)((float *)b->mem)[i];
    case DOUBLE: return (num)((double *)b->mem)[i];
    default: return ((unsigned char *)b->mem)[i];
    }
}

static void set(struct buffer *b, int i, num v) {
    switch (b->kind) {
    case SHORT: ((short *)b->mem)[i] = (short)v; break;
    case USHORT: ((unsigned short *)b->mem)[i] = (unsigned short)v; break;
    case INT: ((int *)b->mem)[i] = (int)v; break;
    case UINT: ((unsigned *)b->mem)[i] = (unsigned)v; break;
    case LONG: ((long *)b->mem)[i] = (long)v; break;
    case ULONG: ((unsigned long *)b->mem)[i] = (unsigned long)v; break;
    case LLONG: ((long long *)b->mem)[i] = v; break;
    case FLOAT: ((float *)b->mem)[i] = (float)v; break;
    case DOUBLE: ((double *)b->mem)[i] = (double)v; break;
    default: ((unsigned char *)b->mem)[i] = (unsigned char)v; break;
    }
}

/* The command that is being done. */
static char *arg_names[MAX_ARGS], *arg_values[MAX_ARGS];
static int args;
static char word[64];
static char out[MAX_TEXT];
static const char *wrong; /* an argument that is missing or impossible */

static const char *arg(const char *name) {
    int i;
    for (i = 0; i < args; i++)
        if (strcmp(arg_names[i], name) == 0)
            return arg_values[i];
    return NULL;
}

static num number(const char *name, num otherwise) {
    const char *s = arg(name);
    char *end;
    num v;
    if (s == NULL)
        return otherwise;
    v = strtoll(s, &end, 10);
    if (end == s || *end != 0)
        wrong = name;
    return v;
}

static int wild(const char *name, int anything) {
    const char *s = arg(name);
    return s != NULL && strcmp(s, "any") == 0 ? anything : (int)number(name, 0);
}

/* list reads numbers between commas and gives their count. */
static int list(const char *name, int v[MAX_COUNTS]) {
    const char *s = arg(name);
    int n = 0;
    while (s != NULL && *s != 0 && n < MAX_COUNTS) {
        v[n++] = atoi(s);
        s = strchr(s, ',');
        if (s != NULL)
            s++;
    }
    return n;
}

static int sum(const int *v, int n) {
    int s = 0;
    while (n > 0)
        s += v[--n];
    return s;
}

static void offsets(const int *counts, int *v, int n) {
    int i;
    for (i = 0; i < n; i++)
        v[i] = i == 0 ? 0 : v[i - 1] + counts[i - 1];
}

static struct buffer buffer(int n) {
    struct buffer b;
    const char *name = arg("type");
    int k;
    b.kind = BYTE;
    b.n = n < 0 ? 0 : n;
    if (n < 0)
        wrong = "n";
    if (name != NULL) {
        for (k = 0; k < KINDS && strcmp(names[k], name) != 0; k++)
            ;
        if (k == KINDS)
            wrong = "type";
        else
            b.kind = (enum kind)k;
    }
    b.mem = calloc((size_t)b.n + 1, sizes[b.kind]);
    if (b.mem == NULL) {
        fprintf(stderr, "interpreter: no memory for %d elements\n", n);
        exit(1);
    }
    return b;
}

static int is(const char *s) { return strcmp(word, s) == 0; }

static int concat_wanted(void) {
    const char *op = arg("op");
    return op != NULL && strcmp(op, "concat") == 0;
}

/* outgoing is what a proc sends: the pattern of seed. */
static struct buffer outgoing(int n) {
    struct buffer b = buffer(n);
    num seed = number("seed", 0);
    int i;
    for (i = 0; i < b.n; i++) {
        if (concat_wanted())
            set(&b, i, i % 2 == 0 ? 10 : seed);
        else
            set(&b, i, (seed + 7 * (num)i + i / 251) & masks[b.kind]);
    }
    return b;
}

static void say(const char *text) { strncat(out, text, sizeof out - strlen(out) - 1); }

static void say_num(const char *name, num v) {
    char s[96];
    sprintf(s, " %s=%lld", name, v);
    say(s);
}

/* tell describes the first n elements that were received. */
static void tell(const struct buffer *b, int n) {
    unum h = 14695981039346656037ULL;
    char s[64];
    int i, shift;
    if (n > b->n)
        n = b->n;
    for (i = 0; i < n; i++) {
        unum v = (unum)get(b, i);
        for (shift = 56; shift >= 0; shift -= 8)
            h = (h ^ ((v >> shift) & 0xff)) * 1099511628211ULL;
    }
    sprintf(s, " hash=%016llx first=", h);
    say(s);
    for (i = 0; i < n && i < 4; i++) {
        sprintf(s, "%s%lld", i == 0 ? "" : ",", get(b, i));
        say(s);
    }
}

/* received tells a status and the elements. */
static void received(MPI_Status *st, const struct buffer *b) {
    int n = 0;
    MPI_Get_count(st, type_of(b->kind), &n);
    say_num("source", st->MPI_SOURCE);
    say_num("tag", st->MPI_TAG);
    say_num("count", n);
    tell(b, n);
}

/* Communicators and requests by the tester's numbers. */
static MPI_Comm comms[MAX_COMMS];
static struct {
    MPI_Request q;
    struct buffer b;
    int used, receives;
} requests[MAX_REQUESTS];

static MPI_Comm comm_of(const char *name) {
    num i = number(name, 0);
    if (i < 0 || i >= MAX_COMMS || comms[i] == MPI_COMM_NULL) {
        wrong = name;
        return MPI_COMM_WORLD;
    }
    return comms[i];
}

static int request_number(void) {
    num i = number("req", 0);
    if (i < 0 || i >= MAX_REQUESTS) {
        wrong = "req";
        return 0;
    }
    return (int)i;
}

#define UNKNOWN (-1)

static int ended;

static int ordinary(void) {
    int size = 0, rank = 0, flag = 0, *tag_ub = NULL, err;
    if (is("ping"))
        return MPI_SUCCESS;
    if (is("finalize")) {
        ended = 1;
        return MPI_SUCCESS;
    }
    if (is("exit"))
        exit((int)number("code", 0));
    if (is("abort"))
        return MPI_Abort(MPI_COMM_WORLD, (int)number("code", 1));
    if (!is("info"))
        return UNKNOWN;
    MPI_Comm_rank(comm_of("comm"), &rank);
    MPI_Comm_size(comm_of("comm"), &size);
    err = GET_ATTR(MPI_COMM_WORLD, MPI_TAG_UB, &tag_ub, &flag);
    say_num("rank", rank);
    say_num("size", size);
    say_num("tagub", flag ? *tag_ub : -1);
    return err;
}

static int sending(void) {
    MPI_Comm c = comm_of("comm");
    int dst = (int)number("dst", 0), tag = (int)number("tag", 0), i, err;
    struct buffer b;
    MPI_Datatype t;
    if (strstr(word, "send") == NULL || is("sendrecv"))
        return UNKNOWN;
    i = request_number();
    b = outgoing((int)number("n", 0));
    t = type_of(b.kind);
    if (word[0] == 'i') {
        requests[i].b = b;
        requests[i].receives = 0;
        requests[i].used = 1;
    }
    if (is("send"))
        err = MPI_Send(b.mem, b.n, t, dst, tag, c);
    else if (is("ssend"))
        err = MPI_Ssend(b.mem, b.n, t, dst, tag, c);
    else if (is("bsend"))
        err = MPI_Bsend(b.mem, b.n, t, dst, tag, c);
    else if (is("rsend"))
        err = MPI_Rsend(b.mem, b.n, t, dst, tag, c);
    else if (is("isend"))
        err = MPI_Isend(b.mem, b.n, t, dst, tag, c, &requests[i].q);
    else if (is("issend"))
        err = MPI_Issend(b.mem, b.n, t, dst, tag, c, &requests[i].q);
    else if (is("ibsend"))
        err = MPI_Ibsend(b.mem, b.n, t, dst, tag, c, &requests[i].q);
    else if (is("irsend"))
        err = MPI_Irsend(b.mem, b.n, t, dst, tag, c, &requests[i].q);
    else
        err = UNKNOWN;
    if (word[0] != 'i')
        free(b.mem);
    return err;
}

static int receiving(void) {
    MPI_Comm c = comm_of("comm");
    int src = wild("src", MPI_ANY_SOURCE), tag = wild("tag", MPI_ANY_TAG), i, n, err, found = 1;
    struct buffer b;
    MPI_Status st;
    if (is("recv")) {
        b = buffer((int)number("n", 0));
        err = MPI_Recv(b.mem, b.n, type_of(b.kind), src, tag, c, &st);
        if (err == MPI_SUCCESS)
            received(&st, &b);
        free(b.mem);
        return err;
    }
    if (is("irecv")) {
        i = request_number();
        requests[i].b = buffer((int)number("n", 0));
        requests[i].receives = requests[i].used = 1;
        return MPI_Irecv(requests[i].b.mem, requests[i].b.n, type_of(requests[i].b.kind), src, tag, c, &requests[i].q);
    }
    if (!is("probe") && !is("iprobe"))
        return UNKNOWN;
    if (is("probe"))
        err = MPI_Probe(src, tag, c, &st);
    else
        err = MPI_Iprobe(src, tag, c, &found, &st);
    if (err != MPI_SUCCESS)
        return err;
    say_num("found", found ? 1 : 0);
    if (found) {
        b = buffer(0);
        MPI_Get_count(&st, type_of(b.kind), &n);
        free(b.mem);
        say_num("source", st.MPI_SOURCE);
        say_num("tag", st.MPI_TAG);
        say_num("count", n);
    }
    return MPI_SUCCESS;
}

static int requesting(void) {
    int i, err, done = 1, cancelled = 0;
    MPI_Status st;
    if (!is("wait") && !is("test") && !is("cancel"))
        return UNKNOWN;
    i = request_number();
    if (!requests[i].used) {
        wrong = "req";
        return MPI_SUCCESS;
    }
    if (is("cancel"))
        return MPI_Cancel(&requests[i].q);
    if (is("test")) {
        err = MPI_Test(&requests[i].q, &done, &st);
        if (err != MPI_SUCCESS)
            return err;
        say_num("done", done ? 1 : 0);
        if (!done)
            return MPI_SUCCESS;
    } else {
        err = MPI_Wait(&requests[i].q, &st);
    }
    requests[i].used = 0;
    if (err == MPI_SUCCESS) {
        MPI_Test_cancelled(&st, &cancelled);
        say_num("cancelled", cancelled ? 1 : 0);
        if (requests[i].receives && !cancelled)
            received(&st, &requests[i].b);
    }
    free(requests[i].b.mem);
    return err;
}

static int exchanging(void) {
    struct buffer b, r;
    MPI_Status st;
    int err;
    if (!is("sendrecv"))
        return UNKNOWN;
    b = outgoing((int)number("n", 0));
    r = buffer((int)number("rn", 0));
    err = MPI_Sendrecv(b.mem, b.n, type_of(b.kind), (int)number("dst", 0), (int)number("stag", 0),
        r.mem, r.n, type_of(r.kind), wild("src", MPI_ANY_SOURCE), wild("rtag", MPI_ANY_TAG), comm_of("comm"), &st);
    if (err == MPI_SUCCESS)
        received(&st, &r);
    free(b.mem);
    free(r.mem);
    return err;
}

/* concat is associative and not commutative: (a,b) concat (c,d) = (ac, bc+d). */
static void concat(void *in, void *inout, int *n, MPI_Datatype *t) {
    int *x = in, *y = inout, i;
    (void)t;
    for (i = 0; i + 1 < *n; i += 2) {
        y[i + 1] += x[i + 1] * y[i];
        y[i] *= x[i];
    }
}

static MPI_Op op_concat;

static MPI_Op op_of(void) {
    static const char *const op_names[] = {"sum", "prod", "max", "min", "band", "bor", "bxor", "land", "lor", "lxor", "concat"};
    MPI_Op all[11];
    const char *s = arg("op");
    int i;
    all[0] = MPI_SUM, all[1] = MPI_PROD, all[2] = MPI_MAX, all[3] = MPI_MIN, all[4] = MPI_BAND, all[5] = MPI_BOR;
    all[6] = MPI_BXOR, all[7] = MPI_LAND, all[8] = MPI_LOR, all[9] = MPI_LXOR, all[10] = op_concat;
    for (i = 0; s != NULL && i < 11; i++)
        if (strcmp(op_names[i], s) == 0)
            return all[i];
    wrong = "op";
    return MPI_SUM;
}

static int reducing(void) {
    MPI_Comm c = comm_of("comm");
    int counts[MAX_COUNTS], parts = list("counts", counts), root = (int)number("root", 0), rank = 0, n, err;
    struct buffer b, r;
    MPI_Datatype t;
    MPI_Op op;
    if (!is("reduce") && !is("allreduce") && !is("scan") && !is("reduce_scatter"))
        return UNKNOWN;
    op = op_of();
    MPI_Comm_rank(c, &rank);
    n = is("reduce_scatter") ? sum(counts, parts) : (int)number("n", 0);
    b = outgoing(n);
    r = buffer(is("reduce_scatter") && rank < parts ? counts[rank] : n);
    t = type_of(b.kind);
    if (wrong != NULL)
        err = MPI_SUCCESS;
    else if (is("reduce"))
        err = MPI_Reduce(b.mem, r.mem, n, t, op, root, c);
    else if (is("allreduce"))
        err = MPI_Allreduce(b.mem, r.mem, n, t, op, c);
    else if (is("scan"))
        err = MPI_Scan(b.mem, r.mem, n, t, op, c);
    else
        err = MPI_Reduce_scatter(b.mem, r.mem, counts, t, op, c);
    if (err == MPI_SUCCESS && (!is("reduce") || rank == root))
        tell(&r, r.n);
    free(b.mem);
    free(r.mem);
    return err;
}

static int equal_blocks(void) {
    MPI_Comm c = comm_of("comm");
    int n = (int)number("n", 0), root = (int)number("root", 0), rank = 0, size = 0, err;
    struct buffer b, r;
    MPI_Datatype t;
    if (!is("gather") && !is("scatter") && !is("allgather") && !is("alltoall"))
        return UNKNOWN;
    MPI_Comm_rank(c, &rank);
    MPI_Comm_size(c, &size);
    b = outgoing(is("scatter") || is("alltoall") ? n * size : n);
    r = buffer(is("scatter") ? n : n * size);
    t = type_of(b.kind);
    if (is("gather"))
        err = MPI_Gather(b.mem, n, t, r.mem, n, t, root, c);
    else if (is("scatter"))
        err = MPI_Scatter(b.mem, n, t, r.mem, n, t, root, c);
    else if (is("allgather"))
        err = MPI_Allgather(b.mem, n, t, r.mem, n, t, c);
    else
        err = MPI_Alltoall(b.mem, n, t, r.mem, n, t, c);
    if (err == MPI_SUCCESS && (!is("gather") || rank == root))
        tell(&r, r.n);
    free(b.mem);
    free(r.mem);
    return err;
}

static int unequal_blocks(void) {
    MPI_Comm c = comm_of("comm");
    int counts[MAX_COUNTS], rcounts[MAX_COUNTS], at[MAX_COUNTS], rat[MAX_COUNTS];
    int parts = list("counts", counts), rparts = list("rcounts", rcounts), root = (int)number("root", 0), rank = 0, size = 0, err;
    struct buffer b, r;
    MPI_Datatype t;
    if (!is("gatherv") && !is("scatterv") && !is("allgatherv") && !is("alltoallv"))
        return UNKNOWN;
    MPI_Comm_rank(c, &rank);
    MPI_Comm_size(c, &size);
    if (parts != size || (is("alltoallv") && rparts != size)) {
        wrong = "counts";
        return MPI_SUCCESS;
    }
    offsets(counts, at, parts);
    offsets(rcounts, rat, rparts);
    b = outgoing(is("scatterv") || is("alltoallv") ? sum(counts, parts) : counts[rank]);
    r = buffer(is("alltoallv") ? sum(rcounts, rparts) : is("scatterv") ? counts[rank] : sum(counts, parts));
    t = type_of(b.kind);
    if (is("gatherv"))
        err = MPI_Gatherv(b.mem, b.n, t, r.mem, counts, at, t, root, c);
    else if (is("scatterv"))
        err = MPI_Scatterv(b.mem, counts, at, t, r.mem, r.n, t, root, c);
    else if (is("allgatherv"))
        err = MPI_Allgatherv(b.mem, b.n, t, r.mem, counts, at, t, c);
    else
        err = MPI_Alltoallv(b.mem, counts, at, t, r.mem, rcounts, rat, t, c);
    if (err == MPI_SUCCESS && (!is("gatherv") || rank == root))
        tell(&r, r.n);
    free(b.mem);
    free(r.mem);
    return err;
}

static int collective(void) {
    MPI_Comm c = comm_of("comm");
    int root = (int)number("root", 0), rank = 0, err;
    struct buffer b;
    if (is("barrier"))
        return MPI_Barrier(c);
    if (!is("bcast"))
        return UNKNOWN;
    MPI_Comm_rank(c, &rank);
    b = outgoing((int)number("n", 0));
    if (rank != root)
        memset(b.mem, 0, sizes[b.kind] * (size_t)b.n);
    err = MPI_Bcast(b.mem, b.n, type_of(b.kind), root, c);
    if (err == MPI_SUCCESS)
        tell(&b, b.n);
    free(b.mem);
    return err;
}

static int create(MPI_Comm c, MPI_Comm *made) {
    int ranks[MAX_COUNTS], n = list("ranks", ranks), err;
    MPI_Group g, part;
    err = MPI_Comm_group(c, &g);
    if (err == MPI_SUCCESS)
        err = MPI_Group_incl(g, n, ranks, &part);
    if (err == MPI_SUCCESS)
        err = MPI_Comm_create(c, part, made);
    return err;
}

static int communicator(void) {
    MPI_Comm c = comm_of("comm"), made = MPI_COMM_NULL;
    num id = number("new", 0);
    int rank = 0, size = 0, err;
    if (is("dup"))
        err = MPI_Comm_dup(c, &made);
    else if (is("split"))
        err = MPI_Comm_split(c, number("color", 0) < 0 ? MPI_UNDEFINED : (int)number("color", 0), (int)number("key", 0), &made);
    else if (is("create"))
        err = create(c, &made);
    else if (is("intercomm"))
        err = MPI_Intercomm_create(c, (int)number("leader", 0), comm_of("peer"), (int)number("remote", 0), (int)number("tag", 0), &made);
    else if (is("merge"))
        err = MPI_Intercomm_merge(c, number("high", 0) != 0, &made);
    else if (is("free")) {
        id = number("comm", 0);
        return MPI_Comm_free(&comms[id]);
    } else
        return UNKNOWN;
    if (err != MPI_SUCCESS)
        return err;
    if (made == MPI_COMM_NULL) {
        say_num("member", 0);
        return MPI_SUCCESS;
    }
    if (id <= 0 || id >= MAX_COMMS)
        wrong = "new";
    else
        comms[id] = made;
    MPI_Comm_rank(made, &rank);
    MPI_Comm_size(made, &size);
    say_num("member", 1);
    say_num("rank", rank);
    say_num("size", size);
    return MPI_SUCCESS;
}

/* parse cuts a command into its word and its arguments. */
static void parse(char *text) {
    char *s = strtok(text, " "), *eq;
    word[0] = 0;
    args = 0;
    wrong = NULL;
    if (s != NULL)
        strncat(word, s, sizeof word - 1);
    while ((s = strtok(NULL, " ")) != NULL && args < MAX_ARGS) {
        eq = strchr(s, '=');
        if (eq == NULL)
            continue;
        *eq = 0;
        arg_names[args] = s;
        arg_values[args++] = eq + 1;
    }
}

/* command does one and leaves the answer in out. */
static void command(char *text) {
    static int (*const groups[])(void) = {
        ordinary, sending, receiving, requesting, exchanging, collective, reducing, equal_blocks, unequal_blocks, communicator};
    char why[MPI_MAX_ERROR_STRING + 1];
    int err = UNKNOWN, class = 0, n = 0;
    size_t i;
    parse(text);
    strcpy(out, "ok");
    for (i = 0; i < sizeof groups / sizeof groups[0] && err == UNKNOWN; i++) {
        wrong = NULL; /* a group may have looked at arguments of a command that is not its own */
        err = groups[i]();
    }
    if (err == MPI_SUCCESS && wrong == NULL)
        return;
    if (err == UNKNOWN) {
        sprintf(out, "error class=0 no such command: %s", word);
    } else if (wrong != NULL) {
        sprintf(out, "error class=0 wrong argument: %s", wrong);
    } else {
        MPI_Error_class(err, &class);
        why[0] = 0;
        MPI_Error_string(err, why, &n);
        sprintf(out, "error class=%d %.1000s", class, why);
    }
}

int main(int argc, char **argv) {
    static char text[MAX_TEXT + 1];
    static char attached[1 << 20];
    MPI_Status st;
    int i, n;
    MPI_Init(&argc, &argv);
    for (i = 1; i < MAX_COMMS; i++)
        comms[i] = MPI_COMM_NULL;
    comms[0] = MPI_COMM_WORLD;
    SET_ERRHANDLER(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Op_create(concat, 0, &op_concat);
    MPI_Buffer_attach(attached, sizeof attached);
    while (!ended) {
        if (MPI_Recv(text, MAX_TEXT, MPI_BYTE, MPI_ANY_SOURCE, TAG_COMMAND, MPI_COMM_WORLD, &st) != MPI_SUCCESS)
            MPI_Abort(MPI_COMM_WORLD, 1);
        MPI_Get_count(&st, MPI_BYTE, &n);
        text[n] = 0;
        command(text);
        if (MPI_Send(out, (int)strlen(out), MPI_BYTE, st.MPI_SOURCE, TAG_REPLY, MPI_COMM_WORLD) != MPI_SUCCESS)
            MPI_Abort(MPI_COMM_WORLD, 1);
    }
    return MPI_Finalize();
}
