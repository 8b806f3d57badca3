/* Short messages between procs of one host, which C code passes on by itself, mixed with
   all that it leaves to Go. All procs know the whole plan: step k is a message, and each that
   has to do with it sends it, or has a receive for it, in some way of its own choice.
   An argument is the seed. */
#include "test.h"

#ifndef STEPS
#define STEPS 30000
#endif
enum { OPEN = 40, LONGEST = 120000, COMMS = 3 };

static MPI_Comm comms[COMMS];
static unsigned plan = 1, mine;

static unsigned draw(unsigned *state, unsigned n) {
  *state = *state * 1664525u + 1013904223u;
  return (*state >> 8) % n;
}

/* What is under way: receives of this proc, and sends. */
static struct {
  int k, n, from, tag; /* step, bytes, and who sends; from -1: a send */
  unsigned char *buf;
} open[OPEN];
static MPI_Request reqs[OPEN];
static int opened;

static void closed(int i, const MPI_Status *s, int whole) {
  int n = -1;
  if (open[i].from >= 0 && whole) {
    CALL(MPI_Get_count(s, MPI_BYTE, &n));
    CHECK(n == open[i].n && s->MPI_SOURCE == open[i].from && s->MPI_TAG == open[i].tag);
  }
  CHECK(filled(open[i].buf, open[i].n, open[i].k));
  CHECK(reqs[i] == MPI_REQUEST_NULL);
  free(open[i].buf);
  open[i].buf = NULL;
}

/* squeeze keeps what is still under way. */
static void squeeze(void) {
  int i, n = 0;
  for (i = 0; i < opened; i++)
    if (open[i].buf != NULL) open[n] = open[i], reqs[n++] = reqs[i];
  opened = n;
}

/* finish completes what is under way: all of it, or something. */
static void finish(int all) {
  MPI_Status s[OPEN];
  int which[OPEN], n = 0, i, flag = 0;
  switch (all ? 0 : draw(&mine, 8)) {
  case 0:
    CALL(MPI_Waitall(opened, reqs, s));
    for (i = 0; i < opened; i++) closed(i, &s[i], 1);
    break;
  case 1:
    CALL(MPI_Waitall(opened, reqs, MPI_STATUSES_IGNORE));
    for (i = 0; i < opened; i++) closed(i, NULL, 0);
    break;
  case 2:
    CALL(MPI_Waitany(opened, reqs, &i, s));
    if (opened > 0) closed(i, s, 1);
    break;
  case 3:
    CALL(MPI_Waitsome(opened, reqs, &n, which, s));
    for (i = 0; i < n; i++) closed(which[i], &s[i], 1);
    break;
  case 4:
    CALL(MPI_Testall(opened, reqs, &flag, s));
    for (i = 0; flag && i < opened; i++) closed(i, &s[i], 1);
    break;
  case 5:
    for (i = 0; i < opened; i++) {
      CALL(MPI_Test(&reqs[i], &flag, s));
      if (flag) closed(i, s, 1);
    }
    break;
  case 6:
    for (i = 0; i < opened; i++) {
      CALL(MPI_Request_get_status(reqs[i], &flag, s));
#ifdef MPI_ABI_VERSION
      CHECK(MPI_Request_fromint(MPI_Request_toint(reqs[i])) == reqs[i]);
#endif
      if (!flag) continue;
      CALL(MPI_Wait(&reqs[i], s));
      closed(i, s, 1);
    }
    break;
  case 7:
    for (i = 0; i < opened; i++) {
      CALL(MPI_Wait(&reqs[i], s));
      closed(i, s, 1);
    }
  }
  squeeze();
}

static MPI_Request *begun(int k, int n, int from, int tag, unsigned char *buf) {
  open[opened].k = k, open[opened].n = n, open[opened].from = from, open[opened].tag = tag;
  open[opened].buf = buf;
  return &reqs[opened++];
}

static void sends(int k, int n, int to, int tag, MPI_Comm c) {
  unsigned char *buf = malloc(n + 1);
  fill(buf, n, k);
  switch (draw(&mine, 12)) {
  case 0: CALL(MPI_Ssend(buf, n, MPI_BYTE, to, tag, c)); break;
  case 1: CALL(MPI_Bsend(buf, n, MPI_BYTE, to, tag, c)); break;
  case 2: CALL(MPI_Send_c(buf, n, MPI_BYTE, to, tag, c)); break;
  case 3: CALL(MPI_Issend(buf, n, MPI_BYTE, to, tag, c, begun(k, n, -1, tag, buf))); return;
  case 4: case 5: case 6: case 7:
    CALL(MPI_Isend(buf, n, MPI_CHAR, to, tag, c, begun(k, n, -1, tag, buf)));
    return;
  default: CALL(MPI_Send(buf, n, MPI_BYTE, to, tag, c));
  }
  free(buf);
}

static void receives(int k, int n, int from, int tag, MPI_Comm c) {
  unsigned char *buf = malloc(n + 8);
  int got = -1, room = n + draw(&mine, 8), way = draw(&mine, 16);
  MPI_Status s;
  MPI_Message m;
  MPI_Request q;
  memset(&s, 0xee, sizeof s);
  switch (way) {
  case 0: CALL(MPI_Recv(buf, room, MPI_BYTE, from, MPI_ANY_TAG, c, &s)); break;
  case 1:
    CALL(MPI_Probe(from, tag, c, &s));
    CALL(MPI_Recv(buf, room, MPI_BYTE, from, tag, c, &s));
    break;
  case 2:
    CALL(MPI_Mprobe(from, tag, c, &m, &s));
    CALL(MPI_Mrecv(buf, room, MPI_BYTE, &m, &s));
    break;
  case 3: /* no other message has that tag */
    CALL(MPI_Recv(buf, room, MPI_BYTE, tag >= 100 ? MPI_ANY_SOURCE : from, tag, c, &s));
    break;
  case 4:
    CALL(MPI_Recv_init(buf, room, MPI_BYTE, from, tag, c, &q));
    CALL(MPI_Start(&q));
    CALL(MPI_Wait(&q, &s));
    CALL(MPI_Request_free(&q));
    break;
  case 11: case 12:
    CALL(MPI_Irecv(buf, room, MPI_BYTE, tag >= 100 ? MPI_ANY_SOURCE : from, tag, c, begun(k, n, from, tag, buf)));
    return;
  case 5: case 6: case 7: case 8: case 9: case 10:
    CALL(MPI_Irecv(buf, room, MPI_BYTE, from, way == 5 ? MPI_ANY_TAG : tag, c, begun(k, n, from, tag, buf)));
    return;
  default: CALL(MPI_Recv(buf, room, MPI_BYTE, from, tag, c, &s));
  }
  CALL(MPI_Get_count(&s, MPI_BYTE, &got));
  CHECK(got == n && s.MPI_SOURCE == from && s.MPI_TAG == tag && filled(buf, n, k));
  free(buf);
}

static int length(void) {
  switch (draw(&plan, 40)) {
  case 0: return draw(&plan, LONGEST);
  case 1: case 2: return 97 + draw(&plan, 4000);
  case 3: return 95 + draw(&plan, 3);
  case 4: return 0;
  case 5: return 32767 + draw(&plan, 3); /* the longest that C passes on */
  case 6: return draw(&plan, 33000);
  default: return draw(&plan, 60);
  }
}

/* too_long wants the error of a message that does not fit, and what fits of it. */
static void too_long(void) {
  int left = (rank + size - 1) % size, right = (rank + 1) % size, i;
  static char buf[5000];
  MPI_Request q;
  MPI_Status s;
  for (i = 0; i < 8; i++) {
    memset(buf, 'x', sizeof buf);
    CALL(MPI_Send(buf, i < 4 ? 40 : sizeof buf, MPI_BYTE, right, 77, comms[0]));
    memset(buf, 'y', sizeof buf);
    if (i % 2 == 0) {
      FAILS(MPI_ERR_TRUNCATE, MPI_Recv(buf, 10, MPI_BYTE, left, 77, comms[0], &s));
    } else {
      CALL(MPI_Irecv(buf, 10, MPI_BYTE, left, 77, comms[0], &q));
      FAILS(MPI_ERR_TRUNCATE, MPI_Wait(&q, &s));
    }
    CHECK(memcmp(buf, "xxxxxxxxxxy", 11) == 0);
  }
}

/* taken_back cancels a receive, forgets another, and uses requests that are over. */
static void taken_back(void) {
  int flag = -1, in = 0, out = 7;
  MPI_Request q, copy, some[4];
  MPI_Status s, all[4];
  CALL(MPI_Isend(&out, 1, MPI_INT, (rank + 1) % size, 82, comms[1], &some[1]));
  CALL(MPI_Irecv(&in, 1, MPI_INT, (rank + size - 1) % size, 82, comms[1], &some[3]));
  some[0] = some[2] = MPI_REQUEST_NULL;
  memset(all, 0xee, sizeof all);
  CALL(MPI_Waitall(4, some, all));
  CHECK(all[0].MPI_SOURCE == MPI_ANY_SOURCE && all[0].MPI_TAG == MPI_ANY_TAG && all[2].MPI_SOURCE == MPI_ANY_SOURCE);
  CALL(MPI_Get_count(&all[2], MPI_INT, &flag));
  CHECK(flag == 0 && in == 7 && all[3].MPI_TAG == 82);
  CHECK(some[1] == MPI_REQUEST_NULL && some[3] == MPI_REQUEST_NULL);
  in = 0;
  CALL(MPI_Irecv(&in, 1, MPI_INT, (rank + size - 1) % size, 78, comms[1], &q));
  CALL(MPI_Cancel(&q));
  CALL(MPI_Wait(&q, &s));
  CALL(MPI_Test_cancelled(&s, &flag));
  CHECK(flag == 1 && in == 0);
  CALL(MPI_Isend(&out, 1, MPI_INT, (rank + 1) % size, 79, comms[1], &q));
  CALL(MPI_Request_free(&q));
  CHECK(q == MPI_REQUEST_NULL);
  CALL(MPI_Irecv(&in, 1, MPI_INT, (rank + size - 1) % size, 79, comms[1], &q));
  copy = q;
  CALL(MPI_Wait(&q, &s));
  CHECK(in == 7 && q == MPI_REQUEST_NULL);
#ifdef MPI_ABI_VERSION
  FAILS(MPI_ERR_REQUEST, MPI_Wait(&copy, &s));
  FAILS(MPI_ERR_REQUEST, MPI_Cancel(&copy));
  FAILS(MPI_ERR_REQUEST, MPI_Waitall(1, &copy, &s));
  for (flag = 0; flag < 4; flag++) { /* that nobody has given */
    copy = (MPI_Request)(intptr_t)(0x78000000 + flag * 8 + flag / 3);
    FAILS(MPI_ERR_REQUEST, MPI_Wait(&copy, &s));
    FAILS(MPI_ERR_REQUEST, MPI_Request_free(&copy));
    copy = (MPI_Request)((intptr_t)copy + ((intptr_t)1 << 50));
    FAILS(MPI_ERR_REQUEST, MPI_Wait(&copy, &s));
  }
#endif
}

/* shift passes values on around all procs, and swaps some between two. */
static void shift(int rounds) {
  int left = (rank + size - 1) % size, right = (rank + 1) % size, i, n;
  MPI_Status s;
  for (i = 0; i < rounds; i++) {
    int out[2] = {rank, i}, in[2] = {-1, -1};
    CALL(MPI_Sendrecv(out, 2, MPI_INT, right, 80, in, 2, MPI_INT, left, i % 3 ? 80 : MPI_ANY_TAG, comms[2], &s));
    CALL(MPI_Get_count(&s, MPI_INT, &n));
    CHECK(in[0] == left && in[1] == i && n == 2 && s.MPI_SOURCE == left && s.MPI_TAG == 80);
    CALL(MPI_Sendrecv(out, 2, MPI_INT, right, 81, in, 2, MPI_INT, MPI_PROC_NULL, 81, comms[2], &s));
    CHECK(s.MPI_SOURCE == MPI_PROC_NULL && in[1] == i);
    CALL(MPI_Sendrecv(NULL, 0, MPI_INT, MPI_PROC_NULL, 81, in, 2, MPI_INT, left, 81, comms[2], MPI_STATUS_IGNORE));
    CHECK(in[0] == left && in[1] == i);
  }
}

int main(int argc, char **argv) {
  static char room[8 << 20];
  void *back;
  int k, i, bytes;
  begin(&argc, &argv);
  if (argc > 1) plan = atoi(argv[1]);
  mine = plan * 100 + rank;
  CALL(MPI_Buffer_attach(room, sizeof room));
  for (i = 0; i < COMMS; i++) CALL(MPI_Comm_dup(MPI_COMM_WORLD, &comms[i]));
  too_long();
  taken_back();
  shift(500);
  for (k = 0; k < STEPS; k++) {
    int from = draw(&plan, size), to = (from + 1 + draw(&plan, size - 1)) % size, n = length();
    int tag = draw(&plan, 4) == 0 ? 100 + k : (int)draw(&plan, 3), which = draw(&plan, COMMS);
    if (rank == from) sends(k, n, to, tag, comms[which]);
    if (rank == to) receives(k, n, from, tag, comms[which]);
    if (opened == OPEN || (opened > 0 && draw(&mine, 20) == 0)) finish(0);
    while (opened == OPEN) finish(0);
    if (k % 1000 == 999) { /* another communicator in the same place */
      finish(1);
      CALL(MPI_Comm_free(&comms[which]));
      CALL(MPI_Comm_dup(MPI_COMM_WORLD, &comms[which]));
    }
  }
  finish(1);
  too_long();
  taken_back();
  for (i = 0; i < COMMS; i++) CALL(MPI_Comm_free(&comms[i]));
  CALL(MPI_Buffer_detach(&back, &bytes));
  return end("fastboxes");
}
