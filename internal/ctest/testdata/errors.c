/* Error handlers, codes and texts. */
#include "test.h"

static int calls, last_code;
static MPI_Comm last_comm;

static void handler(MPI_Comm *comm, int *code, ...) {
  calls++;
  last_comm = *comm;
  last_code = *code;
}

static void forgiving(MPI_Comm *comm, int *code, ...) {
  (void)comm;
  *code = MPI_SUCCESS;
}

static void classes(void) {
  int class_, code, got, n, *last, flag;
  char text[MPI_MAX_ERROR_STRING];
  CALL(MPI_Error_class(MPI_SUCCESS, &got));
  CHECK(got == MPI_SUCCESS);
  CALL(MPI_Error_string(MPI_ERR_TRUNCATE, text, &n));
  CHECK(n > 0 && n < MPI_MAX_ERROR_STRING && (int)strlen(text) == n);
  CALL(MPI_Add_error_class(&class_));
  CHECK(class_ > MPI_ERR_LASTCODE);
  CALL(MPI_Add_error_code(class_, &code));
  CALL(MPI_Add_error_string(code, "the cupboard is bare"));
  CALL(MPI_Error_string(code, text, &n));
  CHECK(strcmp(text, "the cupboard is bare") == 0);
  CALL(MPI_Error_class(code, &got));
  CHECK(got == class_);
  CALL(MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_LASTUSEDCODE, &last, &flag));
  CHECK(flag && *last >= class_);
}

static void handlers(void) {
  MPI_Errhandler mine, got;
  MPI_Comm twin;
  CALL(MPI_Comm_create_errhandler(handler, &mine));
  CALL(MPI_Comm_dup(MPI_COMM_WORLD, &twin));
  CALL(MPI_Comm_set_errhandler(twin, mine));
  CALL(MPI_Comm_get_errhandler(twin, &got));
  CHECK(got == mine);
  CALL(MPI_Errhandler_free(&got));
  CALL(MPI_Errhandler_free(&mine));
  CHECK(mine == MPI_ERRHANDLER_NULL);
  FAILS(MPI_ERR_RANK, MPI_Send(&rank, 1, MPI_INT, size, 0, twin));
  CHECK(calls == 1 && last_comm == twin);
  FAILS(MPI_ERR_RANK, last_code);
  CALL(MPI_Comm_call_errhandler(twin, MPI_ERR_OTHER));
  CHECK(calls == 2 && last_code == MPI_ERR_OTHER);
  CALL(MPI_Comm_create_errhandler(forgiving, &mine));
  CALL(MPI_Comm_set_errhandler(twin, mine));
  CALL(MPI_Errhandler_free(&mine));
  CALL(MPI_Send(&rank, 1, MPI_INT, size, 0, twin)); /* the handler chooses what a call returns */
  CALL(MPI_Comm_free(&twin));
  CALL(MPI_Comm_get_errhandler(MPI_COMM_WORLD, &got));
  CHECK(got == MPI_ERRORS_RETURN);
}

/* The error of one of many is in its status. */
static void of_many(void) {
  int x[4] = {1, 2, 3, 4}, small;
  MPI_Request r[3];
  MPI_Status s[3];
  int code, class_ = -1;
  memset(s, -1, sizeof s);
  CALL(MPI_Irecv(&small, 1, MPI_INT, 0, 1, MPI_COMM_SELF, &r[0]));
  CALL(MPI_Irecv(x + 2, 2, MPI_INT, 0, 2, MPI_COMM_SELF, &r[1]));
  CALL(MPI_Send(x, 2, MPI_INT, 0, 1, MPI_COMM_SELF));
  CALL(MPI_Send(x, 2, MPI_INT, 0, 2, MPI_COMM_SELF));
  code = MPI_Waitall(2, r, s);
  MPI_Error_class(code, &class_);
  CHECK(class_ == MPI_ERR_IN_STATUS);
  MPI_Error_class(s[0].MPI_ERROR, &class_);
  CHECK(class_ == MPI_ERR_TRUNCATE);
  CHECK(s[1].MPI_ERROR == MPI_SUCCESS || s[1].MPI_ERROR == MPI_ERR_PENDING);
  if (s[1].MPI_ERROR != MPI_SUCCESS) CALL(MPI_Wait(&r[1], MPI_STATUS_IGNORE));
  CHECK(x[2] == 1 && x[3] == 2);
  CALL(MPI_Isend(x, 2, MPI_INT, 0, 3, MPI_COMM_SELF, &r[0]));
  FAILS(MPI_ERR_TRUNCATE, MPI_Recv(&small, 1, MPI_INT, 0, 3, MPI_COMM_SELF, MPI_STATUS_IGNORE));
  CALL(MPI_Wait(&r[0], MPI_STATUS_IGNORE));
}

/* Testall has completed its requests, so that its flag is set, also if one has failed. */
static void of_all(void) {
  int x[2] = {1, 2}, small, other[2], flag = 0, code, class_ = -1;
  MPI_Request r[2];
  MPI_Status s[2];
  CALL(MPI_Irecv(&small, 1, MPI_INT, 0, 1, MPI_COMM_SELF, &r[0]));
  CALL(MPI_Irecv(other, 2, MPI_INT, 0, 2, MPI_COMM_SELF, &r[1]));
  CALL(MPI_Send(x, 2, MPI_INT, 0, 1, MPI_COMM_SELF));
  CALL(MPI_Send(x, 2, MPI_INT, 0, 2, MPI_COMM_SELF));
  do {
    code = MPI_Testall(2, r, &flag, s);
  } while (code == MPI_SUCCESS && !flag);
  MPI_Error_class(code, &class_);
  CHECK(class_ == MPI_ERR_IN_STATUS && flag);
  CHECK(r[0] == MPI_REQUEST_NULL && r[1] == MPI_REQUEST_NULL && other[1] == 2);
}

/* What cannot be made is MPI_COMM_NULL. */
static void not_made(void) {
  int dims[2] = {size, size + 1}, periods[2] = {0, 0};
  MPI_Comm c = MPI_COMM_WORLD;
  FAILS(MPI_ERR_DIMS, MPI_Cart_create(MPI_COMM_WORLD, 2, dims, periods, 0, &c));
  CHECK(c == MPI_COMM_NULL);
}

int main(int argc, char **argv) {
  begin(&argc, &argv);
  classes();
  handlers();
  of_many();
  of_all();
  not_made();
  return end("errors");
}
