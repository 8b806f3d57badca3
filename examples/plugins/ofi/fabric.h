#ifndef IMPI_FABRIC_H
#define IMPI_FABRIC_H

#include <stddef.h>
#include <stdint.h>

#include <rdma/fabric.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_errno.h>
#include <rdma/fi_rma.h>

// A slot is the memory of one message, sent or received. Its context comes first: libfabric gives
// the address of that back.
struct slot {
	struct fi_context2 ctx;
	uint32_t index;
	uint32_t receives;
	uint32_t room;
	void *desc;
	unsigned char *data;
};

struct event {
	uint32_t index; // of the slot, or no_slot
	int err;        // 0 or one of libfabric's errors, positive
	uint64_t len;
};

struct fabric {
	struct fi_info *info;
	struct fid_fabric *fabric;
	struct fid_domain *domain;
	struct fid_ep *ep;
	struct fid_cq *cq;
	struct fid_av *av;
	int fd; // of the completion queue, or -1
	int shares; // the provider uses the memory of this process's other endpoints as it is
	struct slab *slabs;
};

enum { batch = 16, no_slot = UINT32_MAX };

// fabric_info asks for endpoints; it returns 0 or a negative error of libfabric. Those that read the
// memory of others come first, if there are some.
int fabric_info(const char *provider, const char *domain, const char *node, const char *service, struct fi_info **list);

// fabric_open makes an endpoint of info, of which it keeps a copy. What names the call that failed.
int fabric_open(struct fabric **out, struct fi_info *info, const char **what);
void fabric_close(struct fabric *f);

// fabric_insert makes an address known, and fabric_remove forgets it.
int fabric_insert(struct fabric *f, const void *name, fi_addr_t *to);
void fabric_remove(struct fabric *f, fi_addr_t to);

// fabric_forget has f forget an endpoint of this process, which is about to be closed: whether it
// was inserted, or the provider has learned of it from a message. Nobody may be sending meanwhile.
void fabric_forget(struct fabric *f, const void *name);

// fabric_slots makes n slots with so much room each, registered if the provider wants that.
int fabric_slots(struct fabric *f, uint32_t n, uint32_t room, struct slot **out);

int fabric_receive(struct fabric *f, struct slot *s);
int fabric_send(struct fabric *f, struct slot *s, size_t len, fi_addr_t to);

// fabric_register registers memory: for peers, which read it by the key, or to be read into. If the
// provider chooses keys, *key becomes its own.
int fabric_register(struct fabric *f, void *p, size_t size, int peers, uint64_t *key, struct fid_mr **mr);
int fabric_unregister(struct fid_mr *mr);

// fabric_fetch begins to read memory of a peer; s is completed by it.
int fabric_fetch(struct fabric *f, struct slot *s, void *into, size_t len, struct fid_mr *local, fi_addr_t from, uint64_t at, uint64_t key);

// memory_map maps a file once more, or returns NULL. memory_blank replaces what is mapped there by
// memory of no file: who still writes there, or reads, does not reach the file any more.
void *memory_map(int fd, size_t size);
int memory_blank(void *p, size_t size);
void memory_unmap(void *p, size_t size);

// memory_others reports whether a process may read another one's memory by process_vm_readv.
int memory_others(void);

// fabric_read returns what has completed, at most batch events, and does not wait.
int fabric_read(struct fabric *f, struct event *events);

// fabric_may_wait reports whether what completes next will be seen at the descriptor.
int fabric_may_wait(struct fabric *f);

#endif
