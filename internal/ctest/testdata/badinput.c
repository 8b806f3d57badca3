/*
 * Arguments that are wrong. Each call must fail with an error of the right
 * class, and the program must live on: MPI works at the end as at the start.
 * What only the standard ABI lets a library find out, as handles that were
 * never made, is tried with it alone.
 */
#include "test.h"

static int x = 1, y[4];

static void arguments(void) {
  MPI_Request r = MPI_REQUEST_NULL;
  MPI_Status s;
  MPI_Comm comm;
  MPI_Datatype t;
  int n, flag, dims[1] = {0};
  FAILS(MPI_ERR_COUNT, MPI_Send(&x, -1, MPI_INT, 0, 0, MPI_COMM_WORLD));
  FAILS(MPI_ERR_TYPE, MPI_Send(&x, 1, MPI_DATATYPE_NULL, 0, 0, MPI_COMM_WORLD));
  FAILS(MPI_ERR_RANK, MPI_Send(&x, 1, MPI_INT, size, 0, MPI_COMM_WORLD));
  FAILS(MPI_ERR_RANK, MPI_Send(&x, 1, MPI_INT, -7, 0, MPI_COMM_WORLD));
  FAILS(MPI_ERR_TAG, MPI_Send(&x, 1, MPI_INT, 0, -7, MPI_COMM_WORLD));
  FAILS(MPI_ERR_COMM, MPI_Send(&x, 1, MPI_INT, 0, 0, MPI_COMM_NULL));
  FAILS(MPI_ERR_BUFFER, MPI_Send(NULL, 1, MPI_INT, 0, 0, MPI_COMM_WORLD));
  FAILS(MPI_ERR_BUFFER, MPI_Recv(NULL, 1, MPI_INT, 0, 0, MPI_COMM_WORLD, &s));
  FAILS(MPI_ERR_RANK, MPI_Recv(&x, 1, MPI_INT, size, 0, MPI_COMM_WORLD, &s));
  FAILS(MPI_ERR_BUFFER, MPI_Isend(NULL, 3, MPI_DOUBLE, 0, 0, MPI_COMM_WORLD, &r));
  FAILS(MPI_ERR_COUNT, MPI_Irecv(&x, -2, MPI_INT, 0, 0, MPI_COMM_WORLD, &r));
  FAILS(MPI_ERR_RANK, MPI_Probe(size + 3, 0, MPI_COMM_WORLD, &s));
  FAILS(MPI_ERR_ROOT, MPI_Bcast(&x, 1, MPI_INT, size, MPI_COMM_WORLD));
  FAILS(MPI_ERR_ROOT, MPI_Reduce(&x, y, 1, MPI_INT, MPI_SUM, -9, MPI_COMM_WORLD));
  FAILS(MPI_ERR_OP, MPI_Allreduce(&x, y, 1, MPI_INT, MPI_OP_NULL, MPI_COMM_WORLD));
  FAILS(MPI_ERR_OP, MPI_Allreduce(&x, y, 1, MPI_FLOAT, MPI_BAND, MPI_COMM_WORLD));
  FAILS(MPI_ERR_COMM, MPI_Barrier(MPI_COMM_NULL));
  FAILS(MPI_ERR_COMM, MPI_Comm_size(MPI_COMM_NULL, &n));
  FAILS(MPI_ERR_ARG, MPI_Comm_size(MPI_COMM_WORLD, NULL));
  FAILS(MPI_ERR_COMM, MPI_Comm_free(&(MPI_Comm){MPI_COMM_NULL}));
  FAILS(MPI_ERR_COMM, MPI_Comm_dup(MPI_COMM_NULL, &comm));
  FAILS(MPI_ERR_DIMS, MPI_Dims_create(5, 1, (dims[0] = 3, dims)));
  FAILS(MPI_ERR_COUNT, MPI_Type_contiguous(-1, MPI_INT, &t));
  FAILS(MPI_ERR_TYPE, MPI_Type_free(&(MPI_Datatype){MPI_DATATYPE_NULL}));
  FAILS(MPI_ERR_TYPE, MPI_Type_size(MPI_DATATYPE_NULL, &n));
  CALL(MPI_Type_contiguous(2, MPI_INT, &t));
  FAILS(MPI_ERR_TYPE, MPI_Send(y, 1, t, 0, 0, MPI_COMM_WORLD)); /* not committed */
  CALL(MPI_Type_free(&t));
  FAILS(MPI_ERR_KEYVAL, MPI_Comm_set_attr(MPI_COMM_SELF, MPI_KEYVAL_INVALID, NULL));
  FAILS(MPI_ERR_KEYVAL, MPI_Comm_delete_attr(MPI_COMM_SELF, MPI_KEYVAL_INVALID));
  FAILS(MPI_ERR_TOPOLOGY, MPI_Cartdim_get(MPI_COMM_WORLD, &n));
  FAILS(MPI_ERR_REQUEST, MPI_Request_free(&r));
  FAILS(MPI_ERR_REQUEST, MPI_Start(&r));
  CALL(MPI_Test(&r, &flag, &s));
  CHECK(flag);
}

#ifdef MPI_ABI_VERSION
static void *no[] = {
  NULL, (void *)1, (void *)0x3ff, (void *)0xfff, (void *)0x1000, (void *)0x1001, (void *)0x12345678,
  (void *)0xdeadbeef, (void *)-1, (void *)-4096, (void *)0x7fffffffffff,
};

/* Handles that were never made, or are of another kind. */
static void handles(void) {
  size_t i;
  int n, flag;
  for (i = 0; i < sizeof no / sizeof *no; i++) {
    MPI_Request r = (MPI_Request)no[i];
    MPI_Group g;
    FAILS(MPI_ERR_COMM, MPI_Comm_size((MPI_Comm)no[i], &n));
    FAILS(MPI_ERR_COMM, MPI_Send(&x, 1, MPI_INT, 0, 0, (MPI_Comm)no[i]));
    FAILS(MPI_ERR_TYPE, MPI_Send(&x, 1, (MPI_Datatype)no[i], 0, 0, MPI_COMM_WORLD));
    FAILS(MPI_ERR_TYPE, MPI_Type_size((MPI_Datatype)no[i], &n));
    FAILS(MPI_ERR_OP, MPI_Allreduce(&x, y, 1, MPI_INT, (MPI_Op)no[i], MPI_COMM_WORLD));
    FAILS(MPI_ERR_GROUP, MPI_Group_size((MPI_Group)no[i], &n));
    FAILS(MPI_ERR_GROUP, MPI_Group_union((MPI_Group)no[i], MPI_GROUP_EMPTY, &g));
    FAILS(MPI_ERR_REQUEST, MPI_Wait(&r, MPI_STATUS_IGNORE));
    FAILS(MPI_ERR_REQUEST, MPI_Test(&r, &flag, MPI_STATUS_IGNORE));
    FAILS(MPI_ERR_INFO, MPI_Info_get_nkeys((MPI_Info)no[i], &n));
    FAILS(MPI_ERR_ERRHANDLER, MPI_Comm_set_errhandler(MPI_COMM_SELF, (MPI_Errhandler)no[i]));
  }
  FAILS(MPI_ERR_GROUP, MPI_Group_size((MPI_Group)MPI_COMM_WORLD, &n));
  FAILS(MPI_ERR_COMM, MPI_Comm_size((MPI_Comm)MPI_INT, &n));
  FAILS(MPI_ERR_TYPE, MPI_Type_size((MPI_Datatype)MPI_COMM_WORLD, &n));
  FAILS(MPI_ERR_OP, MPI_Allreduce(&x, y, 1, MPI_INT, (MPI_Op)MPI_INT, MPI_COMM_WORLD));
  FAILS(MPI_ERR_REQUEST, MPI_Wait((MPI_Request[]){(MPI_Request)MPI_INT}, MPI_STATUS_IGNORE));
}

/* Handles that were freed. */
static void freed(void) {
  MPI_Comm comm, old_comm;
  MPI_Datatype t, old_t;
  MPI_Group g, old_g;
  MPI_Request r, old_r;
  MPI_Info info, old_info;
  int n;
  CALL(MPI_Comm_dup(MPI_COMM_SELF, &comm));
  old_comm = comm;
  CALL(MPI_Comm_free(&comm));
  FAILS(MPI_ERR_COMM, MPI_Comm_size(old_comm, &n));
  FAILS(MPI_ERR_COMM, MPI_Comm_free(&old_comm));
  CALL(MPI_Type_contiguous(2, MPI_INT, &t));
  CALL(MPI_Type_commit(&t));
  old_t = t;
  CALL(MPI_Type_free(&t));
  FAILS(MPI_ERR_TYPE, MPI_Send(y, 1, old_t, 0, 0, MPI_COMM_WORLD));
  FAILS(MPI_ERR_TYPE, MPI_Type_free(&old_t));
  CALL(MPI_Comm_group(MPI_COMM_WORLD, &g));
  old_g = g;
  CALL(MPI_Group_free(&g));
  FAILS(MPI_ERR_GROUP, MPI_Group_size(old_g, &n));
  CALL(MPI_Send_init(&x, 1, MPI_INT, 0, 0, MPI_COMM_SELF, &r));
  old_r = r;
  CALL(MPI_Request_free(&r));
  FAILS(MPI_ERR_REQUEST, MPI_Start(&old_r));
  CALL(MPI_Info_create(&info));
  old_info = info;
  CALL(MPI_Info_free(&info));
  FAILS(MPI_ERR_INFO, MPI_Info_set(old_info, "a", "b"));
}

/* Where results would go. */
static void results(void) {
  MPI_Request r;
  FAILS(MPI_ERR_ARG, MPI_Comm_rank(MPI_COMM_WORLD, NULL));
  FAILS(MPI_ERR_ARG, MPI_Comm_dup(MPI_COMM_WORLD, NULL));
  FAILS(MPI_ERR_ARG, MPI_Isend(&x, 1, MPI_INT, 0, 0, MPI_COMM_WORLD, NULL));
  FAILS(MPI_ERR_ARG, MPI_Type_contiguous(1, MPI_INT, NULL));
  FAILS(MPI_ERR_ARG, MPI_Comm_group(MPI_COMM_WORLD, NULL));
  FAILS(MPI_ERR_ARG, MPI_Get_processor_name(NULL, NULL));
  FAILS(MPI_ERR_ARG, MPI_Waitall(2, NULL, MPI_STATUSES_IGNORE));
  FAILS(MPI_ERR_ARG, MPI_Op_create(NULL, 0, (MPI_Op[]){MPI_OP_NULL}));
  FAILS(MPI_ERR_ARG, MPI_Gatherv(&x, 1, MPI_INT, y, NULL, NULL, MPI_INT, 0, MPI_COMM_SELF));
  FAILS(MPI_ERR_ARG, MPI_Get_address(&x, NULL));
  (void)r;
}

/* The text names the function and what is wrong with which argument. */
static void texts(void) {
  char text[MPI_MAX_ERROR_STRING];
  int n;
  CALL(MPI_Error_string(MPI_Send(&x, 1, MPI_INT, size, 0, MPI_COMM_WORLD), text, &n));
  CHECK(strstr(text, "MPI_Send") && strstr(text, "rank"));
  CALL(MPI_Error_string(MPI_Bcast(NULL, 1, MPI_INT, 0, MPI_COMM_WORLD), text, &n));
  CHECK(strstr(text, "MPI_Bcast") && strstr(text, "buffer"));
  CALL(MPI_Error_string(MPI_Type_size((MPI_Datatype)0x999, &n), text, &n));
  CHECK(strstr(text, "MPI_Type_size") && strstr(text, "datatype"));
}
#endif

static void still_works(void) {
  int sum = 0, one = 1, from = -1;
  CALL(MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD));
  CHECK(sum == size);
  CALL(MPI_Sendrecv(&rank, 1, MPI_INT, (rank + 1) % size, 0, &from, 1, MPI_INT, (rank + size - 1) % size, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
  CHECK(from == (rank + size - 1) % size);
}

int main(int argc, char **argv) {
  begin(&argc, &argv);
  arguments();
#ifdef MPI_ABI_VERSION
  handles();
  freed();
  results();
  texts();
#endif
  still_works();
  return end("badinput");
}
