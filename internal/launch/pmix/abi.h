/* What is used of PMIx's interface, from version 2 of its library on. TestABI compares it with
 * pmix.h. */
#ifndef IMPI_PMIX_ABI_H
#define IMPI_PMIX_ABI_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define IMPI_PMIX_MAX_NAMESPACE 255
#define IMPI_PMIX_MAX_KEY 511

#define IMPI_PMIX_RANK_ALL (UINT32_MAX - 1) /* of what concerns the job, not a process */
#define IMPI_PMIX_GLOBAL 3                  /* the scope of what all may get */

enum { /* types of values */
	IMPI_PMIX_BOOL = 1,
	IMPI_PMIX_STRING = 3,
	IMPI_PMIX_INT = 6,
	IMPI_PMIX_INT32 = 9,
	IMPI_PMIX_UINT = 11,
	IMPI_PMIX_UINT32 = 14,
};

enum { /* results */
	IMPI_PMIX_SUCCESS = 0,
	IMPI_PMIX_NOT_FOUND = -46,
	IMPI_PMIX_LOST = -61,      /* the connection to the server */
	IMPI_PMIX_LOST_OLD = -101, /* the same, before version 4 */
};

typedef struct {
	char space[IMPI_PMIX_MAX_NAMESPACE + 1];
	uint32_t rank;
} impi_pmix_proc;

typedef struct {
	uint16_t type;
	union {
		bool flag;
		char *string;
		uint32_t number;
		uint64_t wide;
		double real;
		struct {
			char *name, *value;
			char separator;
		} largest;
	} data;
} impi_pmix_value;

typedef struct {
	char key[IMPI_PMIX_MAX_KEY + 1];
	uint32_t flags;
	impi_pmix_value value;
} impi_pmix_info;

/* What is called when something has happened, and when it is known that it will be. */
typedef void (*impi_pmix_handler)(size_t id, int status, const impi_pmix_proc *source, impi_pmix_info *info, size_t infos,
                                  impi_pmix_info *results, size_t count, void (*done)(void), void *data);
typedef void (*impi_pmix_registered)(int status, size_t id, void *data);

#endif
