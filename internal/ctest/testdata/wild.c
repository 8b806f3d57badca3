/*
 * Handles that MPI never gave, or not for this, or that are freed: one wrong argument in a
 * call whose others are right. They are tried cold, and warm: after thousands of good calls
 * and after communicators were made, freed and made again, when the library knows
 * communicators, requests and memory by heart. Each call fails with the class of its kind of
 * handle, and sends, receives and ends nothing.
 */
#include "test.h"

enum { COMMS = 5, ROUNDS = 1000, NEVER = 0, WAITING = 0, LATER = 1, GOOD = 2 };
enum { COMM, DATATYPE, OP, REQUEST, INFO, ERRHANDLER, GROUP, WIN, FILE_, SESSION, MESSAGE, KINDS };

static MPI_Comm comms[COMMS];
static int left, right, waits, data[4], into[4];

#ifdef MPI_ABI_VERSION
#include <stdint.h>

/* What is alive and what was freed, by kind. */
static struct {
  void *h[64];
  int n;
} live[KINDS], freed[KINDS];

static void remember(int kind, void *h, int is_live) {
  if (h == NULL) return;
  if (is_live) live[kind].h[live[kind].n++] = h;
  else freed[kind].h[freed[kind].n++] = h;
}

static int is_good(int kind, void *h) {
  uintptr_t v = (uintptr_t)h;
  int i;
  for (i = 0; i < live[kind].n; i++)
    if (live[kind].h[i] == h) return 1;
  switch (kind) { /* constants */
  case COMM: return h == (void *)MPI_COMM_WORLD || h == (void *)MPI_COMM_SELF;
  case DATATYPE: return v >= 0x200 && v < 0x400;
  case OP: return v >= 0x20 && v < 0x40;
  case REQUEST: return h == (void *)MPI_REQUEST_NULL;
  case INFO: return h == (void *)MPI_INFO_NULL || h == (void *)MPI_INFO_ENV;
  case ERRHANDLER: return v > 0x140 && v < 0x148;
  case GROUP: return h == (void *)MPI_GROUP_EMPTY;
  case MESSAGE: return h == (void *)MPI_MESSAGE_NO_PROC;
  }
  return 0;
}

/* Where functions change a handle, they are given a copy. */
#define COPY(type, name) static type *name(void *h) { static type copy; copy = (type)h; return &copy; }
COPY(MPI_Comm, comm_at)
COPY(MPI_Datatype, type_at)
COPY(MPI_Op, op_at)
COPY(MPI_Request, request_at)
COPY(MPI_Info, info_at)
COPY(MPI_Errhandler, errhandler_at)
COPY(MPI_Group, group_at)
COPY(MPI_Win, win_at)
COPY(MPI_File, file_at)
COPY(MPI_Session, session_at)
COPY(MPI_Message, message_at)

static MPI_Request *behind_null(void *h) {
  static MPI_Request q[2];
  q[0] = MPI_REQUEST_NULL, q[1] = (MPI_Request)h;
  return q;
}

/* Calls with one handle that is wrong, by kind. */
#define TRY(name, call) static int name(void *h) { MPI_Status s; MPI_Request q = MPI_REQUEST_NULL; int n = 0; long l[8]; (void)s, (void)q, (void)n, (void)l; return call; }
#define C ((MPI_Comm)h)
#define T ((MPI_Datatype)h)
TRY(c_send, MPI_Send(data, 1, MPI_INT, right, NEVER, C))
TRY(c_send_none, MPI_Send(data, 0, MPI_INT, right, NEVER, C))
TRY(c_send_c, MPI_Send_c(data, 1, MPI_INT, right, NEVER, C))
TRY(c_ssend, MPI_Ssend(data, 1, MPI_INT, right, NEVER, C))
TRY(c_isend, MPI_Isend(data, 1, MPI_INT, right, NEVER, C, &q))
TRY(c_isend_c, MPI_Isend_c(data, 1, MPI_INT, right, NEVER, C, &q))
TRY(c_recv, MPI_Recv(into, 1, MPI_INT, left, WAITING, C, &s))
TRY(c_recv_c, MPI_Recv_c(into, 1, MPI_INT, left, WAITING, C, MPI_STATUS_IGNORE))
TRY(c_irecv, MPI_Irecv(into, 1, MPI_INT, left, WAITING, C, &q))
TRY(c_irecv_c, MPI_Irecv_c(into, 1, MPI_INT, left, WAITING, C, &q))
TRY(c_sendrecv, MPI_Sendrecv(data, 1, MPI_INT, right, NEVER, into, 1, MPI_INT, left, WAITING, C, &s))
TRY(c_sendrecv_c, MPI_Sendrecv_c(data, 1, MPI_INT, right, NEVER, into, 1, MPI_INT, left, WAITING, C, &s))
TRY(c_send_first, MPI_Send(data, 1, MPI_INT, 0, NEVER, C))
TRY(c_probe, MPI_Iprobe(left, WAITING, C, &n, &s))
TRY(c_size, MPI_Comm_size(C, &n))
TRY(c_bcast, MPI_Bcast(data, 1, MPI_INT, 0, C))
TRY(c_barrier, MPI_Barrier(C))
TRY(c_dup, MPI_Comm_dup(C, (MPI_Comm *)l))
TRY(c_free, MPI_Comm_free(comm_at(h)))
TRY(t_send, MPI_Send(data, 1, T, right, NEVER, MPI_COMM_WORLD))
TRY(t_send_c, MPI_Send_c(data, 1, T, right, NEVER, MPI_COMM_WORLD))
TRY(t_isend, MPI_Isend(data, 1, T, right, NEVER, comms[1], &q))
TRY(t_recv, MPI_Recv(into, 1, T, left, WAITING, MPI_COMM_WORLD, &s))
TRY(t_irecv, MPI_Irecv(into, 1, T, left, WAITING, MPI_COMM_WORLD, &q))
TRY(t_sendrecv, MPI_Sendrecv(data, 1, T, right, NEVER, into, 1, MPI_INT, left, WAITING, MPI_COMM_WORLD, &s))
TRY(t_size, MPI_Type_size(T, &n))
TRY(t_commit, MPI_Type_commit(type_at(h)))
TRY(t_free, MPI_Type_free(type_at(h)))
TRY(t_bcast, MPI_Bcast(data, 1, T, 0, MPI_COMM_WORLD))
TRY(o_allreduce, MPI_Allreduce(data, into, 1, MPI_INT, (MPI_Op)h, MPI_COMM_WORLD))
TRY(o_local, MPI_Reduce_local(data, into, 1, MPI_INT, (MPI_Op)h))
TRY(o_free, MPI_Op_free(op_at(h)))
TRY(r_wait, MPI_Wait(request_at(h), &s))
TRY(r_wait_ignore, MPI_Wait(request_at(h), MPI_STATUS_IGNORE))
TRY(r_test, MPI_Test(request_at(h), &n, &s))
TRY(r_waitall, MPI_Waitall(1, request_at(h), MPI_STATUSES_IGNORE))
TRY(r_waitall_2, MPI_Waitall(2, behind_null(h), MPI_STATUSES_IGNORE))
TRY(r_waitany, MPI_Waitany(1, request_at(h), &n, &s))
TRY(r_testall, MPI_Testall(1, request_at(h), &n, &s))
TRY(r_cancel, MPI_Cancel(request_at(h)))
TRY(r_free, MPI_Request_free(request_at(h)))
TRY(r_start, MPI_Start(request_at(h)))
TRY(r_status, MPI_Request_get_status((MPI_Request)h, &n, &s))
TRY(i_keys, MPI_Info_get_nkeys((MPI_Info)h, &n))
TRY(i_set, MPI_Info_set((MPI_Info)h, "a", "b"))
TRY(i_free, MPI_Info_free(info_at(h)))
TRY(e_set, MPI_Comm_set_errhandler(comms[0], (MPI_Errhandler)h))
TRY(e_free, MPI_Errhandler_free(errhandler_at(h)))
TRY(g_size, MPI_Group_size((MPI_Group)h, &n))
TRY(g_create, MPI_Comm_create(MPI_COMM_WORLD, (MPI_Group)h, (MPI_Comm *)l))
TRY(g_free, MPI_Group_free(group_at(h)))
TRY(w_fence, MPI_Win_fence(0, (MPI_Win)h))
TRY(w_put, MPI_Put(data, 1, MPI_INT, 0, 0, 1, MPI_INT, (MPI_Win)h))
TRY(w_free, MPI_Win_free(win_at(h)))
TRY(f_size, MPI_File_get_size((MPI_File)h, (MPI_Offset *)l))
TRY(f_read, MPI_File_read((MPI_File)h, into, 1, MPI_INT, &s))
TRY(f_close, MPI_File_close(file_at(h)))
TRY(s_info, MPI_Session_get_info((MPI_Session)h, (MPI_Info *)l))
TRY(s_psets, MPI_Session_get_num_psets((MPI_Session)h, MPI_INFO_NULL, &n))
TRY(s_finalize, MPI_Session_finalize(session_at(h)))
TRY(m_recv, MPI_Mrecv(into, 1, MPI_INT, message_at(h), &s))
TRY(m_irecv, MPI_Imrecv(into, 1, MPI_INT, message_at(h), &q))

static const struct attempt {
  int kind, class;
  const char *name;
  int (*call)(void *);
} attempts[] = {
#define A(kind, class, name) {kind, MPI_ERR_##class, #name, name}
  A(COMM, COMM, c_send), A(COMM, COMM, c_send_none), A(COMM, COMM, c_send_c), A(COMM, COMM, c_ssend), A(COMM, COMM, c_isend),
  A(COMM, COMM, c_isend_c), A(COMM, COMM, c_recv), A(COMM, COMM, c_recv_c), A(COMM, COMM, c_irecv), A(COMM, COMM, c_irecv_c),
  A(COMM, COMM, c_sendrecv), A(COMM, COMM, c_sendrecv_c), A(COMM, COMM, c_send_first), A(COMM, COMM, c_probe), A(COMM, COMM, c_size),
  A(COMM, COMM, c_bcast), A(COMM, COMM, c_barrier), A(COMM, COMM, c_dup), A(COMM, COMM, c_free),
  A(DATATYPE, TYPE, t_send), A(DATATYPE, TYPE, t_send_c), A(DATATYPE, TYPE, t_isend), A(DATATYPE, TYPE, t_recv), A(DATATYPE, TYPE, t_irecv),
  A(DATATYPE, TYPE, t_sendrecv), A(DATATYPE, TYPE, t_size), A(DATATYPE, TYPE, t_commit), A(DATATYPE, TYPE, t_free), A(DATATYPE, TYPE, t_bcast),
  A(OP, OP, o_allreduce), A(OP, OP, o_local), A(OP, OP, o_free),
  A(REQUEST, REQUEST, r_wait), A(REQUEST, REQUEST, r_wait_ignore), A(REQUEST, REQUEST, r_test), A(REQUEST, REQUEST, r_waitall),
  A(REQUEST, REQUEST, r_waitall_2), A(REQUEST, REQUEST, r_waitany), A(REQUEST, REQUEST, r_testall), A(REQUEST, REQUEST, r_cancel),
  A(REQUEST, REQUEST, r_free), A(REQUEST, REQUEST, r_start), A(REQUEST, REQUEST, r_status),
  A(INFO, INFO, i_keys), A(INFO, INFO, i_set), A(INFO, INFO, i_free),
  A(ERRHANDLER, ERRHANDLER, e_set), A(ERRHANDLER, ERRHANDLER, e_free),
  A(GROUP, GROUP, g_size), A(GROUP, GROUP, g_create), A(GROUP, GROUP, g_free),
  A(WIN, WIN, w_fence), A(WIN, WIN, w_put), A(WIN, WIN, w_free),
  A(FILE_, FILE, f_size), A(FILE_, FILE, f_read), A(FILE_, FILE, f_close),
  A(SESSION, SESSION, s_info), A(SESSION, SESSION, s_psets), A(SESSION, SESSION, s_finalize),
  A(MESSAGE, REQUEST, m_recv), A(MESSAGE, REQUEST, m_irecv),
};

static void around(int round);

static void each(void *h) {
  static int tried;
  size_t i;
  int got = -1;
  if (++tried % 256 == 0) around(tried); /* still warm */
  if (tried % 16 == 0 || h == NULL) { /* what waits none of the calls may take */
    if (waits) CALL(MPI_Recv(&got, 1, MPI_INT, left, WAITING, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    CHECK(!waits || got == left);
    CALL(MPI_Send(&rank, 1, MPI_INT, right, WAITING, MPI_COMM_WORLD));
    waits = 1;
  }
  for (i = 0; i < sizeof attempts / sizeof *attempts; i++) {
    const struct attempt *a = &attempts[i];
    int code, class = -1;
    if (is_good(a->kind, h)) continue;
    code = a->call(h);
    PMPI_Error_class(code, &class);
    if (class != a->class && wrong++ < 20)
      fprintf(stderr, "rank %d: %s of %p gives class %d, not %d\n", rank, a->name, h, class, a->class);
  }
}

static uint64_t state = 88172645463325252u;

static uint64_t draw(void) {
  state ^= state << 13, state ^= state >> 7;
  return state ^= state << 17;
}
#endif

/* around passes a message to everybody by each function that has a short way. */
static void around(int round) {
  int in[2] = {-1, -1}, out[2] = {rank, round}, flag = 0, i;
  MPI_Comm c = round % (COMMS + 1) == COMMS ? MPI_COMM_WORLD : comms[round % (COMMS + 1)];
  MPI_Request q[2];
  MPI_Status s[2];
  CALL(MPI_Send(out, 2, MPI_INT, right, GOOD, c));
  CALL(MPI_Recv(in, 2, MPI_INT, left, GOOD, c, s));
  CHECK(in[0] == left && in[1] == round);
  for (i = 0; i < 3; i++) {
    in[0] = -1;
    CALL(MPI_Irecv(in, 2, MPI_INT, left, GOOD, c, &q[0]));
    CALL(MPI_Isend(out, 2, MPI_INT, right, GOOD, c, &q[1]));
    if (i == 0) {
      CALL(MPI_Waitall(2, q, s));
    } else {
      CALL(MPI_Wait(&q[1], s));
      for (flag = 0; i == 1 && !flag;) CALL(MPI_Test(&q[0], &flag, s));
      if (i == 2) CALL(MPI_Wait(&q[0], MPI_STATUS_IGNORE));
    }
    CHECK(in[0] == left && in[1] == round);
  }
  in[0] = -1;
  CALL(MPI_Sendrecv(out, 2, MPI_INT, right, GOOD, in, 2, MPI_INT, left, GOOD, c, MPI_STATUS_IGNORE));
  CHECK(in[0] == left && in[1] == round);
}

/* again frees a communicator and makes another one. */
static void again(int i) {
  CALL(MPI_Comm_free(&comms[i]));
  CALL(MPI_Comm_dup(MPI_COMM_WORLD, &comms[i]));
}

static void warm(void) {
  int i;
  for (i = 0; i < ROUNDS; i++) {
    around(i);
    if (i % 100 == 99) again(i / 100 % COMMS);
  }
}

#ifdef MPI_ABI_VERSION
static void never_called(MPI_Comm *c, int *code, ...) { (void)c, (void)code; }
static void op_function(void *a, void *b, int *n, MPI_Datatype *t) { (void)a, (void)b, (void)n, (void)t; }

/* make gives objects of most kinds, which stay or end at once. A window that stays has the
   library watch for others all the time, and no call takes a short way. */
static void make(int alive, int windows) {
  MPI_Comm c;
  MPI_Datatype t;
  MPI_Op op;
  MPI_Info info;
  MPI_Errhandler e;
  MPI_Group g;
  MPI_Win w = NULL;
  MPI_Session s;
  MPI_Request q, copy;
  int i;
  CALL(MPI_Comm_dup(MPI_COMM_WORLD, &c));
  for (i = 0; i < 20; i++) { /* as warm as can be */
    CALL(MPI_Sendrecv(data, 1, MPI_INT, right, GOOD, into, 1, MPI_INT, left, GOOD, c, MPI_STATUS_IGNORE));
    CALL(MPI_Irecv(into, 1, MPI_INT, left, GOOD, c, &q));
    copy = q;
    CALL(MPI_Send(data, 1, MPI_INT, right, GOOD, c));
    CALL(MPI_Wait(&q, MPI_STATUS_IGNORE));
    if (!alive && i < 8) remember(REQUEST, (void *)copy, 0);
  }
  CALL(MPI_Type_contiguous(2, MPI_INT, &t));
  CALL(MPI_Type_commit(&t));
  CALL(MPI_Op_create(op_function, 1, &op));
  CALL(MPI_Info_create(&info));
  CALL(MPI_Comm_create_errhandler(never_called, &e));
  CALL(MPI_Comm_group(MPI_COMM_WORLD, &g));
  if (windows) CALL(MPI_Win_create(NULL, 0, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &w));
  CALL(MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_RETURN, &s));
  CALL(MPI_Send_init(data, 1, MPI_INT, right, NEVER, c, &q));
  remember(COMM, (void *)c, alive), remember(DATATYPE, (void *)t, alive), remember(OP, (void *)op, alive), remember(INFO, (void *)info, alive);
  remember(ERRHANDLER, (void *)e, alive), remember(GROUP, (void *)g, alive), remember(WIN, (void *)w, alive), remember(SESSION, (void *)s, alive);
  remember(REQUEST, (void *)q, alive);
  if (alive) return;
  CALL(MPI_Request_free(&q));
  CALL(MPI_Type_free(&t));
  CALL(MPI_Op_free(&op));
  CALL(MPI_Info_free(&info));
  CALL(MPI_Errhandler_free(&e));
  CALL(MPI_Group_free(&g));
  if (windows) CALL(MPI_Win_free(&w));
  CALL(MPI_Session_finalize(&s));
  CALL(MPI_Comm_free(&c));
}

static void unmake(void) {
  CALL(MPI_Request_free((MPI_Request *)&live[REQUEST].h[0]));
  CALL(MPI_Type_free((MPI_Datatype *)&live[DATATYPE].h[0]));
  CALL(MPI_Op_free((MPI_Op *)&live[OP].h[0]));
  CALL(MPI_Info_free((MPI_Info *)&live[INFO].h[0]));
  CALL(MPI_Errhandler_free((MPI_Errhandler *)&live[ERRHANDLER].h[0]));
  CALL(MPI_Group_free((MPI_Group *)&live[GROUP].h[0]));
  if (live[WIN].n > 0) CALL(MPI_Win_free((MPI_Win *)&live[WIN].h[0]));
  CALL(MPI_Session_finalize((MPI_Session *)&live[SESSION].h[0]));
  CALL(MPI_Comm_free((MPI_Comm *)&live[COMM].h[0]));
  memset(live, 0, sizeof live);
}

static MPI_Request open[2];

/* post leaves a receive and a send open, behind some in the same place that are over. */
static void post(void) {
  int i;
  for (i = 0; i < 8; i++) {
    CALL(MPI_Irecv(into, 1, MPI_INT, left, LATER, comms[2], &open[0]));
    CALL(MPI_Isend(&rank, 1, MPI_INT, right, LATER, comms[i < 7 ? 2 : 3], &open[1]));
    if (i < 7) CALL(MPI_Waitall(2, open, MPI_STATUSES_IGNORE));
  }
  remember(REQUEST, (void *)open[0], 1), remember(REQUEST, (void *)open[1], 1);
}

static void complete(void) {
  CALL(MPI_Send(&rank, 1, MPI_INT, right, LATER, comms[2]));
  CALL(MPI_Waitall(2, open, MPI_STATUSES_IGNORE));
  CHECK(into[0] == left);
  CALL(MPI_Recv(into, 1, MPI_INT, left, LATER, comms[3], MPI_STATUS_IGNORE));
}

/* wild tries everything, with windows or not, and while requests are open or not. */
static void wild(int windows, int requests) {
  static void *const no[] = {
    (void *)0x3ff, (void *)0xfff, (void *)0x1000, (void *)0x12345678, (void *)0xdeadbeef, (void *)-1, (void *)-2, (void *)-4096,
    (void *)0x7fffffff, (void *)0x80000000, (void *)0x7fffffffffff, (void *)0x8000000000000000, (void *)-0x7fffffffffffffff,
  };
  int i, k, bit, flag = -1, found = 0;
  make(0, windows);
  make(1, windows);
  for (i = 0; i < COMMS; i++) remember(COMM, (void *)comms[i], 1);
  if (requests) post();
  for (i = 0; i < sizeof no / sizeof *no; i++) each(no[i]);
  /* handles that are constants, of the kind that the call takes or of another one */
  for (i = 0; i < 0x400; i += i < 0x180 ? 1 : 13) each((void *)(intptr_t)i);
  for (k = 0; k < KINDS; k++) {
    for (i = 0; i < freed[k].n; i++) each(freed[k].h[i]);
    for (i = 0; i < live[k].n; i++) { /* of another kind, or nearly right */
      each(live[k].h[i]);
      for (bit = i; bit < 64; bit += k == COMM || k == REQUEST ? 1 : 7) each((void *)((uintptr_t)live[k].h[i] ^ (uint64_t)1 << bit));
    }
  }
  for (i = 0; i < 100; i++) each((void *)(uintptr_t)draw());
  for (i = 0; i < 50; i++) each((void *)(uintptr_t)(draw() & 0xffffffff));
  each(&flag), each(data), each(data + 1), each((void *)(uintptr_t)wild);
  if (requests) complete();
  CALL(MPI_Recv(&i, 1, MPI_INT, left, WAITING, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
  CHECK(i == left);
  waits = 0;
  CALL(MPI_Barrier(MPI_COMM_WORLD)); /* what was sent is here */
  for (i = -1; i < COMMS; i++) {
    CALL(MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, i < 0 ? MPI_COMM_WORLD : comms[i], &flag, MPI_STATUS_IGNORE));
    found += flag;
  }
  CHECK(found == 0);
  unmake();
}
#endif

int main(int argc, char **argv) {
  int i;
  begin(&argc, &argv);
  left = (rank + size - 1) % size, right = (rank + 1) % size;
  for (i = 0; i < COMMS; i++) CALL(MPI_Comm_dup(MPI_COMM_WORLD, &comms[i]));
#ifdef MPI_ABI_VERSION
  wild(1, 0);
#endif
  warm();
#ifdef MPI_ABI_VERSION
  wild(0, 1);
  for (i = 0; i < COMMS; i++) again(i); /* nothing is known of any of them */
  around(COMMS);
  wild(0, 0);
#endif
  for (i = 0; i < COMMS; i++) CALL(MPI_Comm_free(&comms[i]));
  return end("wild");
}
