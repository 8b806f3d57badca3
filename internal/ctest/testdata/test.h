/*
 * What the test programs share. A program counts what is wrong, tells where,
 * and ends with status 1 if there is anything; rank 0 prints "OK" and the
 * program's name behind MPI_Finalize. The programs run with any MPI; what only
 * the standard ABI promises stands in #ifdef MPI_ABI_VERSION.
 */
#ifndef TEST_H
#define TEST_H

#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int wrong, rank = -1, size = -1;

#define CHECK(what)                                                          \
  do {                                                                       \
    if (!(what)) {                                                           \
      fprintf(stderr, "rank %d: %s:%d: not so: %s\n", rank, __FILE__,        \
              __LINE__, #what);                                              \
      wrong++;                                                               \
    }                                                                        \
  } while (0)

/* CALL wants a function to succeed. */
#define CALL(call)                                                           \
  do {                                                                       \
    int code_ = (call);                                                      \
    if (code_ != MPI_SUCCESS) explain(code_, #call, __LINE__);               \
  } while (0)

/* FAILS wants a function to fail with an error of that class. */
#define FAILS(class_, call)                                                  \
  do {                                                                       \
    int code_ = (call), got_ = -1;                                           \
    MPI_Error_class(code_, &got_);                                           \
    if (got_ != (class_)) {                                                  \
      fprintf(stderr, "rank %d: line %d: %s gave class %d, not %s (%d)\n",   \
              rank, __LINE__, #call, got_, #class_, class_);                 \
      if (code_ != MPI_SUCCESS) explain(code_, #call, __LINE__);             \
      wrong++;                                                               \
    }                                                                        \
  } while (0)

static inline void explain(int code, const char *call, int line) {
  char text[MPI_MAX_ERROR_STRING];
  int n = 0;
  MPI_Error_string(code, text, &n);
  fprintf(stderr, "rank %d: line %d: %s: %.*s\n", rank, line, call, n, text);
  wrong++;
}

/* begin starts MPI. Errors are returned. */
static inline void begin(int *argc, char ***argv) {
  CALL(MPI_Init(argc, argv));
  CALL(MPI_Comm_rank(MPI_COMM_WORLD, &rank));
  CALL(MPI_Comm_size(MPI_COMM_WORLD, &size));
  CALL(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN));
  CALL(MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN));
}

/* end ends MPI and gives the program's exit status. */
static inline int end(const char *name) {
  int all = wrong;
  MPI_Allreduce(&wrong, &all, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  wrong = all;
  CALL(MPI_Finalize());
  if (rank == 0 && wrong == 0) printf("OK %s\n", name);
  return wrong ? 1 : 0;
}

/* fill and filled write and compare bytes that depend on seed and place. */
static inline void fill(void *buf, size_t n, unsigned seed) {
  unsigned char *p = (unsigned char *)buf;
  size_t i;
  for (i = 0; i < n; i++) p[i] = (unsigned char)(seed * 31 + i * 7 + i / 251);
}

static inline int filled(const void *buf, size_t n, unsigned seed) {
  const unsigned char *p = (const unsigned char *)buf;
  size_t i;
  for (i = 0; i < n; i++)
    if (p[i] != (unsigned char)(seed * 31 + i * 7 + i / 251)) return 0;
  return 1;
}

#endif
