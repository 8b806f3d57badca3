/* libpmix, loaded at run time. Functions give what PMIx gives: 0, or a negative status. */
#ifndef IMPI_PMIX_LIBRARY_H
#define IMPI_PMIX_LIBRARY_H

#include "abi.h"

/* NULL, or why the library cannot be used. Text is dlerror's, or the caller's own. */
const char *impi_pmix_load(const char *path);

const char *impi_pmix_describe(int status);
int impi_pmix_init(impi_pmix_proc *me);
int impi_pmix_finalize(void);
int impi_pmix_abort(int status, const char *text);
int impi_pmix_put(const char *key, char *text);
int impi_pmix_fence(void);

/* A value is the caller's, to be freed by impi_pmix_release. It does not wait for one to be put. */
int impi_pmix_get(const impi_pmix_proc *of, const char *key, impi_pmix_value **value);
void impi_pmix_release(impi_pmix_value *value);

/* The number of a value; false: it is none. The text of a value; NULL: it has none. */
bool impi_pmix_number(const impi_pmix_value *value, uint32_t *number);
const char *impi_pmix_text(const impi_pmix_value *value);

/* The results are the caller's, to be freed. */
int impi_pmix_nodes(const char *space, char **names);
int impi_pmix_peers(const char *node, const char *space, impi_pmix_proc **procs, size_t *count);

#endif
