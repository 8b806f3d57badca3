#define _GNU_SOURCE
#include "fabric.h"

#include <limits.h>
#include <malloc.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/uio.h>
#include <unistd.h>

struct slab {
	struct slab *next;
	struct fid_mr *mr;
	struct slot *slots;
	unsigned char *memory; // mapped, so that it goes when it is freed
	size_t size;
};

static void free_slab(struct slab *s)
{
	if (s->mr)
		fi_close(&s->mr->fid);
	if (s->memory)
		munmap(s->memory, s->size);
	free(s->slots);
	free(s);
}

enum { queued = 256 };

// Providers set handlers of signals, without the alternate stack that Go's runtime needs.
static const int signals[] = {SIGINT, SIGTERM, SIGSEGV, SIGBUS, SIGABRT, SIGHUP, SIGQUIT};
enum { nsignals = sizeof signals / sizeof *signals };

static void keep_signals(struct sigaction *was)
{
	for (int i = 0; i < nsignals; i++)
		sigaction(signals[i], NULL, &was[i]);
}

static void restore_signals(const struct sigaction *was)
{
	for (int i = 0; i < nsignals; i++)
		sigaction(signals[i], &was[i], NULL);
}

// What moves an endpoint that shares memory with others of this process holds this for reading, and
// what unmaps such memory, for writing.
static pthread_rwlock_t shared = PTHREAD_RWLOCK_WRITER_NONRECURSIVE_INITIALIZER_NP;

static void use(struct fabric *f)
{
	if (f->shares)
		pthread_rwlock_rdlock(&shared);
}

static void change(struct fabric *f)
{
	if (f->shares)
		pthread_rwlock_wrlock(&shared);
}

static void done(struct fabric *f)
{
	if (f->shares)
		pthread_rwlock_unlock(&shared);
}

int fabric_info(const char *provider, const char *domain, const char *node, const char *service, struct fi_info **list)
{
	struct sigaction was[nsignals];
	mallopt(M_ARENA_MAX, 1); // each thread of Go's would keep what its endpoints have used
	struct fi_info *hints = fi_allocinfo();
	if (!hints)
		return -FI_ENOMEM;
	hints->caps = FI_MSG | FI_RMA | FI_READ | FI_REMOTE_READ;
	hints->mode = FI_CONTEXT | FI_CONTEXT2;
	hints->ep_attr->type = FI_EP_RDM;
	hints->tx_attr->msg_order = FI_ORDER_SAS;
	hints->rx_attr->msg_order = FI_ORDER_SAS;
	hints->tx_attr->size = queued; // the provider's own default may take tens of megabytes
	hints->rx_attr->size = queued;
	hints->domain_attr->mr_mode = FI_MR_LOCAL | FI_MR_VIRT_ADDR | FI_MR_ALLOCATED | FI_MR_PROV_KEY;
	hints->domain_attr->threading = FI_THREAD_SAFE;
	hints->domain_attr->resource_mgmt = FI_RM_ENABLED;
	if (provider)
		hints->fabric_attr->prov_name = strdup(provider);
	if (domain)
		hints->domain_attr->name = strdup(domain);
	keep_signals(was);
	int ret = -FI_ENODATA;
	if (provider)
		ret = fi_getinfo(FI_VERSION(1, 17), node, service, node ? FI_SOURCE : 0, hints, list);
	if (ret) {
		hints->caps = FI_MSG;
		ret = fi_getinfo(FI_VERSION(1, 17), node, service, node ? FI_SOURCE : 0, hints, list);
	}
	restore_signals(was);
	fi_freeinfo(hints);
	return ret;
}

static int open_all(struct fabric *f, const char **what)
{
	struct fi_cq_attr cq = {.format = FI_CQ_FORMAT_MSG, .wait_obj = FI_WAIT_FD, .size = 8192};
	struct fi_av_attr av = {.type = FI_AV_TABLE, .count = 64};
	int ret;

	*what = "fi_fabric";
	if ((ret = fi_fabric(f->info->fabric_attr, &f->fabric, NULL)))
		return ret;
	*what = "fi_domain";
	if ((ret = fi_domain(f->fabric, f->info, &f->domain, NULL)))
		return ret;
	*what = "fi_av_open";
	if (f->info->domain_attr->av_type == FI_AV_MAP)
		av.type = FI_AV_MAP;
	if ((ret = fi_av_open(f->domain, &av, &f->av, NULL)))
		return ret;
	*what = "fi_cq_open";
	if (fi_cq_open(f->domain, &cq, &f->cq, NULL) == 0) {
		if (fi_control(&f->cq->fid, FI_GETWAIT, &f->fd)) {
			fi_close(&f->cq->fid);
			f->cq = NULL;
			f->fd = -1;
		}
	}
	if (!f->cq) {
		cq.wait_obj = FI_WAIT_NONE;
		if ((ret = fi_cq_open(f->domain, &cq, &f->cq, NULL)))
			return ret;
	}
	*what = "fi_endpoint";
	if ((ret = fi_endpoint(f->domain, f->info, &f->ep, NULL)))
		return ret;
	*what = "fi_ep_bind";
	if ((ret = fi_ep_bind(f->ep, &f->av->fid, 0)))
		return ret;
	if ((ret = fi_ep_bind(f->ep, &f->cq->fid, FI_TRANSMIT | FI_RECV)))
		return ret;
	*what = "fi_enable";
	return fi_enable(f->ep);
}

int fabric_open(struct fabric **out, struct fi_info *info, const char **what)
{
	struct sigaction was[nsignals];
	struct fabric *f = calloc(1, sizeof *f);

	*what = "memory";
	if (!f)
		return -FI_ENOMEM;
	f->fd = -1;
	f->shares = strncmp(info->fabric_attr->prov_name, "shm", 3) == 0;
	f->info = fi_dupinfo(info);
	if (!f->info) {
		fabric_close(f);
		return -FI_ENOMEM;
	}
	keep_signals(was);
	change(f);
	int ret = open_all(f, what);
	done(f);
	restore_signals(was);
	if (ret) {
		fabric_close(f);
		return ret;
	}
	*out = f;
	return 0;
}

void fabric_close(struct fabric *f)
{
	change(f);
	if (f->ep)
		fi_close(&f->ep->fid);
	for (struct slab *s = f->slabs, *next; s; s = next) {
		next = s->next;
		free_slab(s);
	}
	if (f->cq)
		fi_close(&f->cq->fid);
	if (f->av)
		fi_close(&f->av->fid);
	if (f->domain)
		fi_close(&f->domain->fid);
	if (f->fabric)
		fi_close(&f->fabric->fid);
	done(f);
	if (f->info)
		fi_freeinfo(f->info);
	free(f);
	malloc_trim(0); // what libfabric has freed, megabytes, is not kept for threads that have gone
}

int fabric_slots(struct fabric *f, uint32_t n, uint32_t room, struct slot **out)
{
	struct slab *s = calloc(1, sizeof *s);
	int ret = -FI_ENOMEM;

	if (!s)
		return ret;
	s->slots = calloc(n, sizeof *s->slots);
	s->size = (size_t)n * room;
	s->memory = mmap(NULL, s->size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (s->memory == MAP_FAILED)
		s->memory = NULL;
	if (!s->slots || !s->memory)
		goto failed;
	if (f->info->domain_attr->mr_mode & FI_MR_LOCAL) {
		ret = fi_mr_reg(f->domain, s->memory, s->size, FI_SEND | FI_RECV, 0, 0, 0, &s->mr, NULL);
		if (ret)
			goto failed;
	}
	for (uint32_t i = 0; i < n; i++) {
		s->slots[i].room = room;
		s->slots[i].data = s->memory + (size_t)i * room;
		s->slots[i].desc = s->mr ? fi_mr_desc(s->mr) : NULL;
	}
	s->next = f->slabs;
	f->slabs = s;
	*out = s->slots;
	return 0;
failed:
	free_slab(s);
	return ret;
}

// there reports whether an endpoint of shm has its memory. The provider does not fail if it has
// none, and sends into what was there before, which may be unmapped.
static int there(struct fabric *f, const char *name)
{
	char path[PATH_MAX];
	const char *rest = strstr(name, "://");

	if (!f->shares)
		return 1;
	if (snprintf(path, sizeof path, "/dev/shm/%s", rest ? rest + 3 : name) >= (int)sizeof path)
		return 0;
	return access(path, F_OK) == 0;
}

int fabric_insert(struct fabric *f, const void *name, fi_addr_t *to)
{
	change(f);
	int n = there(f, name) ? fi_av_insert(f->av, name, 1, to, 0, NULL) : -FI_ENOENT;
	done(f);
	return n;
}

void fabric_remove(struct fabric *f, fi_addr_t to)
{
	change(f);
	fi_av_remove(f->av, &to, 1, 0);
	done(f);
}

void fabric_forget(struct fabric *f, const void *name)
{
	fi_addr_t to;

	change(f);
	fi_cq_read(f->cq, NULL, 0); // what came from it is handled while its memory is there
	if (fi_av_insert(f->av, name, 1, &to, 0, NULL) == 1)
		fi_av_remove(f->av, &to, 1, 0);
	done(f);
}

int fabric_receive(struct fabric *f, struct slot *s)
{
	use(f);
	int ret = fi_recv(f->ep, s->data, s->room, s->desc, FI_ADDR_UNSPEC, &s->ctx);
	done(f);
	return ret;
}

int fabric_send(struct fabric *f, struct slot *s, size_t len, fi_addr_t to)
{
	use(f);
	int ret = fi_send(f->ep, s->data, len, s->desc, to, &s->ctx);
	done(f);
	return ret;
}

int fabric_register(struct fabric *f, void *p, size_t size, int peers, uint64_t *key, struct fid_mr **mr)
{
	int ret = fi_mr_reg(f->domain, p, size, peers ? FI_REMOTE_READ : FI_READ, 0, *key, 0, mr, NULL);
	if (ret)
		return ret;
	*key = fi_mr_key(*mr);
	if (*key != FI_KEY_NOTAVAIL)
		return 0;
	fi_close(&(*mr)->fid);
	return -FI_ENOKEY;
}

int fabric_unregister(struct fid_mr *mr) { return fi_close(&mr->fid); }

int fabric_fetch(struct fabric *f, struct slot *s, void *into, size_t len, struct fid_mr *local, fi_addr_t from, uint64_t at, uint64_t key)
{
	use(f);
	ssize_t ret = fi_read(f->ep, into, len, local ? fi_mr_desc(local) : NULL, from, at, key, &s->ctx);
	done(f);
	return ret;
}

void *memory_map(int fd, size_t size)
{
	void *p = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	return p == MAP_FAILED ? NULL : p;
}

int memory_blank(void *p, size_t size)
{
	return mmap(p, size, PROT_READ | PROT_WRITE, MAP_FIXED | MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0) == MAP_FAILED ? -1 : 0;
}

void memory_unmap(void *p, size_t size) { munmap(p, size); }

int memory_others(void)
{
	char from = 1, to = 0;
	struct iovec local = {&to, 1}, remote = {&from, 1};
	return process_vm_readv(getpid(), &local, 1, &remote, 1, 0) == 1;
}

int fabric_read(struct fabric *f, struct event *events)
{
	struct fi_cq_msg_entry entries[batch];
	struct fi_cq_err_entry e = {0};
	use(f);
	ssize_t n = fi_cq_read(f->cq, entries, batch);
	if (n == -FI_EAVAIL && fi_cq_readerr(f->cq, &e, 0) != 1)
		n = 0;
	done(f);

	if (n == -FI_EAVAIL) {
		events[0].index = e.op_context ? ((struct slot *)e.op_context)->index : no_slot;
		events[0].len = 0;
		events[0].err = e.err ? e.err : FI_EOTHER;
		return 1;
	}
	if (n <= 0)
		return 0;
	for (ssize_t i = 0; i < n; i++) {
		events[i].index = entries[i].op_context ? ((struct slot *)entries[i].op_context)->index : no_slot;
		events[i].len = entries[i].len;
		events[i].err = 0;
	}
	return n;
}

int fabric_may_wait(struct fabric *f)
{
	struct fid *fid = &f->cq->fid;
	return fi_trywait(f->fabric, &fid, 1) == FI_SUCCESS;
}
