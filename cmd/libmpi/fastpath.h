// What C code uses to do calls without Go: the memory that it shares with Go, whose layout is
// generated from Go's (docs/shared-memory.md), and what C alone defines.

#ifndef IMPI_FAST_PATH_H
#define IMPI_FAST_PATH_H

#include "fastpath_layout.h"

// FETCH bytes of lent memory are read at a time. TEAM_LONG bytes of an operation of the site's MPI
// count as one more operation.
enum { FETCH = 1 << 20, TEAM_LONG = 4 << 10 };

// CARRIED receives from a carrier count as one of STREAK.
enum { CARRIED = 16 };

// What Go tells about datatypes and memory: the bytes of an element of each predefined type
// that is memory as it stands, or 0; and pages that Go has found readable, or writable.
enum { TYPES = 1024, PAGES = 4096, PAGE_SHIFT = 12 };

extern struct fastpath impi_fast_path;
extern uint8_t impi_width[TYPES], impi_kind[TYPES];

// How numbers of a predefined type are combined, or 0: as integers of so many bytes, signed or not,
// as floats, as bits alone, or as truths.
enum { SIGNED = 16, UNSIGNED = 32, FLOAT = 48, BITS = 64, TRUTH = 80, SORT = 112, BYTES = 15 };
extern uint8_t impi_number[TYPES];

// The predefined operations, by handle; 0 for others.
enum { OP_HANDLES = 64 };
extern uint8_t impi_op[OP_HANDLES];

// The numbers of the site's MPI for predefined types and operations, and 1 more, by handle; 0:
// none.
extern uint8_t impi_site_type[TYPES], impi_site_op[OP_HANDLES];
extern _Atomic uintptr_t impi_readable[PAGES], impi_writable[PAGES];

#endif
