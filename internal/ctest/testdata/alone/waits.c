// What C does with the MPI of its site, in the world of world.h: how it waits, receives, sends, and
// does collective operations, and what it leaves to Go.

#include "world.h"

static void test_observe(void)
{
	begin_test("what a yield says of the core");
	int32_t want[] = { 1, 2, 4, 8, 16, 32, 64, 64 };
	x->polls = 0;
	for (int i = 0; i < 8; i++) {
		observe(SHARED);
		CHECK(x->polls == want[i]);
	}
	observe(SHARED + 1);
	CHECK(x->polls == 32);
	x->polls = 1;
	observe(SHARED + 1);
	CHECK(x->polls == 0);
}

static void test_patience(void)
{
	begin_test("nothing comes");
	receive_eight();
	CHECK(went == 1 && !strcmp(went_to, "abiRecv"));
	uint64_t waited = now - 1000 * US;
	// the wait looks at the clock when it yields, after up to 512 looks
	CHECK(waited >= PATIENCE && waited < PATIENCE + 60 * US);
	CHECK(x->carried == (uint32_t)yields + 1 && x->polls == POLLS_MAX);

	begin_test("nothing comes, and the core is not to be offered");
	x->yields = 0;
	receive_eight();
	CHECK(went == 1 && yields == 0 && pumps == 2 * CARRIED);

	begin_test("nothing comes, and Go serves others");
	x->serves = 1;
	receive_eight();
	CHECK(went == 1 && yields == 0 && pumps == 2 * CARRIED);

	begin_test("nothing comes, where others compute");
	x->yields = 0, x->polls = 0;
	receive_eight();
	CHECK(went == 1 && yields == 0 && pumps == LAST_LOOKS);

	begin_test("the core is another's at first");
	x->polls = 0, at_pump = CARRIER_LOOKS + 1, on_pump = eight_come;
	receive_eight();
	CHECK(went == 0 && yields == 1 && x->polls == 1);

	begin_test("a thread runs for a moment at each yield");
	yield_takes = SHARED + 1;
	receive_eight();
	CHECK(went == 1 && x->polls == 0 && pumps >= (yields - 1) * CARRIER_LOOKS && pumps <= 2 * CARRIED + yields * (CARRIER_LOOKS + 1));

	begin_test("the core is taken for long");
	yield_takes = STOLEN + 1;
	receive_eight();
	CHECK(went == 1 && yields == 1 && x->polls == 1 && pumps == 2 * CARRIED + 1 + CARRIER_LOOKS);

	begin_test("the core is taken for long, and the message has come meanwhile");
	yield_takes = PATIENCE, at_pump = 2 * CARRIED + CARRIER_LOOKS, on_pump = eight_come;
	receive_eight();
	CHECK(went == 0 && yields == 1);
}

static void test_receive(void)
{
	for (int n = 0; n < 400; n += n < 40 ? 1 : 40) {
		begin_test("a message comes at some look");
		at_pump = n, on_pump = eight_come;
		if (n == 0)
			eight_come();
		CHECK(receive_eight() == MPI_SUCCESS && went == 0 && pumps == n && (yields > 0) == (n > 2 * CARRIED) && theirs[7] == 8 && is_status(0, TAG, 8));
		CHECK(x->gate == OPEN && x->peers[0].taken == 1);
	}
	void (*const other[])(void) = { bytes_come, comes_behind_bytes, go_wants_in };
	for (int i = 0; i < 3; i++) {
		begin_test("what only Go can take");
		at_pump = 3, on_pump = other[i];
		receive_eight();
		CHECK(went == 1 && pumps == 3 && x->peers[0].taken == 0);
		begin_test("what only Go can take, for a receive from anybody");
		at_pump = 3, on_pump = other[i];
		MPI_Recv(theirs, 8, MPI_BYTE, MPI_ANY_SOURCE, TAG, MPI_COMM_WORLD, STATUS);
		CHECK(went == 1 && pumps <= 4 && x->peers[0].taken == 0);
		begin_test("what only Go can take, while a receive is waited for");
		known_words.request[0] = MPI_REQUEST_NULL;
		MPI_Irecv(theirs, 8, MPI_BYTE, YOU, TAG, MPI_COMM_WORLD, &known_words.request[0]);
		at_pump = 3, on_pump = other[i];
		MPI_Wait(&known_words.request[0], STATUS);
		CHECK(went == 1 && !strcmp(went_to, "abiWait") && pumps == 3 && x->peers[0].taken == 0);
	}
	begin_test("what only Go can take, while a receive from anybody is waited for");
	MPI_Irecv(theirs, 8, MPI_BYTE, MPI_ANY_SOURCE, TAG, MPI_COMM_WORLD, &known_words.request[0]);
	at_pump = 3, on_pump = comes_behind_bytes;
	MPI_Wait(&known_words.request[0], STATUS);
	CHECK(went == 1 && pumps == 3 && x->peers[0].taken == 0);

	begin_test("from anybody, after a while");
	at_pump = 300, on_pump = eight_come;
	MPI_Recv(theirs, 8, MPI_BYTE, MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, STATUS);
	CHECK(went == 0 && pumps == 300 && yields > 0 && is_status(0, TAG, 8));

	begin_test("Go looks after other links now and then");
	for (int i = 1; i <= CARRIED * STREAK; i++) {
		eight_come();
		receive_eight();
		CHECK((went == 1) == (i == CARRIED * STREAK));
	}
	CHECK(tooks == (CARRIED * STREAK - 1) / FASTBOX_LAG && told_other == x->peers[0].taken);

	begin_test("a new allowance is told behind the call");
	x->peers[0].review = 1;
	eight_come();
	receive_eight();
	CHECK(went == 0 && reviews == 1);
	x->peers[0].review = UINT64_MAX;
	eight_come();
	receive_eight();
	CHECK(reviews == 1);
}

static void test_long_receive(void)
{
	const int first_looks = 2 * CARRIED + LONG_BYTES / LOOK_BYTES;
	for (int late = 0; late < 2; late++) {
		begin_test("long data move");
		long_comes();
		over_after[10] = first_looks + late; // tests that say no
		CHECK(receive_long() == MPI_SUCCESS && went == 0 && fetches == 1 && fetched[0].to == theirs && fetched[0].bytes == LONG_BYTES);
		CHECK((yields > 0) == late && tests == first_looks + late + 1 && is_status(0, TAG, LONG_BYTES));
		CHECK(x->moves.first == NONE && x->moves.last == NONE && x->spare == 0 && x->table[0].state == FREE && x->peers[0].taken == 1);
	}
	begin_test("long data are there at once");
	long_comes();
	fetch_gives = NONE;
	CHECK(receive_long() == MPI_SUCCESS && went == 0 && tests == 0 && is_status(0, TAG, LONG_BYTES) && x->spare == 0);

	begin_test("long data take too long");
	long_comes();
	over_after[10] = -1;
	x->yields = x->polls = 0;
	CHECK(receive_long() == MPI_SUCCESS && went == 1 && !strcmp(went_to, "abiWait") && tests == LAST_LOOKS + LONG_BYTES / LOOK_BYTES / 4 + 1);
	CHECK(x->moves.first == 0 && x->table[0].state == MOVING && x->table[0].board == 10);

	begin_test("Go's wait fails");
	long_comes();
	over_after[10] = -1, go_gives = MPI_ERR_OTHER;
	receive_long();
	CHECK(went == 2 && !strcmp(order, "FGG")); // Go's own call fails, too, and says why

	begin_test("the library fails");
	long_comes();
	ends_with = MPI_ERR_OTHER;
	receive_long();
	CHECK(went == 1 && tests == 1 && yields == 0 && x->table[0].board == NONE && x->table[0].what == MPI_ERR_OTHER && x->table[0].state == MOVING);

	begin_test("the library fails while C tests");
	MPI_Irecv(theirs, LONG_BYTES, MPI_BYTE, YOU, TAG, MPI_COMM_WORLD, &known_words.request[0]);
	long_comes();
	// this receive makes C look at the messages
	MPI_Irecv(mine, 8, MPI_BYTE, YOU, TAG + 9, MPI_COMM_WORLD, &known_words.request[1]);
	ends_with = MPI_ERR_OTHER;
	for (int i = 0; i < 3; i++) {
		MPI_Test(&known_words.request[0], &known_words.flag, STATUS);
		CHECK(known_words.flag == 0 && tests == 1); // until Go is asked, which says why
	}

	begin_test("the library does not begin");
	long_comes();
	fetch_error = MPI_ERR_OTHER;
	receive_long();
	CHECK(went == 1 && !strcmp(went_to, "abiRecv") && x->peers[0].taken == 0 && x->spare == 0);

	begin_test("longer than its receive");
	long_comes();
	MPI_Recv(theirs, LONG_BYTES - 1, MPI_BYTE, YOU, TAG, MPI_COMM_WORLD, STATUS);
	CHECK(went == 1 && fetches == 0 && x->peers[0].taken == 0);

	begin_test("into memory that may not be there");
	long_comes();
	forget(theirs + 40000);
	receive_long();
	CHECK(went == 1 && fetches == 0 && x->peers[0].taken == 0);

	begin_test("of another tag");
	long_comes();
	MPI_Recv(theirs, LONG_BYTES, MPI_BYTE, YOU, TAG + 1, MPI_COMM_WORLD, STATUS);
	CHECK(went == 1 && fetches == 0 && x->peers[0].taken == 0);

	begin_test("longer than a receive that waits");
	MPI_Irecv(theirs, LONG_BYTES - 1, MPI_BYTE, YOU, TAG, MPI_COMM_WORLD, &known_words.request[0]);
	long_comes();
	MPI_Wait(&known_words.request[0], STATUS);
	CHECK(went == 1 && !strcmp(went_to, "abiWait") && fetches == 0 && x->peers[0].taken == 0);

	begin_test("for a receive that waits, into memory that may not be there");
	MPI_Irecv(theirs, LONG_BYTES, MPI_BYTE, YOU, TAG, MPI_COMM_WORLD, &known_words.request[0]);
	long_comes();
	forget(theirs + 40000);
	MPI_Wait(&known_words.request[0], STATUS);
	CHECK(went == 1 && !strcmp(went_to, "abiWait") && fetches == 0 && x->peers[0].taken == 0);

	begin_test("its length says apart, its place does not");
	long_comes();
	memset(ins[0].data, 0, 4);
	receive_long();
	CHECK(fetches == 0);

	begin_test("no request is free");
	long_comes();
	x->spare = NONE;
	receive_long();
	CHECK(went == 1 && fetches == 0 && x->peers[0].taken == 0);
}

static void more_come(void)
{
	comes(LONG_BYTES + 1, TAG + 1);
	comes(8, TAG + 2);
}

static void test_many(void)
{
	begin_test("receives in another order than messages");
	MPI_Request *q = known_words.request;
	for (int i = 0; i < 4; i++)
		MPI_Irecv(theirs + i * 100000, 100000, MPI_BYTE, YOU, TAG + 3 - i, MPI_COMM_WORLD, &q[i]);
	CHECK(went == 0 && x->first == 0);
	comes(LONG_BYTES, TAG);
	at_pump = 20, on_pump = more_come;
	over_after[10] = 60;
	CHECK(MPI_Wait(&q[3], &known_words.status[3]) == MPI_SUCCESS && went == 0 && is_status(3, TAG, LONG_BYTES) && q[3] == MPI_REQUEST_NULL);
	// the second fetch has begun meanwhile
	CHECK(fetches == 2 && fetched[0].to == theirs + 300000 && fetched[1].to == theirs + 200000 && fetched[1].bytes == LONG_BYTES + 1);
	CHECK(x->moves.first == 2 && x->moves.last == 2 && x->first == 0 && x->last == 0 && x->table[1].state == DONE);
	CHECK(MPI_Waitall(2, &q[1], &known_words.status[1]) == MPI_SUCCESS && went == 0 && is_status(1, TAG + 2, 8) && is_status(2, TAG + 1, LONG_BYTES + 1));
	comes(LONG_BYTES, TAG + 3);
	over_after[12] = 1;
	MPI_Wait(&q[0], &known_words.status[0]);
	CHECK(went == 0 && is_status(0, TAG + 3, LONG_BYTES) && x->moves.first == NONE && x->first == NONE);

	int *flag = &known_words.flag;
	begin_test("another receive waits behind the one whose data move");
	for (int i = 0; i < 2; i++)
		MPI_Irecv(theirs + i * 100000, 100000, MPI_BYTE, YOU, TAG + i, MPI_COMM_WORLD, &q[i]);
	long_comes();
	MPI_Wait(&q[0], STATUS);
	CHECK(went == 0 && x->moves.first == NONE && x->moves.last == NONE && x->first == 1 && x->last == 1);

	begin_test("the middle one of three is over first");
	for (int i = 0; i < 3; i++) {
		MPI_Irecv(theirs + i * 100000, 100000, MPI_BYTE, YOU, TAG, MPI_COMM_WORLD, &q[i]);
		long_comes();
	}
	MPI_Irecv(mine, 8, MPI_BYTE, YOU, TAG + 9, MPI_COMM_WORLD, &q[3]); // makes C look at the messages
	over_after[10] = over_after[12] = 1000;
	CHECK(fetches == 3);
	for (int i = 1; i >= 0; i--) { // the second, and the first, which is not over
		MPI_Test(&q[i], flag, &known_words.status[i]);
		CHECK(*flag == i && (q[i] == MPI_REQUEST_NULL) == i);
	}
	CHECK(x->moves.first == 0 && x->table[0].next == 2 && x->moves.last == 2);
	over_after[12] = 0;
	MPI_Test(&q[2], flag, &known_words.status[2]);
	CHECK(*flag && x->moves.first == 0 && x->moves.last == 0 && went == 0);
}

static void takes_one(void) { STORE(taken_by_other, taken_by_other + 1); }
static void allows(void) { x->peers[0].limit = UINT64_MAX; }
static void go_stays(void) { x->gate = CLOSED; }
static void another_begins(void) { x->peers[0].limit = UINT64_MAX, x->spare = NONE; }
static int send_long(void) { return MPI_Send(mine, LONG_BYTES, MPI_BYTE, YOU, TAG, MPI_COMM_WORLD); }

static void test_send(void)
{
	begin_test("a long send");
	over_after[10] = 50, other_sleeps = 1;
	CHECK(send_long() == MPI_SUCCESS && went == 0 && lent == 1 && tests == 51 && x->spare == 0 && x->gate == OPEN);

	begin_test("a long send that is done at once");
	lend_gives = NONE, other_sleeps = 1;
	CHECK(send_long() == MPI_SUCCESS && went == 0 && tests == 0 && x->spare == 0 && wakes == 1);

	begin_test("a long send begun, and done at once");
	lend_gives = NONE;
	MPI_Isend(mine, LONG_BYTES, MPI_BYTE, YOU, TAG, MPI_COMM_WORLD, &known_words.request[0]);
	CHECK(went == 0 && x->moves.first == NONE);
	MPI_Wait(&known_words.request[0], STATUS);
	CHECK(went == 0 && tests == 0 && lent == 1);

	begin_test("a long send that takes too long");
	over_after[10] = -1, x->yields = 0;
	CHECK(send_long() == MPI_SUCCESS && went == 1 && !strcmp(went_to, "abiWait"));

	begin_test("a short send to a peer that takes nothing for a while");
	for (int i = 0; i < FASTBOXES; i++)
		MPI_Send(mine, 8, MPI_BYTE, YOU, TAG, MPI_COMM_WORLD);
	CHECK(went == 0 && pumps == 0 && puts_done == FASTBOXES);
	at_pump = 100, on_pump = takes_one;
	MPI_Send(mine, 8, MPI_BYTE, YOU, TAG, MPI_COMM_WORLD);
	CHECK(went == 0 && pumps == 100 && puts_done == FASTBOXES + 1);
	at_pump = 0;
	for (int i = 1; i < 3; i++) { // Go is asked at once the second time
		pumps = 0;
		MPI_Send(mine, 8, MPI_BYTE, YOU, TAG, MPI_COMM_WORLD);
		CHECK(went == i && (pumps > 0) == (i == 1));
	}
	takes_one();
	MPI_Send(mine, 8, MPI_BYTE, YOU, TAG, MPI_COMM_WORLD);
	CHECK(went == 2 && puts_done == FASTBOXES + 2);

	begin_test("the library has no room for a while");
	puts_from = 40;
	MPI_Send(mine, 8, MPI_BYTE, YOU, TAG, MPI_COMM_WORLD);
	CHECK(went == 0 && pumps == 40 && puts_done == 1);

	begin_test("an allowance that Go can hear of");
	x->peers[0].limit = 1000, on_hear = allows, over_after[10] = 3;
	CHECK(send_long() == MPI_SUCCESS && went == 0 && hears == 1 && lent == 1);

	begin_test("an allowance for some messages");
	x->peers[0].limit = 3 * cost(8);
	for (int i = 1; i <= 4; i++) {
		MPI_Send(mine, 8, MPI_BYTE, YOU, TAG, MPI_COMM_WORLD);
		CHECK(hears == i / 4 && went == hears);
	}

	begin_test("another thread takes the last request meanwhile");
	x->peers[0].limit = 0, on_hear = another_begins;
	MPI_Isend(mine, 8, MPI_BYTE, YOU, TAG, MPI_COMM_WORLD, &known_words.request[0]);
	CHECK(went == 1 && !strcmp(went_to, "abiIsend") && hears == 1 && puts_done == 0);

	begin_test("no allowance");
	x->peers[0].limit = 1000;
	send_long();
	CHECK(went == 1 && !strcmp(went_to, "abiSend") && hears == 1 && lent == 0 && x->gate == OPEN);

	begin_test("the gate is another's after an allowance");
	x->peers[0].limit = 1000, on_hear = go_stays;
	send_long();
	CHECK(went == 1 && !strcmp(went_to, "abiSend") && lent == 0 && x->gate == CLOSED);

	begin_test("no request is free");
	x->spare = NONE;
	send_long();
	CHECK(went == 1 && lent == 0);
}

static void test_exchange(void)
{
	MPI_Status *st = STATUS;
	for (int go = 0; go < 2; go++) {
		begin_test(go ? "an exchange whose receive is Go's" : "an exchange");
		over_after[10] = over_after[11] = 20;
		lend_gives = 11, fetch_gives = 10;
		if (go)
			bytes_come();
		else
			long_comes();
		CHECK(MPI_Sendrecv(mine, LONG_BYTES, MPI_BYTE, YOU, TAG, theirs, LONG_BYTES, MPI_BYTE, YOU, TAG, MPI_COMM_WORLD, st) == MPI_SUCCESS);
		CHECK(!strcmp(order, go ? "LG" : "LF") && went == go && (go || is_status(0, TAG, LONG_BYTES)));
		CHECK(!go || !strcmp(went_to, "abiSendrecv"));
		CHECK(over_after[11] < 20 && x->moves.first == NONE && x->spare != NONE && x->gate == OPEN);
	}
	begin_test("an exchange without an allowance");
	x->peers[0].limit = 1000;
	MPI_Sendrecv(mine, LONG_BYTES, MPI_BYTE, YOU, TAG, theirs, LONG_BYTES, MPI_BYTE, YOU, TAG, MPI_COMM_WORLD, st);
	CHECK(went == 1 && !strcmp(went_to, "abiSendrecv") && hears == 1 && lent == 0);

	begin_test("an exchange whose send takes too long");
	long_comes();
	over_after[11] = -1, lend_gives = 11, go_gives = MPI_ERR_OTHER;
	CHECK(MPI_Sendrecv(mine, LONG_BYTES, MPI_BYTE, YOU, TAG, theirs, LONG_BYTES, MPI_BYTE, YOU, TAG, MPI_COMM_WORLD, st) == MPI_ERR_OTHER);
	CHECK(went == 1 && !strcmp(went_to, "abiWait"));
}

static void test_site(void)
{
	begin_test("a phase that is over at once");
	CHECK(MPI_Barrier(MPI_COMM_WORLD) == MPI_SUCCESS && went == 0 && begins == 1 && begun_phase.phase == PHASE_BARRIER && begun_phase.comm == 3);
	CHECK(x->teams[3].count == 1 && x->teams[3].pending == NONE);

	begin_test("a phase that takes a while");
	begin_gives = 7, over_after[7] = 400;
	CHECK(MPI_Bcast(theirs, 64, MPI_BYTE, YOU, MPI_COMM_WORLD) == MPI_SUCCESS && went == 0 && tests == 401 && yields > 0 && x->teams[3].count == 1);
	CHECK(begun_phase.phase == PHASE_BCAST && begun_phase.root == YOU && begun_phase.n == 64 && begun_phase.out == theirs);

	begin_test("a long phase is looked at more often");
	begin_gives = 7, over_after[7] = 2 * CARRIED + 65536 / BYTES_LOOK - 1;
	MPI_Bcast(theirs, 65536, MPI_BYTE, ME, MPI_COMM_WORLD);
	CHECK(went == 0 && yields == 0);

	begin_test("a phase that Go goes on with");
	begin_gives = 7, over_after[7] = -1;
	MPI_Barrier(MPI_COMM_WORLD);
	CHECK(went == 1 && !strcmp(went_to, "abiBarrier") && x->teams[3].pending == 7 && x->teams[3].error == 0 && x->teams[3].count == 0 && x->gate == OPEN);
	MPI_Barrier(MPI_COMM_WORLD); // Go has not ended it yet
	CHECK(went == 2 && begins == 1);

	begin_test("a phase that does not begin");
	begin_error = MPI_ERR_OTHER;
	MPI_Barrier(MPI_COMM_WORLD);
	CHECK(went == 1 && x->teams[3].error == MPI_ERR_OTHER && x->teams[3].pending == NONE && x->teams[3].count == 0);

	begin_test("a phase that fails");
	begin_gives = 7, ends_with = MPI_ERR_OTHER;
	MPI_Barrier(MPI_COMM_WORLD);
	CHECK(went == 1 && tests == 1 && x->teams[3].error == MPI_ERR_OTHER && x->teams[3].pending == NONE && x->teams[3].count == 0);

	begin_test("phases of arguments that only Go can judge");
	MPI_Bcast(theirs, 64, MPI_BYTE, 2, MPI_COMM_WORLD);
	MPI_Bcast(theirs, 64, MPI_BYTE, -1, MPI_COMM_WORLD);
	MPI_Alltoall(theirs, 64, MPI_BYTE, theirs + 127, 64, MPI_BYTE, MPI_COMM_WORLD); // a byte of both
	MPI_Alltoall(mine, 63, MPI_BYTE, theirs, 64, MPI_BYTE, MPI_COMM_WORLD);
	impi_width[(uintptr_t)MPI_INT] = 4;
	MPI_Alltoall(mine, 16, MPI_INT, theirs, 64, MPI_BYTE, MPI_COMM_WORLD);
	know(huge, sizeof huge);
	MPI_Alltoall(MPI_IN_PLACE, 0, MPI_BYTE, huge, (int)sizeof huge / 2, MPI_BYTE, MPI_COMM_WORLD);
	impi_writable[(uintptr_t)theirs >> PAGE_SHIFT & (PAGES - 1)] = 0;
	MPI_Bcast(theirs, 64, MPI_BYTE, YOU, MPI_COMM_WORLD);
	MPI_Bcast(theirs, 64, MPI_BYTE, ME, MPI_COMM_WORLD); // its root need not write
	CHECK(begins == 1 && went == 7);
	forget(theirs);
	MPI_Alltoall(mine, 64, MPI_BYTE, theirs, 64, MPI_BYTE, MPI_COMM_WORLD);
	MPI_Alltoall(theirs, 64, MPI_BYTE, mine, 64, MPI_BYTE, MPI_COMM_WORLD);
	CHECK(went == 9 && begins == 1 && x->gate == OPEN);

	begin_test("blocks side by side, and in place");
	MPI_Alltoall(theirs, 64, MPI_BYTE, theirs + 128, 64, MPI_BYTE, MPI_COMM_WORLD);
	CHECK(went == 0 && begins == 1 && begun_phase.in == theirs && begun_phase.out == theirs + 128 && begun_phase.n == 64);
	MPI_Alltoall(MPI_IN_PLACE, 0, MPI_BYTE, theirs, 64, MPI_BYTE, MPI_COMM_WORLD);
	CHECK(went == 0 && begins == 2 && begun_phase.in == NULL && begun_phase.out == theirs);
}

static void test_seldom(void)
{
	begin_test("Go does one phase in many");
	int all = 0;
	for (int i = 0; i < 4 * TEAM_SELDOM; i++)
		MPI_Barrier(MPI_COMM_WORLD);
	CHECK(went == 4 && begins == 4 * TEAM_SELDOM - 4);
	all = went;
	for (int i = 0; i < 100; i++) // each counts as 65
		MPI_Bcast(theirs, 64 * TEAM_LONG, MPI_BYTE, ME, MPI_COMM_WORLD);
	CHECK(went - all >= 5 && went - all <= 7);
}

int main(void)
{
	test_observe();
	test_patience();
	test_receive();
	test_long_receive();
	test_many();
	test_send();
	test_exchange();
	test_site();
	test_seldom();
	if (!wrong)
		puts("OK");
	return wrong != 0;
}
