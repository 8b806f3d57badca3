/* Attributes with functions of the program, and those that MPI has by itself. */
#include "test.h"

static int copies, deletions, last_deleted;

static int copy(MPI_Comm comm, int keyval, void *extra, void *in, void *out, int *flag) {
  (void)comm;
  (void)keyval;
  copies += *(int *)extra;
  *(void **)out = (char *)in + 1;
  *flag = 1;
  return MPI_SUCCESS;
}

static int drop(MPI_Comm comm, int keyval, void *value, void *extra) {
  (void)comm;
  (void)keyval;
  (void)extra;
  deletions++;
  last_deleted = (int)(MPI_Aint)value;
  return MPI_SUCCESS;
}

static int refuse(MPI_Comm comm, int keyval, void *value, void *extra) {
  (void)comm;
  (void)keyval;
  (void)value;
  return *(int *)extra;
}

static int type_drop(MPI_Datatype type, int keyval, void *value, void *extra) {
  (void)type;
  (void)keyval;
  (void)extra;
  deletions += (int)(MPI_Aint)value;
  return MPI_SUCCESS;
}

static void own(void) {
  int key, dup_key, null_key, flag, step = 10, code = MPI_ERR_OTHER;
  void *value;
  MPI_Comm comm, twin;
  CALL(MPI_Comm_dup(MPI_COMM_SELF, &comm));
  CALL(MPI_Comm_create_keyval(copy, drop, &key, &step));
  CALL(MPI_Comm_create_keyval(MPI_COMM_DUP_FN, MPI_COMM_NULL_DELETE_FN, &dup_key, NULL));
  CALL(MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, drop, &null_key, NULL));
  CALL(MPI_Comm_get_attr(comm, key, &value, &flag));
  CHECK(!flag);
  CALL(MPI_Comm_set_attr(comm, key, (void *)100));
  CALL(MPI_Comm_set_attr(comm, dup_key, (void *)200));
  CALL(MPI_Comm_set_attr(comm, null_key, (void *)300));
  CALL(MPI_Comm_get_attr(comm, key, &value, &flag));
  CHECK(flag && value == (void *)100);
  CALL(MPI_Comm_dup(comm, &twin));
  CHECK(copies == 10);
  CALL(MPI_Comm_get_attr(twin, key, &value, &flag));
  CHECK(flag && value == (void *)101);
  CALL(MPI_Comm_get_attr(twin, dup_key, &value, &flag));
  CHECK(flag && value == (void *)200);
  CALL(MPI_Comm_get_attr(twin, null_key, &value, &flag));
  CHECK(!flag);
  CALL(MPI_Comm_set_attr(comm, key, (void *)110)); /* the old value is deleted */
  CHECK(deletions == 1 && last_deleted == 100);
  CALL(MPI_Comm_delete_attr(twin, key));
  CHECK(deletions == 2 && last_deleted == 101);
  CALL(MPI_Comm_free(&twin));
  CHECK(deletions == 2);
  CALL(MPI_Comm_free(&comm));
  CHECK(deletions == 4);
  CALL(MPI_Comm_free_keyval(&key));
  CHECK(key == MPI_KEYVAL_INVALID);
  CALL(MPI_Comm_free_keyval(&dup_key));
  CALL(MPI_Comm_free_keyval(&null_key));

  /* A function that refuses: the call fails and the value stays. */
  CALL(MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, refuse, &key, &code));
  CALL(MPI_Comm_set_attr(MPI_COMM_SELF, key, (void *)1));
  CHECK(MPI_Comm_delete_attr(MPI_COMM_SELF, key) != MPI_SUCCESS);
  CALL(MPI_Comm_get_attr(MPI_COMM_SELF, key, &value, &flag));
  CHECK(flag);
  code = MPI_SUCCESS;
  CALL(MPI_Comm_delete_attr(MPI_COMM_SELF, key));
  CALL(MPI_Comm_free_keyval(&key));
}

static void of_types(void) {
  int key, flag, before = deletions;
  void *value;
  MPI_Datatype t, twin;
  CALL(MPI_Type_create_keyval(MPI_TYPE_DUP_FN, type_drop, &key, NULL));
  CALL(MPI_Type_contiguous(3, MPI_INT, &t));
  CALL(MPI_Type_set_attr(t, key, (void *)5));
  CALL(MPI_Type_dup(t, &twin));
  CALL(MPI_Type_get_attr(twin, key, &value, &flag));
  CHECK(flag && value == (void *)5);
  CALL(MPI_Type_free(&t));
  CALL(MPI_Type_free(&twin));
  CHECK(deletions == before + 10);
  CALL(MPI_Type_free_keyval(&key));
}

static void predefined(void) {
  int flag, *value = NULL;
  CALL(MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_TAG_UB, &value, &flag));
  CHECK(flag && *value >= 32767);
  CALL(MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_WTIME_IS_GLOBAL, &value, &flag));
  CHECK(!flag || *value == 0 || *value == 1);
  CALL(MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_LASTUSEDCODE, &value, &flag));
  CHECK(flag && *value >= 0);
  CALL(MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_UNIVERSE_SIZE, &value, &flag));
  CHECK(!flag || *value >= 1);
  CALL(MPI_Attr_get(MPI_COMM_WORLD, MPI_APPNUM, &value, &flag));
  CHECK(!flag || *value == 0);
}

/* Deleting the attributes of MPI_COMM_SELF is how programs hear of the end. */
static int ending(MPI_Comm comm, int keyval, void *value, void *extra) {
  int initialized = 0, finalized = 1;
  (void)comm;
  (void)keyval;
  (void)extra;
  MPI_Initialized(&initialized);
  MPI_Finalized(&finalized);
  if (initialized && !finalized) *(int *)value = 1;
  return MPI_SUCCESS;
}

int main(int argc, char **argv) {
  int key, heard = 0, status;
  begin(&argc, &argv);
  own();
  of_types();
  predefined();
  CALL(MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, ending, &key, NULL));
  CALL(MPI_Comm_set_attr(MPI_COMM_SELF, key, &heard));
  status = end("attributes");
  if (!heard) {
    fprintf(stderr, "the attribute of MPI_COMM_SELF was not deleted\n");
    return 1;
  }
  return status;
}
