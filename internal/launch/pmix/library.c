//go:build linux

#include "library.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static struct {
	int (*init)(impi_pmix_proc *, impi_pmix_info *, size_t);
	int (*finalize)(const impi_pmix_info *, size_t);
	int (*abort)(int, const char *, impi_pmix_proc *, size_t);
	int (*put)(uint8_t, const char *, impi_pmix_value *);
	int (*commit)(void);
	int (*fence)(const impi_pmix_proc *, size_t, const impi_pmix_info *, size_t);
	int (*get)(const impi_pmix_proc *, const char *, const impi_pmix_info *, size_t, impi_pmix_value **);
	int (*nodes)(const char *, char **);
	int (*peers)(const char *, const char *, impi_pmix_proc **, size_t *);
	int (*handle)(int *, size_t, impi_pmix_info *, size_t, impi_pmix_handler, impi_pmix_registered, void *);
	const char *(*describe)(int);
} lib;

const char *impi_pmix_load(const char *path)
{
	static const struct {
		const char *name;
		void *into;
	} functions[] = {
		{"PMIx_Init", &lib.init},
		{"PMIx_Finalize", &lib.finalize},
		{"PMIx_Abort", &lib.abort},
		{"PMIx_Put", &lib.put},
		{"PMIx_Commit", &lib.commit},
		{"PMIx_Fence", &lib.fence},
		{"PMIx_Get", &lib.get},
		{"PMIx_Resolve_nodes", &lib.nodes},
		{"PMIx_Resolve_peers", &lib.peers},
		{"PMIx_Register_event_handler", &lib.handle},
		{"PMIx_Error_string", &lib.describe},
	};
	void *handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	if (!handle)
		return dlerror();
	for (size_t i = 0; i < sizeof functions / sizeof functions[0]; i++) {
		void *found = dlsym(handle, functions[i].name);
		if (!found)
			return dlerror();
		memcpy(functions[i].into, &found, sizeof found);
	}
	return NULL;
}

/* A key that is set. */
static impi_pmix_info yes(const char *key)
{
	impi_pmix_info i;
	memset(&i, 0, sizeof i);
	strncpy(i.key, key, IMPI_PMIX_MAX_KEY);
	i.value.type = IMPI_PMIX_BOOL;
	i.value.data.flag = true;
	return i;
}

const char *impi_pmix_describe(int status) { return lib.describe(status); }

/* The server is gone, and with it the process manager, which would have ended this process, and
   what reads the output of this process: so nothing is printed. */
static void lost(size_t id, int status, const impi_pmix_proc *source, impi_pmix_info *info, size_t infos,
                 impi_pmix_info *results, size_t count, void (*done)(void), void *data)
{
	_exit(1);
}

static void registered(int status, size_t id, void *data) {}

int impi_pmix_init(impi_pmix_proc *me)
{
	int status = lib.init(me, NULL, 0);
	static int codes[] = {IMPI_PMIX_LOST, IMPI_PMIX_LOST_OLD};
	if (status == IMPI_PMIX_SUCCESS)
		lib.handle(codes, sizeof codes / sizeof codes[0], NULL, 0, lost, registered, NULL);
	return status;
}

int impi_pmix_finalize(void) { return lib.finalize(NULL, 0); }
int impi_pmix_abort(int status, const char *text) { return lib.abort(status, text, NULL, 0); }

int impi_pmix_put(const char *key, char *text)
{
	impi_pmix_value v;
	memset(&v, 0, sizeof v);
	v.type = IMPI_PMIX_STRING;
	v.data.string = text;
	return lib.put(IMPI_PMIX_GLOBAL, key, &v);
}

int impi_pmix_fence(void)
{
	impi_pmix_info collect = yes("pmix.collect");
	int status = lib.commit();
	return status == IMPI_PMIX_SUCCESS ? lib.fence(NULL, 0, &collect, 1) : status;
}

int impi_pmix_get(const impi_pmix_proc *of, const char *key, impi_pmix_value **value)
{
	impi_pmix_info immediate = yes("pmix.immediate");
	*value = NULL;
	return lib.get(of, key, &immediate, 1, value);
}

void impi_pmix_release(impi_pmix_value *value)
{
	if (value && value->type == IMPI_PMIX_STRING)
		free(value->data.string);
	free(value);
}

bool impi_pmix_number(const impi_pmix_value *value, uint32_t *number)
{
	if (!value)
		return false;
	switch (value->type) {
	case IMPI_PMIX_INT:
	case IMPI_PMIX_INT32:
	case IMPI_PMIX_UINT:
	case IMPI_PMIX_UINT32:
		*number = value->data.number;
		return true;
	}
	return false;
}

const char *impi_pmix_text(const impi_pmix_value *value)
{
	return value && value->type == IMPI_PMIX_STRING ? value->data.string : NULL;
}

int impi_pmix_nodes(const char *space, char **names)
{
	*names = NULL;
	return lib.nodes(space, names);
}

int impi_pmix_peers(const char *node, const char *space, impi_pmix_proc **procs, size_t *count)
{
	*procs = NULL;
	*count = 0;
	return lib.peers(node, space, procs, count);
}
