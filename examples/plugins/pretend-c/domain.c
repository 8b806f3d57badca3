/* The registration of memory. With hardware, this is where ibv_reg_mr or fi_mr_reg is called. Here a
 * table that peers have mapped says which keys are valid. */
#include "pretend.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

struct registration {
	uint32_t place;
	uint64_t generation;
	int fd;
	uint64_t size;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* of all that follows */
static int table_file = -1;
static _Atomic uint64_t *table; /* by place: the generation that is valid; 0: none */
static struct registration *at[PLACES];
static uint64_t last_generation, used, limit;

int domain_open(void)
{
	table_file = memfd_create("pretend-c", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	if (table_file < 0 || fallocate(table_file, 0, 0, TABLE_BYTES) != 0 || fcntl(table_file, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW) != 0)
		return -1;
	void *mem = mmap(NULL, TABLE_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, table_file, 0);
	table = mem;
	return mem == MAP_FAILED ? -1 : 0;
}

int domain_table(void) { return table_file; }

void domain_limit(uint64_t bytes)
{
	pthread_mutex_lock(&lock);
	limit = bytes;
	pthread_mutex_unlock(&lock);
}

static void put(uint8_t *to, uint64_t v, int n)
{
	while (n-- > 0)
		*to++ = (uint8_t)(v >> 8 * n);
}

int register_memory(const struct impi_memory *m, void **registration, void *key, size_t *key_size)
{
	struct registration *r = calloc(1, sizeof *r);
	uint32_t place = 0;
	if (r == NULL)
		return -1;
	pthread_mutex_lock(&lock);
	while (place < PLACES && at[place] != NULL)
		place++;
	if (place == PLACES || (limit > 0 && used + m->size > limit)) {
		pthread_mutex_unlock(&lock);
		free(r);
		return -1;
	}
	*r = (struct registration){ place, ++last_generation, m->fd, m->size };
	at[place] = r;
	used += r->size;
	atomic_store(&table[place], r->generation);
	pthread_mutex_unlock(&lock);
	put(key, place, 4);
	put((uint8_t *)key + 4, r->generation, 8);
	*key_size = KEY;
	*registration = r;
	return 0;
}

void unregister_memory(void *registration)
{
	struct registration *r = registration;
	pthread_mutex_lock(&lock);
	atomic_store(&table[r->place], 0);
	at[r->place] = NULL;
	used -= r->size;
	pthread_mutex_unlock(&lock);
	free(r);
}

int parse_key(const uint8_t key[KEY], uint32_t *place, uint64_t *generation)
{
	uint64_t v = 0;
	for (int i = 0; i < 4; i++)
		v = v << 8 | key[i];
	*place = (uint32_t)v;
	v = 0;
	for (int i = 4; i < KEY; i++)
		v = v << 8 | key[i];
	*generation = v;
	return *place < PLACES && v != 0;
}

int domain_file(const uint8_t key[KEY])
{
	uint32_t place;
	uint64_t generation;
	int fd = -1;
	if (!parse_key(key, &place, &generation))
		return -1;
	pthread_mutex_lock(&lock);
	if (at[place] != NULL && at[place]->generation == generation)
		fd = fcntl(at[place]->fd, F_DUPFD_CLOEXEC, 0);
	pthread_mutex_unlock(&lock);
	return fd;
}

void *map_file(int fd, size_t *size)
{
	struct stat st;
	int seals = fcntl(fd, F_GET_SEALS);
	if (seals < 0 || !(seals & F_SEAL_SHRINK) || fstat(fd, &st) != 0 || st.st_size <= 0)
		return NULL;
	void *mem = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_SHARED, fd, 0);
	*size = (size_t)st.st_size;
	return mem == MAP_FAILED ? NULL : mem;
}
