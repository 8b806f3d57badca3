/* Does not compile if abi.h differs from PMIx's header, or library.c calls what PMIx declares
 * otherwise. */
#include <pmix.h>

#include "../abi.h"

#define SAME(ours, theirs) _Static_assert((ours) == (theirs), #ours)
#define FIELD(a, f, b, g) SAME(offsetof(a, f), offsetof(b, g))

SAME(IMPI_PMIX_MAX_NAMESPACE, PMIX_MAX_NSLEN);
SAME(IMPI_PMIX_MAX_KEY, PMIX_MAX_KEYLEN);
SAME(IMPI_PMIX_RANK_ALL, PMIX_RANK_WILDCARD);
SAME(IMPI_PMIX_GLOBAL, PMIX_GLOBAL);
SAME(IMPI_PMIX_BOOL, PMIX_BOOL);
SAME(IMPI_PMIX_STRING, PMIX_STRING);
SAME(IMPI_PMIX_INT, PMIX_INT);
SAME(IMPI_PMIX_INT32, PMIX_INT32);
SAME(IMPI_PMIX_UINT, PMIX_UINT);
SAME(IMPI_PMIX_UINT32, PMIX_UINT32);
SAME(IMPI_PMIX_SUCCESS, PMIX_SUCCESS);
SAME(IMPI_PMIX_NOT_FOUND, PMIX_ERR_NOT_FOUND);
SAME(IMPI_PMIX_LOST, PMIX_ERR_LOST_CONNECTION);
#ifdef PMIX_ERR_LOST_CONNECTION_TO_SERVER
SAME(IMPI_PMIX_LOST_OLD, PMIX_ERR_LOST_CONNECTION_TO_SERVER);
#endif

SAME(sizeof(impi_pmix_proc), sizeof(pmix_proc_t));
FIELD(impi_pmix_proc, rank, pmix_proc_t, rank);
SAME(sizeof(impi_pmix_value), sizeof(pmix_value_t));
FIELD(impi_pmix_value, data, pmix_value_t, data);
SAME(sizeof(((impi_pmix_value *)0)->type), sizeof(pmix_data_type_t));
SAME(sizeof(impi_pmix_info), sizeof(pmix_info_t));
FIELD(impi_pmix_info, flags, pmix_info_t, flags);
FIELD(impi_pmix_info, value, pmix_info_t, value);

/* The names of keys, as library.c and pmix.go have them, and the kinds of arguments. */
SAME(__builtin_strcmp(PMIX_COLLECT_DATA, "pmix.collect"), 0);
SAME(__builtin_strcmp(PMIX_IMMEDIATE, "pmix.immediate"), 0);
SAME(__builtin_strcmp(PMIX_JOB_SIZE, "pmix.job.size"), 0);
SAME(__builtin_strcmp(PMIX_HOSTNAME, "pmix.hname"), 0);
SAME(__builtin_strcmp(PMIX_APPNUM, "pmix.appnum"), 0);

int (*init)(pmix_proc_t *, pmix_info_t *, size_t) = PMIx_Init;
int (*finalize)(const pmix_info_t *, size_t) = PMIx_Finalize;
int (*quit)(int, const char *, pmix_proc_t *, size_t) = PMIx_Abort;
int (*put)(uint8_t, const char *, pmix_value_t *) = PMIx_Put;
int (*commit)(void) = PMIx_Commit;
int (*fence)(const pmix_proc_t *, size_t, const pmix_info_t *, size_t) = PMIx_Fence;
int (*get)(const pmix_proc_t *, const char *, const pmix_info_t *, size_t, pmix_value_t **) = PMIx_Get;
int (*nodes)(const char *, char **) = PMIx_Resolve_nodes;
int (*peers)(const char *, const char *, pmix_proc_t **, size_t *) = PMIx_Resolve_peers;
int (*handle)(int *, size_t, pmix_info_t *, size_t, pmix_notification_fn_t, void (*)(int, size_t, void *), void *) =
	PMIx_Register_event_handler;
void (*handler)(size_t, int, const pmix_proc_t *, pmix_info_t *, size_t, pmix_info_t *, size_t,
                pmix_event_notification_cbfunc_fn_t, void *) = (pmix_notification_fn_t)0;
const char *(*describe)(int) = PMIx_Error_string;
