/* The region channel, by which a proc lends memory, and wakes a plugin that sleeps. */
#include "rdma.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
	RECORD = 32, MOST_REGIONS = 1 << 16,
	MOST_MESSAGES = 4096, /* that are read in a row: the proc may send for ever */
};

static uint64_t big_endian(const uint8_t *p, int n)
{
	uint64_t v = 0;
	while (n-- > 0)
		v = v << 8 | *p++;
	return v;
}

/* checked takes a record over, and its descriptor if the record and its file are as they must be. */
static int checked(struct lent *l, const uint8_t *b, size_t n, const int *fds, size_t fds_n, int cut)
{
	struct stat st;
	int seals;
	if (n != RECORD || memcmp(b, "IMPR\0\1\0\1", 8) != 0)
		return rules_broken("the proc sends a record of %zu bytes on the region channel, of no kind that there is", n);
	*l = (struct lent){ (uint32_t)big_endian(b + 8, 4), (uint32_t)big_endian(b + 12, 4), big_endian(b + 16, 8), -1 };
	if (l->number == 0 || l->number > MOST_REGIONS || l->generation == 0 || l->size == 0 || l->size > MAX_REGION)
		return rules_broken("the proc lends region %u, generation %u, of %llu bytes", l->number, l->generation, (unsigned long long)l->size);
	if (fds_n != 1 || cut)
		return rules_broken("region %u comes with %zu descriptors, and not 1", l->number, fds_n);
	// the seals first: until they are there, whoever has the file can make it smaller than fstat said
	if ((seals = fcntl(fds[0], F_GET_SEALS)) < 0 || !(seals & F_SEAL_SHRINK))
		return rules_broken("the file of region %u can be made smaller", l->number);
	if (fstat(fds[0], &st) != 0 || (uint64_t)st.st_size != l->size)
		return rules_broken("the file of region %u has not the %llu bytes of its record", l->number, (unsigned long long)l->size);
	l->fd = fds[0];
	return 0;
}

enum { NOTHING, A_BELL, A_REGION, THE_END };

static int receive(int channel, struct lent *l)
{
	uint8_t b[RECORD + 1];
	int fds[2];
	size_t fds_n = 0;
	union {
		struct cmsghdr align;
		char room[CMSG_SPACE(sizeof fds)];
	} control;
	struct iovec bytes = { b, sizeof b };
	struct msghdr m = { .msg_iov = &bytes, .msg_iovlen = 1, .msg_control = control.room, .msg_controllen = sizeof control.room };
	ssize_t n = recvmsg(channel, &m, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
	if (n < 0 && errno == EAGAIN)
		return NOTHING;
	if (n < 0 && errno == EINTR)
		return A_BELL; /* once more */
	if (n < 0 && errno == ECONNRESET)
		return THE_END;
	if (n < 0)
		return rdma_lost("the region channel: %s", strerror(errno));
	for (struct cmsghdr *c = CMSG_FIRSTHDR(&m); c != NULL; c = CMSG_NXTHDR(&m, c))
		if (c->cmsg_level == SOL_SOCKET && c->cmsg_type == SCM_RIGHTS) {
			size_t more = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);
			for (size_t i = 0; i < more && fds_n < 2; i++)
				memcpy(&fds[fds_n++], CMSG_DATA(c) + i * sizeof(int), sizeof(int));
		}
	if (fds_n == 0 && n <= 1)
		return n == 0 ? THE_END : A_BELL;
	if (checked(l, b, (size_t)n, fds, fds_n, m.msg_flags & MSG_CTRUNC) == 0)
		return A_REGION;
	for (size_t i = 0; i < fds_n; i++)
		close(fds[i]);
	return -1;
}

int port_look(struct port *p)
{
	struct lent l;
	for (int i = 0; i < MOST_MESSAGES && !p->left; i++) {
		int found = receive(p->channel, &l);
		if (found < 0)
			return -1;
		if (found == NOTHING)
			break;
		if (found == THE_END)
			p->left = 1;
		if (found != A_REGION)
			continue;
		if (p->lent_n == p->lent_cap) {
			p->lent_cap = 2 * p->lent_cap + 8;
			p->lent = need(realloc(p->lent, p->lent_cap * sizeof l));
		}
		p->lent[p->lent_n++] = l;
		if (p->lent_n > MAX_LENT)
			return rules_broken("the proc lends %zu regions that it does not use", p->lent_n);
	}
	return 0;
}

int port_lent(struct port *p, struct lent *l)
{
	if (p->lent_n == 0 && port_look(p) != 0)
		return -1;
	if (p->lent_n == 0)
		return 0;
	*l = p->lent[0];
	memmove(p->lent, p->lent + 1, --p->lent_n * sizeof *l);
	return 1;
}

void port_forsake(struct port *p)
{
	for (size_t i = 0; i < p->lent_n; i++)
		close(p->lent[i].fd);
	free(p->lent);
	p->lent = NULL;
	p->lent_n = p->lent_cap = 0;
}
