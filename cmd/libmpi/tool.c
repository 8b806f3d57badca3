// The tool interface of a library without variables, categories and events: what
// asks how many there are says none, and what asks for one by name finds none. The
// functions that need one are not implemented.

#include <mpi.h>
#include <stdatomic.h>

#define WEAK(name) __attribute__((weak, alias(#name)))

static atomic_int users;

int PMPI_T_init_thread(int required, int *provided)
{
	(void)required;
	if (!provided)
		return MPI_T_ERR_INVALID;
	atomic_fetch_add(&users, 1);
	*provided = MPI_THREAD_MULTIPLE;
	return MPI_SUCCESS;
}
int MPI_T_init_thread(int required, int *provided) WEAK(PMPI_T_init_thread);

int PMPI_T_finalize(void)
{
	int n = atomic_load(&users);
	while (n > 0)
		if (atomic_compare_exchange_weak(&users, &n, n - 1))
			return MPI_SUCCESS;
	return MPI_T_ERR_NOT_INITIALIZED;
}
int MPI_T_finalize(void) WEAK(PMPI_T_finalize);

static int none(int *n)
{
	if (atomic_load(&users) == 0)
		return MPI_T_ERR_NOT_INITIALIZED;
	if (!n)
		return MPI_T_ERR_INVALID;
	*n = 0;
	return MPI_SUCCESS;
}

int PMPI_T_cvar_get_num(int *num_cvar) { return none(num_cvar); }
int MPI_T_cvar_get_num(int *num_cvar) WEAK(PMPI_T_cvar_get_num);

int PMPI_T_pvar_get_num(int *num_pvar) { return none(num_pvar); }
int MPI_T_pvar_get_num(int *num_pvar) WEAK(PMPI_T_pvar_get_num);

int PMPI_T_category_get_num(int *num_cat) { return none(num_cat); }
int MPI_T_category_get_num(int *num_cat) WEAK(PMPI_T_category_get_num);

int PMPI_T_category_changed(int *update_number) { return none(update_number); }
int MPI_T_category_changed(int *update_number) WEAK(PMPI_T_category_changed);

int PMPI_T_source_get_num(int *num_sources) { return none(num_sources); }
int MPI_T_source_get_num(int *num_sources) WEAK(PMPI_T_source_get_num);

int PMPI_T_event_get_num(int *num_events) { return none(num_events); }
int MPI_T_event_get_num(int *num_events) WEAK(PMPI_T_event_get_num);

static int unnamed(const char *name, int *index)
{
	if (atomic_load(&users) == 0)
		return MPI_T_ERR_NOT_INITIALIZED;
	return name && index ? MPI_T_ERR_INVALID_NAME : MPI_T_ERR_INVALID;
}

int PMPI_T_cvar_get_index(const char *name, int *cvar_index) { return unnamed(name, cvar_index); }
int MPI_T_cvar_get_index(const char *name, int *cvar_index) WEAK(PMPI_T_cvar_get_index);

int PMPI_T_pvar_get_index(const char *name, int var_class, int *pvar_index)
{
	(void)var_class;
	return unnamed(name, pvar_index);
}
int MPI_T_pvar_get_index(const char *name, int var_class, int *pvar_index) WEAK(PMPI_T_pvar_get_index);

int PMPI_T_category_get_index(const char *name, int *cat_index) { return unnamed(name, cat_index); }
int MPI_T_category_get_index(const char *name, int *cat_index) WEAK(PMPI_T_category_get_index);

int PMPI_T_event_get_index(const char *name, int *event_index) { return unnamed(name, event_index); }
int MPI_T_event_get_index(const char *name, int *event_index) WEAK(PMPI_T_event_get_index);
