// The memory of package internal/fastpath, for C. fastpath.go compares the two.

#ifndef IMPI_FAST_PATH_H
#define IMPI_FAST_PATH_H

#include <stdatomic.h>
#include <stdint.h>

enum { PEERS = 64, COMMS = 64, RANKS = 1024, REQUESTS = 256, NONE = -1, EVERY = -2, ON_BOARD = -3 };
enum { OPEN, INSIDE, CLOSED };
enum { FREE, POSTED, DONE, ADOPTED, MOVING };
enum { FASTBOXES = 64, IN_FASTBOX = 96, FASTBOX_LAG = FASTBOXES / 4, FASTBOX_SHARE = 2, FASTBOX_PIECE = 16 << 10, FASTBOX_ALIGN = 64, MAX_FASTBOX = 64 << 10, ENVELOPE_COST = 320, FAR_LEAST = 6 << 10 };

// A fast-box message and where it lies: see plugins/sdk/link.
struct place {
	_Atomic uint64_t mark;
	uint64_t context;
	int32_t rank, tag;
	uint32_t len, kind;
	char data[IN_FASTBOX];
};

// A message to a peer with a carrier: see internal/native/library.h.
struct carried {
	uint32_t taken, at;
	uint64_t context;
	int32_t rank, tag;
	uint32_t bytes, kind;
};

struct peer {
	struct place *out, *in;
	_Atomic uint64_t *read, *told;
	_Atomic uint32_t *sleeps;
	_Atomic uint64_t *bytes;
	uint64_t sent, seen, taken;
	uint64_t charged, limit, received, review, payload;
	char *out_data, *in_data;
	uint64_t out_area, in_area, placed, freed, owed, ends[FASTBOXES];
	void *carrier;
	uint64_t out_at, in_at;
	uint32_t sends, takes;
	uint64_t vain;
	uint64_t waited;
};

struct comm {
	uintptr_t handle;
	uint64_t context;
	int32_t rank, tag_ub, board, whole, team, size;
	int8_t peer[RANKS];
};

struct request {
	uint32_t gen, state;
	uintptr_t comm;
	uint64_t context;
	void *buf;
	uint64_t room;
	int32_t rank, tag, peer, next, source, from;
	uint32_t bytes, what;
	const void *send;
	uint64_t step;
	int32_t board;
	uint32_t kind, op, type;
	void *loop;
};

// The nonblocking operations of a board that C has started and that are not over, in their order.
struct begun {
	int32_t first, last;
	uint32_t read, found;
};

// A communicator's place on the board: see core/board, whose layout this is.
enum { SLOTS = 16, ENTRIES = 8, INLINE = 48, ROOM = 4096, HALF = 128 << 10, AREA = ENTRIES * ROOM + 2 * HALF };
enum { SLOT_HEAD = 256, ENTRIES_AT = 128, ENTRY = 64, MEMBER = ENTRIES_AT + ENTRIES * ENTRY, STEP_BITS = 16, READ = 1, ASKED_AT = 8 };

// What C does there, and how the board calls it: see package internal/fastpath.
enum { MOST = 32 << 10, PAIR_MOST = 8 << 10, ALLREDUCE_MOST = 4 << 10, SELDOM = 32, START_MOST = 32 << 10 };
enum { BARRIER = 0, BCAST = 1, GATHER = 2, SCATTER = 4, ALLGATHER = 6, ALLTOALL = 8, REDUCE = 11, ALLREDUCE = 12, REDUCE_SCATTER_BLOCK = 14 };

// What is lent: from which length on is in each board.
enum { MEMBERS = 64, LENT = 128, LEND_SIZE = 8, LEND_MOST = 4 << 20, LEND_BCAST = (128 << 10) + 1, PIECE = 128 << 10, FETCH = 1 << 20, FOUND = 4, FAR_OWN = 1 << 20 };

struct memory_key { uint64_t process, addr, cookie[2]; };

struct board {
	char *slot, *areas;
	_Atomic uint64_t number;
	uint64_t written[ENTRIES], rooms[2], seen;
	uint32_t members, me, backed[2], busy, ops, rechecks, unused;
	uint64_t lend;
	struct memory_key keys[MEMBERS];
};

// A window of memory that MPI has allocated: see package internal/fastpath.
enum { WINDOWS = 64, WINDOW_MOST = 256 << 10, WINDOW_SELDOM = 128 };

struct target {
	char *base;
	int64_t size, unit;
	_Atomic uint32_t *lock;
	uint32_t open, unused;
};

struct window {
	uintptr_t handle;
	struct target *targets;
	uint32_t ranks, every, passive, whole, used, idle;
	int32_t board;
	uint32_t fences, fenced, unused;
};

// A communicator of the site's own MPI, and an operation there: see packages internal/fastpath and
// internal/native.
enum { TEAMS = 64, TEAM_MOST = 4 << 20, TEAM_SELDOM = 1024, TEAM_LONG = 4 << 10, LONG_MOST = 4 << 20 };
#define NOWHERE UINT32_MAX // where data are that come apart
enum { PHASE_BARRIER = 1, PHASE_BCAST, PHASE_REDUCE, PHASE_ALLREDUCE, PHASE_GATHER, PHASE_ALLGATHER, PHASE_ALLTOALL };

struct team {
	int32_t pending, error;
	_Atomic uint32_t count;
};

struct phase {
	int32_t comm, what, type, op, root;
	int64_t n;
	const void *in;
	void *out;
};

struct fastpath {
	_Atomic uint32_t gate, leave_asked;
	int32_t polls;
	uint32_t streak;
	int32_t first, last, spare, used, top;
	uint32_t yields, counts;
	_Atomic uint32_t busy;
	uint32_t starts, shared, serves, carried;
	struct peer peers[PEERS];
	struct comm comms[COMMS];
	struct request table[REQUESTS];
	struct board boards[SLOTS];
	struct window windows[WINDOWS];
	uint64_t waited[SLOTS][MEMBERS];
	struct begun begun[SLOTS];
	struct carriers {
		int (*pump)(void *all, int most);
		int (*put)(void *carrier, const struct carried *, uintptr_t data);
		void (*took)(void *carrier, uint64_t taken);
		void *all;
		int (*lend)(void *carrier, const struct carried *, uintptr_t data, int32_t *number);
		int (*fetch)(void *carrier, void *to, uint64_t bytes, int32_t *number);
		int (*begin)(void *library, const struct phase *, int32_t *number);
		int (*test)(void *library, int32_t number);
		void *library;
	} carriers;
	struct team teams[TEAMS];
	struct moves { int32_t first, last; } moves;
};

// What Go tells about datatypes and memory: the bytes of an element of each predefined type
// that is memory as it stands, or 0; and pages that Go has found readable, or writable.
enum { KIND = 15 }; // of handles of requests of C: see internal/abi/handles
// STREAK receives in a row need not look whether anything else has come; CARRIED of them from a
// carrier count as one. Messages longer than CARRIED_MOST are lent to a carrier.
enum { STREAK = 64, CARRIED = 16, CARRIED_MOST = 8000 };
enum { TYPES = 1024, PAGES = 4096, PAGE_SHIFT = 12 };

extern struct fastpath impi_fast_path;
extern uint8_t impi_width[TYPES], impi_kind[TYPES];

// How numbers of a predefined type are combined, or 0: as integers of so many bytes, signed or not,
// as floats, as bits alone, or as truths.
enum { SIGNED = 16, UNSIGNED = 32, FLOAT = 48, BITS = 64, TRUTH = 80, SORT = 112, BYTES = 15 };
extern uint8_t impi_number[TYPES];

// The predefined operations, by handle; 0 for others.
enum { SUM = 1, PROD, MAX, MIN, LAND, LOR, LXOR, BAND, BOR, BXOR, OPS, OP_HANDLES = 64 };
extern uint8_t impi_op[OP_HANDLES];

// The numbers of the site's MPI for predefined types and operations, and 1 more, by handle; 0:
// none.
extern uint8_t impi_site_type[TYPES], impi_site_op[OP_HANDLES];
extern _Atomic uintptr_t impi_readable[PAGES], impi_writable[PAGES];

#endif
