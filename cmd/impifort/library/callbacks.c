// Functions of the program, which the library calls as those of C. Those of attributes, requests
// and representations get a pointer of ours, by which the function of Fortran is found; operations
// and error handlers get none, so that each has a function of C of its own.

#include "fortran.h"
#include <pthread.h>

static void done(integer *ierror, int code)
{
	if (ierror != NULL)
		*ierror = code;
}

static int noMemory(void)
{
	impi_raise(MPI_ERR_NO_MEM, NULL, NULL, NULL);
	return MPI_ERR_NO_MEM;
}

// Attributes.

typedef void copier(integer *old, integer *keyval, MPI_Aint *extra, MPI_Aint *in, MPI_Aint *out, integer *flag, integer *ierror);
typedef void deleter(integer *object, integer *keyval, MPI_Aint *value, MPI_Aint *extra, integer *ierror);

// keyval is never freed: objects may keep attributes for longer than their key lives.
struct keyval {
	copier *copy;
	deleter *delete;
	MPI_Aint extra;
};

// What Fortran sets is an integer, and C gets the address of one: a box has it. Boxes are known by
// their addresses, since C may set attributes under the same key. One is freed with its attribute,
// if the key is of Fortran.
struct box {
	MPI_Aint value;
	struct box *next;
};

static struct box *boxes[1024];
static pthread_mutex_t boxing = PTHREAD_MUTEX_INITIALIZER;

// lookFor finds what leads to a box; nothing of what is at the address is read.
static struct box **lookFor(void *at)
{
	struct box **b = &boxes[((uintptr_t)at >> 4) % 1024];

	while (*b != NULL && *b != at)
		b = &(*b)->next;
	return b;
}

// boxed makes a box.
static void *boxed(MPI_Aint value)
{
	struct box *b = malloc(sizeof *b);

	if (b == NULL)
		return NULL;
	pthread_mutex_lock(&boxing);
	*b = (struct box){value, boxes[((uintptr_t)b >> 4) % 1024]};
	boxes[((uintptr_t)b >> 4) % 1024] = b;
	pthread_mutex_unlock(&boxing);
	return b;
}

// unboxed is the value of an attribute: what is in its box, or what C has set.
static MPI_Aint unboxed(void *at)
{
	pthread_mutex_lock(&boxing);
	struct box *b = *lookFor(at);
	MPI_Aint value = b != NULL ? b->value : (MPI_Aint)at;
	pthread_mutex_unlock(&boxing);
	return value;
}

static void unbox(void *at)
{
	pthread_mutex_lock(&boxing);
	struct box **b = lookFor(at), *it = *b;
	if (it != NULL)
		*b = it->next;
	pthread_mutex_unlock(&boxing);
	free(it);
}

// The functions that MPI has.
#define PREDEFINED(kind)                                                                                                               \
	void mpi_##kind##null_copy_fn_(integer *old, integer *keyval, MPI_Aint *extra, MPI_Aint *in, MPI_Aint *out, integer *flag, integer *ierror) \
	{                                                                                                                              \
		(void)old, (void)keyval, (void)extra, (void)in, (void)out;                                                             \
		*flag = 0;                                                                                                             \
		done(ierror, MPI_SUCCESS);                                                                                             \
	}                                                                                                                              \
	void mpi_##kind##dup_fn_(integer *old, integer *keyval, MPI_Aint *extra, MPI_Aint *in, MPI_Aint *out, integer *flag, integer *ierror) \
	{                                                                                                                              \
		(void)old, (void)keyval, (void)extra;                                                                                  \
		*out = *in;                                                                                                            \
		*flag = 1;                                                                                                             \
		done(ierror, MPI_SUCCESS);                                                                                             \
	}                                                                                                                              \
	void mpi_##kind##null_delete_fn_(integer *object, integer *keyval, MPI_Aint *value, MPI_Aint *extra, integer *ierror)           \
	{                                                                                                                              \
		(void)object, (void)keyval, (void)value, (void)extra;                                                                  \
		done(ierror, MPI_SUCCESS);                                                                                             \
	}
PREDEFINED(comm_)
PREDEFINED(type_)
PREDEFINED(win_)

#define KEYVALS(lower, upper, Kind, type)                                                                                     \
	static int copy_##lower(type old, int keyval, void *extra, void *in, void *out, int *flag)                            \
	{                                                                                                                     \
		struct keyval *k = extra;                                                                                     \
		integer o = MPI_##Kind##_toint(old), key = keyval, f = 0, code = MPI_SUCCESS;                                 \
		MPI_Aint value = unboxed(in), result = 0;                                                                     \
		k->copy(&o, &key, &k->extra, &value, &result, &f, &code);                                                     \
		if ((*flag = f != 0) && (*(void **)out = boxed(result)) == NULL)                                              \
			return noMemory();                                                                                    \
		return impi_int(code);                                                                                        \
	}                                                                                                                     \
	static int delete_##lower(type object, int keyval, void *attribute, void *extra)                                      \
	{                                                                                                                     \
		struct keyval *k = extra;                                                                                     \
		integer o = MPI_##Kind##_toint(object), key = keyval, code = MPI_SUCCESS;                                     \
		MPI_Aint value = unboxed(attribute);                                                                          \
		k->delete(&o, &key, &value, &k->extra, &code);                                                                \
		if (code == MPI_SUCCESS)                                                                                      \
			unbox(attribute);                                                                                     \
		return impi_int(code);                                                                                        \
	}                                                                                                                     \
	void pmpi_##lower##_create_keyval_(copier *copy, deleter *delete, integer *keyval, MPI_Aint *extra, integer *ierror)  \
	{                                                                                                                     \
		int key = MPI_KEYVAL_INVALID, code;                                                                           \
		struct keyval *k = malloc(sizeof *k);                                                                         \
		if (k == NULL) {                                                                                              \
			done(ierror, noMemory());                                                                             \
			return;                                                                                               \
		}                                                                                                             \
		*k = (struct keyval){copy, delete, *extra};                                                                   \
		code = MPI_##Kind##_create_keyval(                                                                            \
			copy == mpi_##lower##_null_copy_fn_ ? MPI_##upper##_NULL_COPY_FN : copy_##lower, delete_##lower, &key, k); \
		if (code == MPI_SUCCESS)                                                                                      \
			*keyval = key;                                                                                        \
		else                                                                                                          \
			free(k);                                                                                              \
		done(ierror, code);                                                                                           \
	}                                                                                                                     \
	NAMES(lower##_create_keyval)                                                                                          \
	void pmpi_##lower##_get_attr_(integer *object, integer *keyval, MPI_Aint *value, integer *flag, integer *ierror)      \
	{                                                                                                                     \
		void *at = NULL;                                                                                              \
		int found = 0, key = impi_int(*keyval), code = MPI_##Kind##_get_attr(MPI_##Kind##_fromint(impi_int(*object)), key, &at, &found); \
		if (code == MPI_SUCCESS) {                                                                                    \
			*flag = found;                                                                                        \
			if (found)                                                                                            \
				*value = impi_value_##lower(key, at);                                                         \
		}                                                                                                             \
		done(ierror, code);                                                                                           \
	}                                                                                                                     \
	NAMES(lower##_get_attr)                                                                                               \
	void pmpi_##lower##_set_attr_(integer *object, integer *keyval, MPI_Aint *value, integer *ierror)                     \
	{                                                                                                                     \
		void *at = boxed(*value);                                                                                     \
		int code = at == NULL ? noMemory() : MPI_##Kind##_set_attr(MPI_##Kind##_fromint(impi_int(*object)), impi_int(*keyval), at); \
		if (code != MPI_SUCCESS)                                                                                      \
			unbox(at);                                                                                            \
		done(ierror, code);                                                                                           \
	}                                                                                                                     \
	NAMES(lower##_set_attr)

// Of attributes that MPI has by itself, C gets the address of an integer, Fortran the integer.
static MPI_Aint impi_value_comm(int keyval, void *at)
{
	return keyval >= MPI_TAG_UB && keyval <= MPI_UNIVERSE_SIZE ? *(int *)at : unboxed(at);
}

static MPI_Aint impi_value_type(int keyval, void *at)
{
	(void)keyval;
	return unboxed(at);
}

static MPI_Aint impi_value_win(int keyval, void *at)
{
	switch (keyval) {
	case MPI_WIN_SIZE:
		return *(MPI_Aint *)at;
	case MPI_WIN_DISP_UNIT:
	case MPI_WIN_CREATE_FLAVOR:
	case MPI_WIN_MODEL:
		return *(int *)at;
	case MPI_WIN_BASE:
		return (MPI_Aint)at;
	}
	return unboxed(at);
}

KEYVALS(comm, COMM, Comm, MPI_Comm)
KEYVALS(type, TYPE, Type, MPI_Datatype)
KEYVALS(win, WIN, Win, MPI_Win)

// The older ones, whose values are INTEGERs.

typedef void oldCopier(integer *old, integer *keyval, integer *extra, integer *in, integer *out, integer *flag, integer *ierror);
typedef void oldDeleter(integer *comm, integer *keyval, integer *value, integer *extra, integer *ierror);

struct oldKeyval {
	oldCopier *copy;
	oldDeleter *delete;
	integer extra;
};

void mpi_null_copy_fn_(integer *old, integer *keyval, integer *extra, integer *in, integer *out, integer *flag, integer *ierror)
{
	(void)old, (void)keyval, (void)extra, (void)in, (void)out;
	*flag = 0;
	done(ierror, MPI_SUCCESS);
}

void mpi_dup_fn_(integer *old, integer *keyval, integer *extra, integer *in, integer *out, integer *flag, integer *ierror)
{
	(void)old, (void)keyval, (void)extra;
	*out = *in;
	*flag = 1;
	done(ierror, MPI_SUCCESS);
}

void mpi_null_delete_fn_(integer *comm, integer *keyval, integer *value, integer *extra, integer *ierror)
{
	(void)comm, (void)keyval, (void)value, (void)extra;
	done(ierror, MPI_SUCCESS);
}

static int oldCopy(MPI_Comm old, int keyval, void *extra, void *in, void *out, int *flag)
{
	struct oldKeyval *k = extra;
	integer o = MPI_Comm_toint(old), key = keyval, value = (integer)unboxed(in), result = 0, f = 0, code = MPI_SUCCESS;

	k->copy(&o, &key, &k->extra, &value, &result, &f, &code);
	if ((*flag = f != 0) && (*(void **)out = boxed(result)) == NULL)
		return noMemory();
	return impi_int(code);
}

static int oldDelete(MPI_Comm comm, int keyval, void *attribute, void *extra)
{
	struct oldKeyval *k = extra;
	integer o = MPI_Comm_toint(comm), key = keyval, value = (integer)unboxed(attribute), code = MPI_SUCCESS;

	k->delete(&o, &key, &value, &k->extra, &code);
	if (code == MPI_SUCCESS)
		unbox(attribute);
	return impi_int(code);
}

void pmpi_keyval_create_(oldCopier *copy, oldDeleter *delete, integer *keyval, integer *extra, integer *ierror)
{
	int key = MPI_KEYVAL_INVALID, code;
	struct oldKeyval *k = malloc(sizeof *k);

	if (k == NULL) {
		done(ierror, noMemory());
		return;
	}
	*k = (struct oldKeyval){copy, delete, *extra};
	code = MPI_Keyval_create(oldCopy, oldDelete, &key, k);
	if (code == MPI_SUCCESS)
		*keyval = key;
	else
		free(k);
	done(ierror, code);
}
NAMES(keyval_create)

void pmpi_attr_put_(integer *comm, integer *keyval, integer *value, integer *ierror)
{
	void *at = boxed(*value);
	int code = at == NULL ? noMemory() : MPI_Attr_put(MPI_Comm_fromint(impi_int(*comm)), impi_int(*keyval), at);

	if (code != MPI_SUCCESS)
		unbox(at);
	done(ierror, code);
}
NAMES(attr_put)

void pmpi_attr_get_(integer *comm, integer *keyval, integer *value, integer *flag, integer *ierror)
{
	void *at = NULL;
	int found = 0, key = impi_int(*keyval), code = MPI_Attr_get(MPI_Comm_fromint(impi_int(*comm)), key, &at, &found);

	if (code == MPI_SUCCESS) {
		*flag = found;
		if (found)
			*value = (integer)impi_value_comm(key, at);
	}
	done(ierror, code);
}
NAMES(attr_get)

// Functions without a pointer of ours. There are FUNCTIONS of each kind; one of C belongs for ever
// to the function of Fortran that had it first, for the library may still work with it when the
// program has freed what it belonged to.

#define FUNCTIONS 32
#define EACH(F, x)                                                                     \
	F(0, x) F(1, x) F(2, x) F(3, x) F(4, x) F(5, x) F(6, x) F(7, x)                \
	F(8, x) F(9, x) F(10, x) F(11, x) F(12, x) F(13, x) F(14, x) F(15, x)          \
	F(16, x) F(17, x) F(18, x) F(19, x) F(20, x) F(21, x) F(22, x) F(23, x)        \
	F(24, x) F(25, x) F(26, x) F(27, x) F(28, x) F(29, x) F(30, x) F(31, x)

typedef void function(void);

// place is the number of a function, or -1 if all are taken.
static int place(function **all, function *f)
{
	for (int i = 0; i < FUNCTIONS; i++) {
		function *free = NULL;
		if (__atomic_compare_exchange_n(&all[i], &free, f, 0, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST) || free == f)
			return i;
	}
	return -1;
}

// Operations. With INTEGERs of 8 bytes all are for large counts.

#define OPERATION(n, x)                                                                      \
	static void x##n(void *in, void *inout, x##_int *length, MPI_Datatype *type)         \
	{                                                                                    \
		integer t = MPI_Type_toint(*type);                                           \
		((void (*)(void *, void *, x##_int *, integer *))x##s[n])(in, inout, length, &t); \
	}
#define NAMED(n, x) x##n,

typedef MPI_Count large_int;
static function *larges[FUNCTIONS];
EACH(OPERATION, large)
static MPI_User_function_c *const largeCalls[] = {EACH(NAMED, large)};

static void large(function *f, integer *commute, integer *op, integer *ierror)
{
	int i = place(larges, f), code = MPI_SUCCESS;
	MPI_Op made = 0;

	code = i < 0 ? noMemory() : MPI_Op_create_c(largeCalls[i], impi_int(*commute), &made);
	if (code == MPI_SUCCESS)
		*op = MPI_Op_toint(made);
	done(ierror, code);
}

void pmpi_op_create_c_(function *f, integer *commute, integer *op, integer *ierror) { large(f, commute, op, ierror); }
NAMES(op_create_c)

#ifdef IMPI_INTEGER8
void pmpi_op_create_(function *f, integer *commute, integer *op, integer *ierror) { large(f, commute, op, ierror); }
#else
typedef int small_int;
static function *smalls[FUNCTIONS];
EACH(OPERATION, small)
static MPI_User_function *const smallCalls[] = {EACH(NAMED, small)};

void pmpi_op_create_(function *f, integer *commute, integer *op, integer *ierror)
{
	int i = place(smalls, f), code = MPI_SUCCESS;
	MPI_Op made = 0;

	code = i < 0 ? noMemory() : MPI_Op_create(smallCalls[i], impi_int(*commute), &made);
	if (code == MPI_SUCCESS)
		*op = MPI_Op_toint(made);
	done(ierror, code);
}
#endif
NAMES(op_create)

// Error handlers.

#define HANDLER(n, Kind)                                                       \
	static void Kind##n(MPI_##Kind *object, int *code, ...)                \
	{                                                                      \
		integer o = MPI_##Kind##_toint(*object), c = *code;            \
		((void (*)(integer *, integer *))Kind##s[n])(&o, &c);          \
	}
#define HANDLERS(lower, Kind)                                                                            \
	static function *Kind##s[FUNCTIONS];                                                             \
	EACH(HANDLER, Kind)                                                                              \
	static MPI_##Kind##_errhandler_function *const Kind##Calls[] = {EACH(NAMED, Kind)};              \
	void pmpi_##lower##_create_errhandler_(function *f, integer *errhandler, integer *ierror)        \
	{                                                                                                \
		int i = place(Kind##s, f), code;                                                         \
		MPI_Errhandler made = 0;                                                                 \
		code = i < 0 ? noMemory() : MPI_##Kind##_create_errhandler(Kind##Calls[i], &made);       \
		if (code == MPI_SUCCESS)                                                                 \
			*errhandler = MPI_Errhandler_toint(made);                                        \
		done(ierror, code);                                                                      \
	}                                                                                                \
	NAMES(lower##_create_errhandler)
HANDLERS(comm, Comm)
HANDLERS(win, Win)
HANDLERS(file, File)
HANDLERS(session, Session)

// Generalized requests.

struct generalized {
	void (*query)(MPI_Aint *extra, integer *status, integer *ierror);
	void (*free)(MPI_Aint *extra, integer *ierror);
	void (*cancel)(MPI_Aint *extra, integer *complete, integer *ierror);
	MPI_Aint extra;
};

static int query(void *extra, MPI_Status *status)
{
	struct generalized *g = extra;
	integer code = MPI_SUCCESS;

#ifdef IMPI_INTEGER8
	integer wide[MPI_F_STATUS_SIZE];
	impi_status_out(wide, status);
	g->query(&g->extra, wide, &code);
	impi_status_in(status, wide);
#else
	g->query(&g->extra, (integer *)status, &code);
#endif
	return impi_int(code);
}

static int freed(void *extra)
{
	struct generalized *g = extra;
	integer code = MPI_SUCCESS;

	g->free(&g->extra, &code);
	free(g);
	return impi_int(code);
}

static int cancel(void *extra, int complete)
{
	struct generalized *g = extra;
	integer code = MPI_SUCCESS, c = complete;

	g->cancel(&g->extra, &c, &code);
	return impi_int(code);
}

void pmpi_grequest_start_(void (*query_fn)(MPI_Aint *, integer *, integer *), void (*free_fn)(MPI_Aint *, integer *),
	void (*cancel_fn)(MPI_Aint *, integer *, integer *), MPI_Aint *extra, integer *request, integer *ierror)
{
	MPI_Request made = 0;
	struct generalized *g = malloc(sizeof *g);
	int code = MPI_ERR_NO_MEM;

	if (g != NULL) {
		*g = (struct generalized){query_fn, free_fn, cancel_fn, *extra};
		if ((code = MPI_Grequest_start(query, freed, cancel, g, &made)) != MPI_SUCCESS)
			free(g);
		else
			*request = MPI_Request_toint(made);
	} else
		noMemory();
	done(ierror, code);
}
NAMES(grequest_start)

// Representations of data in files. They are there until the program ends.

typedef void extenter(integer *datatype, MPI_Aint *extent, MPI_Aint *extra, integer *ierror);

#define DATAREP(name, suffix, count_int, c_int)                                                                              \
	typedef void converter##suffix(void *user, integer *datatype, count_int *count, void *file, MPI_Offset *position,    \
		MPI_Aint *extra, integer *ierror);                                                                           \
	struct datarep##suffix {                                                                                             \
		converter##suffix *read, *write;                                                                             \
		extenter *extent;                                                                                            \
		MPI_Aint extra;                                                                                              \
	};                                                                                                                   \
	void mpi_conversion_fn_null##suffix##_(void *user, integer *datatype, count_int *count, void *file, MPI_Offset *position, \
		MPI_Aint *extra, integer *ierror)                                                                            \
	{                                                                                                                    \
		(void)user, (void)datatype, (void)count, (void)file, (void)position, (void)extra;                            \
		done(ierror, MPI_ERR_CONVERSION);                                                                            \
	}                                                                                                                    \
	static int convert##suffix(converter##suffix *f, void *user, MPI_Datatype datatype, count_int count, void *file,      \
		MPI_Offset position, MPI_Aint *extra)                                                                        \
	{                                                                                                                    \
		integer t = MPI_Type_toint(datatype), code = MPI_SUCCESS;                                                    \
		f(user, &t, &count, file, &position, extra, &code);                                                          \
		return impi_int(code);                                                                                       \
	}                                                                                                                    \
	static int reads##suffix(void *user, MPI_Datatype datatype, c_int count, void *file, MPI_Offset position, void *extra) \
	{                                                                                                                    \
		struct datarep##suffix *d = extra;                                                                           \
		return convert##suffix(d->read, user, datatype, count, file, position, &d->extra);                           \
	}                                                                                                                    \
	static int writes##suffix(void *user, MPI_Datatype datatype, c_int count, void *file, MPI_Offset position, void *extra) \
	{                                                                                                                    \
		struct datarep##suffix *d = extra;                                                                           \
		return convert##suffix(d->write, user, datatype, count, file, position, &d->extra);                          \
	}                                                                                                                    \
	static int extents##suffix(MPI_Datatype datatype, MPI_Aint *extent, void *extra)                                      \
	{                                                                                                                    \
		struct datarep##suffix *d = extra;                                                                           \
		integer t = MPI_Type_toint(datatype), code = MPI_SUCCESS;                                                    \
		d->extent(&t, extent, &d->extra, &code);                                                                     \
		return impi_int(code);                                                                                       \
	}                                                                                                                    \
	void pmpi_##name##_(char *datarep, converter##suffix *read, converter##suffix *write, extenter *extent, MPI_Aint *extra, \
		integer *ierror, size_t length)                                                                              \
	{                                                                                                                    \
		int code = MPI_SUCCESS;                                                                                      \
		char *c_name = impi_take(datarep, length, 0, &code);                                                         \
		struct datarep##suffix *d = malloc(sizeof *d);                                                               \
		if (d == NULL)                                                                                               \
			code = noMemory();                                                                                   \
		if (code == MPI_SUCCESS) {                                                                                   \
			*d = (struct datarep##suffix){read, write, extent, *extra};                                          \
			code = REGISTER##suffix(c_name, read == mpi_conversion_fn_null##suffix##_ ? NULL : reads##suffix,    \
				write == mpi_conversion_fn_null##suffix##_ ? NULL : writes##suffix, extents##suffix, d);      \
		}                                                                                                            \
		if (code != MPI_SUCCESS)                                                                                     \
			free(d);                                                                                             \
		free(c_name);                                                                                                \
		done(ierror, code);                                                                                          \
	}                                                                                                                    \
	NAMES(name)

#ifdef IMPI_INTEGER8
#define REGISTER MPI_Register_datarep_c
DATAREP(register_datarep, , integer, MPI_Count)
#else
#define REGISTER MPI_Register_datarep
DATAREP(register_datarep, , integer, int)
#endif
#define REGISTER_c MPI_Register_datarep_c
DATAREP(register_datarep_c, _c, MPI_Count, MPI_Count)
