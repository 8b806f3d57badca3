/* Memory that procs have lent stays registered: each region once for all links, and not for each
 * message. Beyond the budget, and when the hardware refuses, registrations are closed that no message
 * uses, the one that was used longest ago first. */
#include "rdma.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

enum { MOST_SKIPPED = 1 << 10 }; /* uses for which it is not tried again to register memory */

/* A file in memory, in whatever processes its descriptors are. */
struct file {
	dev_t device;
	ino_t inode;
	uint64_t size;
	int fd;                  /* a copy */
	int lends, uses;         /* links that have it; messages and reads that need it now */
	uint8_t *mem;            /* NULL: it is not mapped */
	int registered;
	void *registration;
	uint8_t key[KEY_BYTES];
	size_t key_size;
	unsigned refused, skip;  /* how often in a row it could not be registered; uses without a further attempt */
	struct file *next;       /* of all */
	struct file *older, *newer; /* of those that are registered and not used */
	int idle;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* of all that follows */
static struct file *files, *newest, *oldest;
static uint64_t budget = (uint64_t)1 << 30;
static struct impi_registrations counts_now;

void impi_keep_registered(uint64_t bytes)
{
	pthread_mutex_lock(&lock);
	budget = bytes;
	pthread_mutex_unlock(&lock);
}

void impi_count_registrations(struct impi_registrations *to)
{
	pthread_mutex_lock(&lock);
	*to = counts_now;
	pthread_mutex_unlock(&lock);
}

uint64_t file_size(const struct file *f) { return f->size; }

static void set_idle(struct file *f)
{
	f->idle = 1;
	f->older = newest;
	f->newer = NULL;
	if (newest != NULL)
		newest->newer = f;
	newest = f;
	if (oldest == NULL)
		oldest = f;
}

static void unset_idle(struct file *f)
{
	if (!f->idle)
		return;
	f->idle = 0;
	*(f->newer ? &f->newer->older : &newest) = f->older;
	*(f->older ? &f->older->newer : &oldest) = f->newer;
}

static void unmap(struct file *f)
{
	if (f->mem != NULL)
		munmap(f->mem, f->size);
	f->mem = NULL;
}

static void unregister(struct file *f)
{
	if (!f->registered)
		return;
	unset_idle(f);
	transport->unregister_memory(f->registration); /* while it is mapped */
	unmap(f);
	f->registered = 0;
	counts_now.bytes -= f->size;
}

/* evict closes the registration that was used longest ago; 0: all are used. */
static int evict(void)
{
	if (oldest == NULL)
		return 0;
	unregister(oldest);
	counts_now.evicted++;
	return 1;
}

static void make_room(uint64_t size)
{
	while (counts_now.bytes + size > budget && evict())
		;
}

/* try_to_register registers what is mapped. Each failure has closed what nothing uses, so that
 * further attempts are made more and more seldom. */
static void try_to_register(struct file *f)
{
	struct impi_memory m = { .fd = f->fd, .mem = f->mem, .size = f->size };
	if (f->skip > 0) {
		f->skip--;
		counts_now.refused++;
		return;
	}
	make_room(f->size);
	int failed;
	do {
		f->key_size = sizeof f->key;
		failed = transport->register_memory(&m, &f->registration, f->key, &f->key_size);
	} while (failed && evict()); /* the hardware, or a limit of the kernel, may have less than the budget */
	if (!failed && f->key_size > sizeof f->key) {
		impi_log("error", "register_memory gives a key of %zu bytes, at most %d are possible", f->key_size, KEY_BYTES);
		transport->unregister_memory(f->registration);
		failed = 1;
	}
	if (failed) {
		f->skip = (f->refused < 10 ? 1u << f->refused : MOST_SKIPPED) - 1;
		f->refused++;
		counts_now.refused++;
		return;
	}
	f->registered = 1;
	f->refused = 0;
	counts_now.made++;
	counts_now.bytes += f->size;
}

/* discard forgets a file that no link has and nothing uses. */
static void discard(struct file *f)
{
	if (f->lends > 0 || f->uses > 0)
		return;
	unregister(f);
	struct file **at = &files;
	while (*at != f)
		at = &(*at)->next;
	*at = f->next;
	close(f->fd);
	free(f);
}

struct file *cache_lend(int fd, uint64_t size)
{
	struct stat st;
	if (fstat(fd, &st) != 0) {
		rdma_lost("lent memory: %s", strerror(errno));
		close(fd);
		return NULL;
	}
	pthread_mutex_lock(&lock);
	struct file *f = files;
	while (f != NULL && (f->device != st.st_dev || f->inode != st.st_ino))
		f = f->next;
	if (f == NULL) {
		f = need(calloc(1, sizeof *f));
		*f = (struct file){ .device = st.st_dev, .inode = st.st_ino, .size = size, .fd = fd, .next = files };
		files = f;
	} else {
		close(fd); /* the copy that is kept will do */
	}
	f->lends++;
	pthread_mutex_unlock(&lock);
	return f;
}

void cache_hold(struct file *f)
{
	pthread_mutex_lock(&lock);
	f->lends++;
	pthread_mutex_unlock(&lock);
}

void cache_reclaim(struct file *f)
{
	pthread_mutex_lock(&lock);
	f->lends--;
	discard(f);
	pthread_mutex_unlock(&lock);
}

int cache_use(struct file *f, struct use *u)
{
	int result = 0;
	pthread_mutex_lock(&lock);
	if (f->mem == NULL) {
		void *mem = mmap(NULL, f->size, PROT_READ | PROT_WRITE, MAP_SHARED, f->fd, 0);
		f->mem = mem == MAP_FAILED ? NULL : mem;
	}
	if (f->mem == NULL) {
		result = rdma_lost("%llu bytes of lent memory cannot be mapped: %s", (unsigned long long)f->size, strerror(errno));
	} else {
		if (f->registered)
			counts_now.used_again++;
		else
			try_to_register(f);
		f->uses++;
		unset_idle(f);
		*u = (struct use){ f->registered, f->registration, f->key, f->key_size, f->mem };
	}
	pthread_mutex_unlock(&lock);
	return result;
}

void cache_unuse(struct file *f)
{
	pthread_mutex_lock(&lock);
	if (--f->uses == 0) {
		if (f->registered)
			set_idle(f);
		else
			unmap(f);
		discard(f);
		make_room(0);
	}
	pthread_mutex_unlock(&lock);
}
