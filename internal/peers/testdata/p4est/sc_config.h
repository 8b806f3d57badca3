/* What configure of libsc, which p4est is built on, would find out. */
#ifndef SC_CONFIG_H
#define SC_CONFIG_H
#define SC_CC "impicc"
#define SC_CPP ""
#define SC_CFLAGS ""
#define SC_CPPFLAGS ""
#define SC_LDFLAGS ""
#define SC_LIBS ""
#define SC_PACKAGE_STRING "libsc"
#define SC_PACKAGE_VERSION "2.2"
#define SC_ENABLE_DEBUG 1
#define SC_HAVE_ZLIB 1
#define SC_ENABLE_MPI 1
#define SC_ENABLE_MPICOMMSHARED 1
#define SC_ENABLE_MPIIO 1
#define SC_ENABLE_MPITHREAD 1
#define SC_ENABLE_MPIWINSHARED 1
#define SC_ENABLE_USE_REALLOC 1
#define SC_HAVE_SIGNAL_H 1
#define SC_HAVE_STRTOLL 1
#define SC_HAVE_SYS_TIME_H 1
#define SC_HAVE_SYS_TYPES_H 1
#define SC_HAVE_TIME_H 1
#define SC_HAVE_UNISTD_H 1
#define SC_SIZEOF_INT 4
#define SC_SIZEOF_UNSIGNED_INT 4
#define SC_SIZEOF_LONG 8
#define SC_SIZEOF_LONG_LONG 8
#define SC_SIZEOF_UNSIGNED_LONG 8
#define SC_SIZEOF_UNSIGNED_LONG_LONG 8
#define SC_SIZEOF_VOID_P 8
#endif
