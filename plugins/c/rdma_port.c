/* The plugin's side of a control region. Entries are copied before they are checked: the proc can
 * change them at any time. */
#include "rdma.h"

#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum {
	ENTRIES = 8 * SLOTS, ENTRY = sizeof(struct entry),
	CONTROL = 1024,      /* offset of the first control block, and size of one */
	RINGS = 4096,        /* offset of the submissions; the completions follow */
	BOUNCE = RINGS + 2 * ENTRIES * ENTRY,
	HEAD = 0, TAIL = 128, READER_SLEEPS = 256, WRITER_SLEEPS = 384, ENDED = 512, GONE = 640,
	IN = 0, OUT = 1,     /* submissions, completions */
};
_Static_assert(ENTRY == 64, "an entry has 64 bytes");

static _Atomic uint64_t *count_at(struct port *p, int ring, size_t field)
{
	return (_Atomic uint64_t *)(p->mem + CONTROL * (1 + ring) + field);
}

static _Atomic uint32_t *word_at(struct port *p, int ring, size_t field)
{
	return (_Atomic uint32_t *)(p->mem + CONTROL * (1 + ring) + field);
}

static volatile uint64_t *entry_at(struct port *p, int ring, uint64_t n)
{
	return (volatile uint64_t *)(p->mem + RINGS + (ring * ENTRIES + (int)(n % ENTRIES)) * ENTRY);
}

static uint8_t *slot_at(struct port *p, int area, uint64_t slot)
{
	return p->mem + BOUNCE + ((size_t)area * SLOTS + slot) * p->slot_size;
}

static int end_link(const char *level, const char *format, va_list args)
{
	char why[400];
	vsnprintf(why, sizeof why, format, args);
	impi_log(level, "a link by rdma ends: %s", why);
	return -1;
}

int rules_broken(const char *format, ...)
{
	va_list args;
	va_start(args, format);
	end_link("warn", format, args);
	va_end(args);
	return -1;
}

int rdma_lost(const char *format, ...)
{
	va_list args;
	va_start(args, format);
	end_link("debug", format, args);
	va_end(args);
	return -1;
}

int port_make(struct port *p, size_t slot_size, int fds[3])
{
	int bells[2], channels[2];
	*p = (struct port){ .slot_size = slot_size, .size = BOUNCE + 3 * SLOTS * slot_size };
	if ((p->mem = shared_make("impi-rdma", p->size, &p->file)) == NULL)
		return -1;
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, bells) != 0)
		goto no_bells;
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, channels) != 0)
		goto no_channels;
	if ((fds[0] = fcntl(p->file, F_DUPFD_CLOEXEC, 0)) < 0)
		goto no_copy;
	memcpy(p->mem, "impirdma", 8);
	*(uint32_t *)(p->mem + 8) = 1;
	*(uint32_t *)(p->mem + 12) = 0x01020304;
	*(uint32_t *)(p->mem + 24) = SLOTS;
	*(uint32_t *)(p->mem + 28) = (uint32_t)slot_size;
	p->bell = bells[0], p->channel = channels[0];
	fds[1] = bells[1], fds[2] = channels[1];
	return 0;
no_copy:
	close(channels[0]), close(channels[1]);
no_channels:
	close(bells[0]), close(bells[1]);
no_bells:
	munmap(p->mem, p->size);
	close(p->file);
	return -1;
}

/* The proc takes the end of the bell for the end of all reads, so that it is closed when there are
 * none. */
void port_close(struct port *p)
{
	atomic_store(word_at(p, IN, GONE), 1);
	port_forsake(p);
	munmap(p->mem, p->size);
	if (p->file >= 0)
		close(p->file);
	close(p->channel);
	close(p->bell);
}

static int waits(struct port *p) { return p->in_head != p->in_tail || atomic_load(count_at(p, IN, HEAD)) != p->in_tail; }

int port_left(struct port *p) { return p->left && !waits(p); }

static int check(struct port *p, const struct entry *e)
{
	switch (e->kind) {
	case SEND_SLOT:
		if (e->slot != p->sends % SLOTS || e->length == 0 || e->length > p->slot_size)
			return rules_broken("the proc sends %llu bytes in slot %u; the next is slot %u of %zu bytes", (unsigned long long)e->length, e->slot,
				(unsigned)(p->sends % SLOTS), p->slot_size);
		p->sends++;
		return 0;
	case FREE_SLOT:
		if (e->slot != p->frees % SLOTS || p->frees == p->gives)
			return rules_broken("the proc gives back slot %u for receiving; the next is slot %u, and %u are in use", e->slot,
				(unsigned)(p->frees % SLOTS), (unsigned)(p->gives - p->frees));
		p->frees++;
		return 0;
	case SEND_LOAN:
	case READ_PART:
		if (e->length == 0 || e->length > MAX_LENGTH || e->offset > MAX_REGION)
			return rules_broken("the proc submits %llu bytes at offset %llu of region %u", (unsigned long long)e->length,
				(unsigned long long)e->offset, e->region);
		return 0;
	case MESSAGE_DONE:
	case PROC_ENDED:
	case FORGET:
		return 0;
	}
	return rules_broken("the proc submits an entry of kind %u, which there is not", e->kind);
}

int port_next(struct port *p, struct entry *e)
{
	if (p->in_head == p->in_tail) {
		uint64_t head = atomic_load(count_at(p, IN, HEAD)); /* once: the proc can write it */
		if (head - p->in_tail > ENTRIES)
			return rules_broken("the proc says that it has written %llu entries, %llu were read of %d that fit", (unsigned long long)head,
				(unsigned long long)p->in_tail, ENTRIES);
		p->in_head = head;
		if (head == p->in_tail)
			return 0;
	}
	uint64_t copy[ENTRY / 8];
	volatile uint64_t *from = entry_at(p, IN, p->in_tail);
	for (size_t i = 0; i < ENTRY / 8; i++)
		copy[i] = from[i];
	memcpy(e, copy, ENTRY);
	p->in_tail++;
	atomic_store(count_at(p, IN, TAIL), p->in_tail);
	return check(p, e) == 0 ? 1 : -1;
}

/* quiet empties the bell, which makes it writable at the other end. */
static void quiet(struct port *p)
{
	char bytes[512];
	while (recv(p->bell, bytes, sizeof bytes, MSG_DONTWAIT) > 0)
		;
}

int port_complete(struct port *p, struct entry e)
{
	if (p->out_head - p->out_tail == ENTRIES) {
		uint64_t tail = atomic_load(count_at(p, OUT, TAIL));
		if (p->out_head - tail > ENTRIES || tail - p->out_tail > ENTRIES)
			return rules_broken("the proc says that it has read %llu entries of %llu", (unsigned long long)tail, (unsigned long long)p->out_head);
		if (tail == p->out_tail)
			return rules_broken("the proc has left %d entries unread, which is more than can be of use", ENTRIES);
		p->out_tail = tail;
	}
	uint64_t copy[ENTRY / 8];
	volatile uint64_t *to = entry_at(p, OUT, p->out_head);
	memcpy(copy, &e, ENTRY);
	for (size_t i = 0; i < ENTRY / 8; i++)
		to[i] = copy[i];
	p->out_head++;
	atomic_store(count_at(p, OUT, HEAD), p->out_head);
	if (claimed(word_at(p, OUT, READER_SLEEPS)))
		bell_ring(p->bell);
	if ((e.kind == SLOT_SENT || e.kind == LOAN_SENT) && claimed(word_at(p, IN, WRITER_SLEEPS)))
		quiet(p);
	return 0;
}

uint8_t *port_send_slot(struct port *p, uint32_t slot) { return slot_at(p, 0, slot); }

uint8_t *port_receive_slot(struct port *p)
{
	return p->gives - p->frees == SLOTS ? NULL : slot_at(p, 1, p->gives % SLOTS);
}

int port_arrive(struct port *p, size_t n)
{
	uint32_t slot = (uint32_t)(p->gives++ % SLOTS);
	return port_complete(p, (struct entry){ .kind = ARRIVED, .slot = slot, .length = n });
}

int port_stage_at(struct port *p, const struct entry *e, uint64_t *at)
{
	if (e->offset >= SLOTS * p->slot_size || e->offset % p->slot_size + e->length > p->slot_size)
		return 0;
	*at = (uint64_t)(slot_at(p, 2, 0) - p->mem) + e->offset;
	return 1;
}

void port_deaf(struct port *p)
{
	atomic_store(word_at(p, IN, GONE), 1);
	bell_ring(p->bell);
}

int port_arm(struct port *p)
{
	int before = p->left;
	if (port_look(p) != 0)
		return -1;
	if (p->left != before)
		return 1;
	atomic_store(word_at(p, IN, READER_SLEEPS), 1);
	if (!waits(p))
		return 0;
	atomic_store(word_at(p, IN, READER_SLEEPS), 0);
	return 1;
}
