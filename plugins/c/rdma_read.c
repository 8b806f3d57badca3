/* Lent memory, and reads of what the peer has offered: by rails into registered memory, or in parts
 * that the peer sends. */
#include "rdma.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
	RAIL_BYTES = 64 << 10,  /* of a read that go by one rail at least if it is split */
	RAIL_ALIGN = 4 << 10,   /* to what the parts are aligned */
};

/* place is where a region is, or has to be inserted. */
static size_t place(const struct rdma *x, uint32_t number)
{
	size_t from = 0, to = x->regions_n;
	while (from < to) {
		size_t middle = (from + to) / 2;
		if (x->regions[middle].number < number)
			from = middle + 1;
		else
			to = middle;
	}
	return from;
}

static struct region *region_of(const struct rdma *x, uint32_t number)
{
	size_t at = place(x, number);
	return at < x->regions_n && x->regions[at].number == number ? &x->regions[at] : NULL;
}

/* take_region takes a region that the proc lends. One of the same number is replaced. There may be
 * twice as many as the proc lends at a time: that others are to be forgotten is read later. */
static int take_region(struct rdma *x, struct lent l)
{
	struct region *old = region_of(x, l.number);
	if (old == NULL ? x->regions_n >= 2 * MAX_LENT : l.generation <= old->generation) {
		close(l.fd);
		return rules_broken("the proc lends generation %u of region %u, beside %zu regions", l.generation, l.number, x->regions_n);
	}
	struct file *f = cache_lend(l.fd, l.size);
	if (f == NULL)
		return -1;
	if (old != NULL) {
		cache_reclaim(old->file);
		*old = (struct region){ l.number, l.generation, f };
		return 0;
	}
	if (x->regions_n == x->regions_cap) {
		x->regions_cap = 2 * x->regions_cap + 16;
		x->regions = need(realloc(x->regions, x->regions_cap * sizeof *x->regions));
	}
	size_t at = place(x, l.number);
	memmove(x->regions + at + 1, x->regions + at, (x->regions_n++ - at) * sizeof *x->regions);
	x->regions[at] = (struct region){ l.number, l.generation, f };
	return 0;
}

struct file *rdma_find(struct rdma *x, const struct entry *e)
{
	struct lent l;
	int more;
	while ((more = port_lent(&x->port, &l)) > 0)
		if (take_region(x, l) != 0)
			return NULL;
	if (more < 0)
		return NULL;
	struct region *r = region_of(x, e->region);
	if (r == NULL || r->generation != e->generation) {
		rules_broken("the proc uses generation %u of region %u, which is not lent", e->generation, e->region);
		return NULL;
	}
	uint64_t size = file_size(r->file);
	if (e->offset > size || e->length > size - e->offset) {
		rules_broken("%llu bytes at offset %llu are not in region %u, which has %llu", (unsigned long long)e->length, (unsigned long long)e->offset,
			e->region, (unsigned long long)size);
		return NULL;
	}
	return r->file;
}

int rdma_forget(struct rdma *x, const struct entry *e)
{
	struct region *r = region_of(x, e->region);
	if (r == NULL)
		return rules_broken("the proc takes region %u back, which is not lent", e->region);
	if (r->generation != e->generation)
		return 0; /* it was replaced */
	cache_reclaim(r->file);
	memmove(r, r + 1, (size_t)(x->regions + --x->regions_n - r) * sizeof *r);
	return 0;
}

/* next_rail is a rail that works, in turn; -1: there is none. */
static int next_rail(struct rdma *x)
{
	for (int i = 0; i < x->rails; i++) {
		x->rail = (x->rail + 1) % x->rails;
		if (!x->rail_down[x->rail])
			return x->rail;
	}
	return -1;
}

static void want(struct rdma *x, int part)
{
	x->parts[part].state = WANTED;
	x->queue_of_parts[x->parts_wanted++] = part;
}

/* split divides a read among the rails. */
static void split(struct rdma *x, struct read *r, uint8_t *into, uint64_t size, uint64_t from)
{
	uint64_t n = size / RAIL_BYTES, each = size;
	if (n > (uint64_t)x->rails)
		n = (uint64_t)x->rails;
	if (n > 1)
		each = (size / n + RAIL_ALIGN - 1) / RAIL_ALIGN * RAIL_ALIGN;
	for (int i = 0; size > 0; i++) {
		if (x->parts[i].state != VACANT)
			continue;
		uint64_t k = size < each ? size : each;
		x->parts[i] = (struct part){ .read = r, .rail = next_rail(x), .into = into, .size = k, .from = from };
		want(x, i);
		r->parts++;
		into += k, from += k, size -= k;
	}
}

/* target is where a read goes to; NULL: the proc breaks the rules. */
static struct file *target(struct rdma *x, const struct entry *e, uint64_t *at)
{
	if (e->region != 0) {
		*at = e->offset;
		return rdma_find(x, e);
	}
	if (!port_stage_at(&x->port, e, at)) {
		rules_broken("the proc reads %llu bytes to offset %llu of the slots for reading, which is not in one of them", (unsigned long long)e->length,
			(unsigned long long)e->offset);
		return NULL;
	}
	if (x->own == NULL) {
		x->own = cache_lend(x->port.file, x->port.size);
		x->port.file = -1;
	}
	return x->own;
}

int rdma_begin_read(struct rdma *x, const struct entry *e)
{
	struct offered *m = rdma_open(x, e->message);
	struct read *r = x->reads;
	struct use u;
	uint64_t at;
	if (m == NULL || e->at > m->length || e->length > m->length - e->at)
		return rules_broken("the proc reads %llu bytes at %llu of message %llu, which is not open or shorter", (unsigned long long)e->length,
			(unsigned long long)e->at, (unsigned long long)e->message);
	while (r < x->reads + SLOTS + 1 && r->used)
		r++;
	if (r == x->reads + SLOTS + 1)
		return rules_broken("the proc reads more than once for each slot");
	struct file *f = target(x, e, &at);
	if (f == NULL || cache_use(f, &u) != 0)
		return -1;
	*r = (struct read){ .used = 1, .number = e->number, .message = e->message, .into = f, .local = u.registration, .key_size = m->key_size };
	memcpy(r->key, m->key, m->key_size);
	if (u.registered) {
		split(x, r, u.mem + at, e->length, m->offset + e->at);
		return 0;
	}
	if (!x->answers)
		return rdma_lost("memory could not be registered for reading into, and the peer is too old to send what is to be read");
	if (x->scratch == NULL)
		x->scratch = need(malloc(x->port.slot_size));
	r->mem = u.mem + at;
	r->size = e->length;
	r->at = e->at;
	x->slow[x->slow_n++] = r;
	return 0;
}

int rdma_reads(const struct rdma *x)
{
	int n = 0;
	for (int i = 0; i < SLOTS + 1; i++)
		n += x->reads[i].used;
	return n;
}

int rdma_is_read(const struct rdma *x, uint64_t message)
{
	for (int i = 0; i < SLOTS + 1; i++)
		if (x->reads[i].used && x->reads[i].message == message)
			return 1;
	return 0;
}

int rdma_issue(struct rdma *x)
{
	int moved = 0;
	while (x->parts_wanted > 0) {
		int i = x->queue_of_parts[0];
		struct part *p = &x->parts[i];
		uint64_t op = x->last_op + 1; /* parts_n of them at a time: this finds the part again */
		op = (op / (uint64_t)x->parts_n + 1) * (uint64_t)x->parts_n + (uint64_t)i;
		struct impi_fabric_read r = { .op = op, .rail = p->rail, .into = p->into, .size = p->size, .local = p->read->local,
			.key = p->read->key, .key_size = p->read->key_size, .from = p->from };
		int ok = x->ops->read(x->conn.state, &r);
		if (ok < 0)
			return rdma_lost("a read cannot begin");
		if (ok == 0)
			return moved;
		x->last_op = p->op = op;
		p->state = UNDER_WAY;
		x->parts_under_way++;
		memmove(x->queue_of_parts, x->queue_of_parts + 1, (size_t)--x->parts_wanted * sizeof(int));
		moved = 1;
	}
	return moved;
}

static int read_ended(struct rdma *x, struct read *r)
{
	r->used = 0;
	cache_unuse(r->into);
	return port_complete(&x->port, (struct entry){ .kind = WAS_READ, .number = r->number });
}

static int completed(struct rdma *x, const struct impi_fabric_done *d)
{
	int i = (int)(d->op % (uint64_t)x->parts_n);
	struct part *p = &x->parts[i];
	if (p->state != UNDER_WAY || p->op != d->op)
		return rules_broken("the transport completes read %llu, which is not under way", (unsigned long long)d->op);
	x->parts_under_way--;
	if (d->failed) {
		x->rail_down[p->rail] = 1;
		p->rail = next_rail(x);
		want(x, i); /* also if this is the end: rdma_release_reads gives back what it uses */
		return p->rail < 0 ? rdma_lost("a read of %llu bytes failed, and no rail is left", (unsigned long long)p->size) : 0;
	}
	p->state = VACANT;
	return --p->read->parts > 0 ? 0 : read_ended(x, p->read);
}

int rdma_completions(struct rdma *x)
{
	struct impi_fabric_done done[16];
	int moved = 0, n;
	while (x->parts_under_way > 0 && (n = x->ops->completed(x->conn.state, done, 16)) > 0) {
		for (int i = 0; i < n; i++)
			if (completed(x, &done[i]) != 0)
				return -1;
		moved = 1;
	}
	return moved;
}

int rdma_ask(struct rdma *x)
{
	int moved = 0;
	struct read *r = x->slow[0];
	while (x->slow_n > 0 && r->asked < r->size && r->asked - r->copied < MAX_FETCHES * piece_size(x)) {
		uint64_t n = r->size - r->asked < piece_size(x) ? r->size - r->asked : piece_size(x);
		int ok = rdma_post(x, (struct header){ .kind = ASKS, .number = r->message, .offset = r->at + r->asked, .length = n }, NULL, 0);
		if (ok <= 0)
			return ok < 0 ? -1 : moved;
		r->asked += n;
		moved = 1;
	}
	return moved;
}

int rdma_fetched(struct rdma *x, const struct header *h)
{
	struct read *r = x->slow_n > 0 ? x->slow[0] : NULL;
	if (r == NULL || r->copied == r->asked)
		return rules_broken("the peer sends a part of message %llu that was not asked for", (unsigned long long)h->number);
	uint64_t n = r->asked - r->copied < piece_size(x) ? r->asked - r->copied : piece_size(x);
	if (h->number != r->message || h->offset != r->at + r->copied || h->length != n)
		return rules_broken("the peer sends %llu bytes at %llu of message %llu, asked for were %llu at %llu of message %llu", (unsigned long long)h->length,
			(unsigned long long)h->offset, (unsigned long long)h->number, (unsigned long long)n, (unsigned long long)(r->at + r->copied),
			(unsigned long long)r->message);
	uint64_t first = n < KEY_BYTES ? n : KEY_BYTES;
	memcpy(r->mem + r->copied, x->keys, first);
	memcpy(r->mem + r->copied + first, x->scratch, n - first);
	if ((r->copied += n) < r->size)
		return 0;
	memmove(x->slow, x->slow + 1, (size_t)--x->slow_n * sizeof x->slow[0]);
	return read_ended(x, r);
}

void rdma_release_reads(struct rdma *x)
{
	for (int i = 0; i < SLOTS + 1; i++)
		if (x->reads[i].used)
			cache_unuse(x->reads[i].into);
	for (size_t i = 0; i < x->regions_n; i++)
		cache_reclaim(x->regions[i].file);
	if (x->own != NULL)
		cache_reclaim(x->own);
	free(x->regions), free(x->parts), free(x->queue_of_parts), free(x->scratch);
}
