// Signals belong to the program. A thread that is inside the library runs on a stack
// of Go's, which has no room for a handler: handlers must run on the alternate
// signal stack, and Go demands SA_ONSTACK of all of them. Programs do not know that.
// So these functions take the place of the C library's, call those, and add the flag;
// and the thread that loads the library gets an alternate stack if it has none, before
// Go would give it a small one.
//
// A library that is loaded with dlopen does not take their place, nor one that only another
// library of the program needs, so that it comes behind the C library: there, handlers that
// are installed before are right, and later ones must have the flag themselves.

#define _GNU_SOURCE
#include <dlfcn.h>
#include <signal.h>
#include <sys/mman.h>

typedef void (*handler)(int);
typedef int (*sigactionFunction)(int, const struct sigaction *, struct sigaction *);
typedef handler (*signalFunction)(int, handler);

// room is the size of the alternate stack in bytes: Go's have 32 KiB.
enum { room = 256 << 10, guard = 64 << 10 };

// next is the function that the program would have called.
static void *next(void **cache, const char *name)
{
	void *f = __atomic_load_n(cache, __ATOMIC_RELAXED);
	if (!f) {
		f = dlsym(RTLD_NEXT, name);
		if (!f) // the C library comes before this one: what the program itself would find
			f = dlsym(dlopen(NULL, RTLD_LAZY), name);
		__atomic_store_n(cache, f, __ATOMIC_RELAXED);
	}
	return f;
}

static int nextSigaction(int sig, const struct sigaction *act, struct sigaction *old)
{
	static void *f;
	return ((sigactionFunction)next(&f, "sigaction"))(sig, act, old);
}

static int isFunction(handler h) { return h != SIG_DFL && h != SIG_IGN && h != SIG_ERR && h != SIG_HOLD; }

int sigaction(int sig, const struct sigaction *act, struct sigaction *old)
{
	struct sigaction a;
	if (act && isFunction(act->sa_handler)) {
		a = *act;
		a.sa_flags |= SA_ONSTACK;
		act = &a;
	}
	return nextSigaction(sig, act, old);
}

// onStack adds the flag to what one of the older functions has installed.
static handler onStack(int sig, handler now, handler before)
{
	struct sigaction a;
	if (before != SIG_ERR && isFunction(now) && nextSigaction(sig, NULL, &a) == 0 && isFunction(a.sa_handler)) {
		a.sa_flags |= SA_ONSTACK;
		nextSigaction(sig, &a, NULL);
	}
	return before;
}

#define OLDER(name)                                                             \
	handler name(int sig, handler h)                                        \
	{                                                                       \
		static void *f;                                                 \
		return onStack(sig, h, ((signalFunction)next(&f, #name))(sig, h)); \
	}

handler bsd_signal(int sig, handler h);
handler __sysv_signal(int sig, handler h);

OLDER(signal)
OLDER(ssignal)
OLDER(bsd_signal)
OLDER(sysv_signal)
OLDER(__sysv_signal)
OLDER(sigset)

__attribute__((constructor)) static void alternateStack(void)
{
	stack_t s;
	if (sigaltstack(NULL, &s) != 0 || !(s.ss_flags & SS_DISABLE))
		return;
	char *p = mmap(NULL, guard + room, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK, -1, 0);
	if (p == MAP_FAILED)
		return;
	mprotect(p, guard, PROT_NONE);
	s.ss_sp = p + guard;
	s.ss_size = room;
	s.ss_flags = 0;
	sigaltstack(&s, NULL);
}
