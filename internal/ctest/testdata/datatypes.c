/* Derived datatypes: how they are made, what they are, and what travels. */
#include "test.h"
#include <stddef.h>

/* round_trip sends count of type from one place to another, by way of the
   neighbours, so that it is packed, sent and unpacked. */
static void round_trip(const void *from, void *to, int count, MPI_Datatype type) {
  CALL(MPI_Sendrecv(from, count, type, (rank + 1) % size, 1, to, count, type, (rank + size - 1) % size, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
}

static void sizes(MPI_Datatype t, int want_size, MPI_Aint want_lb, MPI_Aint want_extent) {
  int n;
  MPI_Aint lb, extent;
  CALL(MPI_Type_size(t, &n));
  CALL(MPI_Type_get_extent(t, &lb, &extent));
  if (n != want_size || lb != want_lb || extent != want_extent)
    fprintf(stderr, "size %d lb %ld extent %ld\n", n, (long)lb, (long)extent);
  CHECK(n == want_size);
  CHECK(lb == want_lb && extent == want_extent);
}

static void basic(void) {
  struct long_int { long v; int i; };
  struct short_int { short v; int i; };
  sizes(MPI_CHAR, 1, 0, 1);
  sizes(MPI_SHORT, 2, 0, 2);
  sizes(MPI_INT, sizeof(int), 0, sizeof(int));
  sizes(MPI_LONG, sizeof(long), 0, sizeof(long));
  sizes(MPI_LONG_LONG, 8, 0, 8);
  sizes(MPI_FLOAT, 4, 0, 4);
  sizes(MPI_DOUBLE, 8, 0, 8);
  sizes(MPI_LONG_DOUBLE, sizeof(long double), 0, sizeof(long double));
  sizes(MPI_C_DOUBLE_COMPLEX, 16, 0, 16);
  sizes(MPI_C_BOOL, 1, 0, 1);
  sizes(MPI_WCHAR, sizeof(wchar_t), 0, sizeof(wchar_t));
  sizes(MPI_INT8_T, 1, 0, 1);
  sizes(MPI_UINT64_T, 8, 0, 8);
  sizes(MPI_AINT, sizeof(MPI_Aint), 0, sizeof(MPI_Aint));
  sizes(MPI_DOUBLE_INT, 12, 0, 16);
  sizes(MPI_2INT, 8, 0, 8);
  sizes(MPI_LONG_INT, sizeof(long) + sizeof(int), 0, sizeof(struct long_int));
  sizes(MPI_SHORT_INT, 6, 0, sizeof(struct short_int));
}

static void vectors(void) {
  MPI_Datatype column, block, h;
  int m[6][7], got[6][7], i, j, from = (rank + size - 1) % size;
  for (i = 0; i < 6; i++) for (j = 0; j < 7; j++) m[i][j] = rank * 100 + i * 10 + j;
  CALL(MPI_Type_vector(6, 1, 7, MPI_INT, &column));
  CALL(MPI_Type_commit(&column));
  sizes(column, 6 * sizeof(int), 0, 36 * sizeof(int));
  memset(got, -1, sizeof got);
  round_trip(&m[0][3], &got[0][3], 1, column);
  for (i = 0; i < 6; i++) for (j = 0; j < 7; j++) CHECK(got[i][j] == (j == 3 ? from * 100 + i * 10 + 3 : -1));

  CALL(MPI_Type_create_resized(column, 0, sizeof(int), &block));
  CALL(MPI_Type_commit(&block));
  sizes(block, 6 * sizeof(int), 0, sizeof(int));
  memset(got, -1, sizeof got);
  round_trip(m, got, 7, block); /* all columns: the matrix */
  for (i = 0; i < 6; i++) for (j = 0; j < 7; j++) CHECK(got[i][j] == from * 100 + i * 10 + j);
  CALL(MPI_Type_free(&block));
  CALL(MPI_Type_create_hvector(2, 3, 5 * sizeof(int), MPI_INT, &h));
  sizes(h, 6 * sizeof(int), 0, 8 * sizeof(int));
  CALL(MPI_Type_free(&h));
  CALL(MPI_Type_free(&column));
}

static void structs(void) {
  typedef struct { char c; double d[2]; short s; int i[3]; } record;
  record out[50], in[50];
  int blocks[4] = {1, 2, 1, 3}, i, from = (rank + size - 1) % size;
  MPI_Aint places[4] = {offsetof(record, c), offsetof(record, d), offsetof(record, s), offsetof(record, i)}, base, at;
  MPI_Datatype types[4] = {MPI_CHAR, MPI_DOUBLE, MPI_SHORT, MPI_INT}, t, r;
  CALL(MPI_Type_create_struct(4, blocks, places, types, &t));
  CALL(MPI_Type_create_resized(t, 0, sizeof(record), &r));
  CALL(MPI_Type_commit(&r));
  sizes(r, 1 + 16 + 2 + 12, 0, sizeof(record));
  memset(in, 0x55, sizeof in);
  memset(out, 0, sizeof out);
  for (i = 0; i < 50; i++) {
    out[i].c = (char)(rank + i);
    out[i].d[0] = rank * .5;
    out[i].d[1] = i;
    out[i].s = (short)-i;
    out[i].i[2] = rank * i;
  }
  round_trip(out, in, 50, r);
  for (i = 0; i < 50; i++) {
    CHECK(in[i].c == (char)(from + i) && in[i].d[0] == from * .5 && in[i].d[1] == i && in[i].s == -i && in[i].i[2] == from * i);
    CHECK(((unsigned char *)&in[i])[1] == 0x55); /* a hole stays */
    if (wrong) break;
  }
  CALL(MPI_Type_free(&t));
  CALL(MPI_Type_free(&r));

  /* Absolute addresses. */
  {
    int x = rank, y = -1;
    MPI_Aint address;
    MPI_Datatype from_x, to_y;
    int one = 1;
    CALL(MPI_Get_address(&x, &address));
    CALL(MPI_Type_create_hindexed(1, &one, &address, MPI_INT, &from_x));
    CALL(MPI_Get_address(&y, &address));
    CALL(MPI_Type_create_hindexed(1, &one, &address, MPI_INT, &to_y));
    CALL(MPI_Type_commit(&from_x));
    CALL(MPI_Type_commit(&to_y));
    CALL(MPI_Sendrecv(MPI_BOTTOM, 1, from_x, (rank + 1) % size, 2, MPI_BOTTOM, 1, to_y, from, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    CHECK(y == from);
    CALL(MPI_Type_free(&from_x));
    CALL(MPI_Type_free(&to_y));
  }
  CALL(MPI_Get_address(&out[1], &at));
  CALL(MPI_Get_address(&out[0], &base));
  CHECK(MPI_Aint_diff(at, base) == sizeof(record) && MPI_Aint_add(base, sizeof(record)) == at);
}

static void indexed(void) {
  int lengths[3] = {2, 1, 3}, places[3] = {10, 0, 4}, data[20], got[20], i, from = (rank + size - 1) % size;
  int gsizes[2] = {4, 5}, subsizes[2] = {2, 3}, starts[2] = {1, 2};
  MPI_Datatype t, b, sub, twin;
  for (i = 0; i < 20; i++) data[i] = rank * 100 + i;
  CALL(MPI_Type_indexed(3, lengths, places, MPI_INT, &t));
  CALL(MPI_Type_commit(&t));
  sizes(t, 6 * sizeof(int), 0, 12 * sizeof(int));
  memset(got, -1, sizeof got);
  round_trip(data, got, 1, t);
  for (i = 0; i < 20; i++) CHECK(got[i] == (i == 0 || (i >= 4 && i < 7) || i == 10 || i == 11 ? from * 100 + i : -1));
  /* The order is that of the blocks: a receive of plain ints shows it. */
  CALL(MPI_Sendrecv(data, 1, t, (rank + 1) % size, 3, got, 6, MPI_INT, from, 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
  CHECK(got[0] == from * 100 + 10 && got[2] == from * 100 && got[5] == from * 100 + 6);
  CALL(MPI_Type_create_indexed_block(3, 2, places, MPI_INT, &b));
  sizes(b, 6 * sizeof(int), 0, 12 * sizeof(int));
  CALL(MPI_Type_create_subarray(2, gsizes, subsizes, starts, MPI_ORDER_C, MPI_INT, &sub));
  CALL(MPI_Type_commit(&sub));
  sizes(sub, 6 * sizeof(int), 0, 20 * sizeof(int));
  memset(got, -1, sizeof got);
  round_trip(data, got, 1, sub);
  for (i = 0; i < 20; i++) CHECK(got[i] == (i / 5 >= 1 && i / 5 < 3 && i % 5 >= 2 ? from * 100 + i : -1));
  CALL(MPI_Type_dup(sub, &twin));
  memset(got, -1, sizeof got);
  round_trip(data, got, 1, twin);
  CHECK(got[7] == from * 100 + 7);
  CALL(MPI_Type_free(&t));
  CALL(MPI_Type_free(&b));
  CALL(MPI_Type_free(&sub));
  CALL(MPI_Type_free(&twin));
}

static void contents(void) {
  MPI_Datatype v, back[1];
  int ni, na, nd, combiner, ints[3];
  MPI_Aint addresses[1];
  CALL(MPI_Type_vector(5, 2, 9, MPI_DOUBLE, &v));
  CALL(MPI_Type_get_envelope(v, &ni, &na, &nd, &combiner));
  CHECK(ni == 3 && na == 0 && nd == 1 && combiner == MPI_COMBINER_VECTOR);
  CALL(MPI_Type_get_contents(v, 3, 0, 1, ints, addresses, back));
  CHECK(ints[0] == 5 && ints[1] == 2 && ints[2] == 9 && back[0] == MPI_DOUBLE);
  CALL(MPI_Type_free(&v));
  CALL(MPI_Type_get_envelope(MPI_INT, &ni, &na, &nd, &combiner));
  CHECK(combiner == MPI_COMBINER_NAMED);
}

static void packing(void) {
  MPI_Datatype pair;
  char buffer[1000], name[MPI_MAX_OBJECT_NAME];
  int position = 0, n = rank, i, bound, len;
  double x[3] = {1.5, rank, -2}, y[3];
  MPI_Aint space, at = 0;
  CALL(MPI_Pack_size(3, MPI_DOUBLE, MPI_COMM_WORLD, &bound));
  CHECK(bound >= 24);
  CALL(MPI_Pack(&n, 1, MPI_INT, buffer, sizeof buffer, &position, MPI_COMM_WORLD));
  CALL(MPI_Pack(x, 3, MPI_DOUBLE, buffer, sizeof buffer, &position, MPI_COMM_WORLD));
  CALL(MPI_Bcast(&position, 1, MPI_INT, 0, MPI_COMM_WORLD));
  CALL(MPI_Bcast(buffer, position, MPI_PACKED, size - 1, MPI_COMM_WORLD));
  i = position;
  position = 0;
  CALL(MPI_Unpack(buffer, i, &position, &n, 1, MPI_INT, MPI_COMM_WORLD));
  CALL(MPI_Unpack(buffer, i, &position, y, 3, MPI_DOUBLE, MPI_COMM_WORLD));
  CHECK(n == size - 1 && y[0] == 1.5 && y[1] == size - 1 && y[2] == -2 && position == i);
  CALL(MPI_Pack_external_size("external32", 2, MPI_INT, &space));
  CHECK(space == 8);
  n = 0x01020304;
  CALL(MPI_Pack_external("external32", &n, 1, MPI_INT, buffer, sizeof buffer, &at));
  CHECK(at == 4 && buffer[0] == 1 && buffer[3] == 4);
  CALL(MPI_Type_get_name(MPI_INT, name, &len));
  CHECK(strcmp(name, "MPI_INT") == 0 && len == 7);
  CALL(MPI_Type_get_name(MPI_DATATYPE_NULL, name, &len));
  CHECK(strcmp(name, "MPI_DATATYPE_NULL") == 0 && len == 17);
  CALL(MPI_Type_get_value_index(MPI_DOUBLE, MPI_INT, &pair));
  CHECK(pair == MPI_DOUBLE_INT);
  CALL(MPI_Type_get_value_index(MPI_INT64_T, MPI_INT, &pair)); /* of the same form, and known */
  CHECK(sizeof(long) == 8 ? pair == MPI_LONG_INT : pair == MPI_DATATYPE_NULL);
  CALL(MPI_Type_get_value_index(MPI_BYTE, MPI_INT, &pair));
  CHECK(pair == MPI_DATATYPE_NULL);
}

/* A message that ends in the middle of an element. */
static void parts(void) {
  MPI_Datatype pair;
  MPI_Status s;
  int ints[7] = {0}, n;
  CALL(MPI_Type_contiguous(2, MPI_INT, &pair));
  CALL(MPI_Type_commit(&pair));
  CALL(MPI_Sendrecv(ints, 3, MPI_INT, (rank + 1) % size, 5, ints + 3, 2, pair, (rank + size - 1) % size, 5, MPI_COMM_WORLD, &s));
  CALL(MPI_Get_count(&s, pair, &n));
  CHECK(n == MPI_UNDEFINED);
  CALL(MPI_Get_elements(&s, pair, &n));
  CHECK(n == 3);
  CALL(MPI_Type_free(&pair));
}

int main(int argc, char **argv) {
  begin(&argc, &argv);
  basic();
  vectors();
  structs();
  indexed();
  contents();
  packing();
  parts();
  return end("datatypes");
}
