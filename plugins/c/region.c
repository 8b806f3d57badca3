/* Memory that is shared with procs, which cannot make it smaller. */
#include "internal.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

uint8_t *shared_make(const char *name, size_t size, int *fd)
{
	uint8_t *mem = MAP_FAILED;
	*fd = memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING);
	if (*fd < 0)
		return NULL;
	/* Without memory this fails, instead of a SIGBUS later. */
	if (fallocate(*fd, 0, 0, (off_t)size) == 0 && fcntl(*fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) == 0)
		mem = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, *fd, 0);
	if (mem != MAP_FAILED)
		return mem;
	close(*fd);
	return NULL;
}

int claimed(_Atomic uint32_t *sleeps)
{
	uint32_t one = 1;
	return atomic_load(sleeps) == 1 && atomic_compare_exchange_strong(sleeps, &one, 0);
}

void bell_ring(int bell)
{
	ssize_t n;
	do
		n = send(bell, "", 1, MSG_DONTWAIT | MSG_NOSIGNAL);
	while (n < 0 && errno == EINTR);
	/* A full one is readable. If the kernel has no memory for the byte only the link's end can wake
	 * the reader. */
	if (n < 0 && errno != EAGAIN && errno != EPIPE && errno != ECONNRESET)
		shutdown(bell, SHUT_RDWR);
}
