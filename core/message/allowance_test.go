package message

import (
	"testing"
	"unsafe"

	"github.com/openimpi/impi/core/wire"
	"github.com/openimpi/impi/plugins/sdk/link"
)

// limited is a job of two procs that keep limit bytes each.
func limited(tb testing.TB, limit int64) *pair {
	return newPair(tb, Config{
		MaxData: 256 << 10, AckMark: 32, HiWater: 128,
		Unexpected: limit, UnexpectedOf: func(Peer) int64 { return limit },
	})
}

// flood sends messages to a proc that waits for another tag, then the one with that tag, and
// tells the most bytes that were kept.
func flood(t *testing.T, p *pair, messages, size int) (most int64) {
	t.Helper()
	wanted := p.e[1].Recv(Envelope{Rank: 0, Tag: 9}, 0, nil)
	data, buf := alphabet(size), make([]byte, size)
	var sends []*Request
	for range messages {
		sends = append(sends, p.send(0, Standard, data))
		p.settle()
		most = max(most, p.e[1].Kept())
	}
	p.e[0].Send(1, Envelope{Rank: 0, Tag: 9}, Standard, nil, 0, 0)
	p.settle()
	if !wanted.Done() {
		t.Fatal("the message that is asked for does not pass the others")
	}
	for i := range sends {
		r := p.recv(1, buf)
		p.settle()
		if !r.Done() || r.Err() != nil || string(buf) != string(data) {
			t.Fatalf("message %d is not received", i)
		}
		clear(buf)
	}
	for i, s := range sends {
		if !s.Done() {
			t.Fatalf("send %d is not done", i)
		}
	}
	if n := p.e[1].Kept(); n != 0 {
		t.Errorf("%d bytes are counted where no message is", n)
	}
	return most
}

// The memory for unexpected messages is at most the limit, and an envelope for each send
// that its sender has not finished, whatever their size.
func TestUnexpectedMessagesAreBounded(t *testing.T) {
	const limit = 4 << 20
	for _, size := range []int{0, 8, 3000, 200 << 10, 256 << 10, 300 << 10} {
		messages := 4000
		if size < 1000 {
			messages = 40000
		}
		most := flood(t, limited(t, limit), messages, size)
		if bound := int64(limit + messages*(envelopeCost+headData)); most > bound {
			t.Errorf("%d messages of %d bytes: %d bytes are kept, at most %d are right", messages, size, most, bound)
		}
		if size > 1000 && most < limit/4 {
			t.Errorf("%d messages of %d bytes: only %d of %d bytes are ever used", messages, size, most, limit)
		}
	}
}

// The same if the limits of others are not known: each proc has little to begin with, and
// the rest of the limit goes to procs that use it.
func TestUnexpectedMessagesOfUnknownLimits(t *testing.T) {
	const limit, messages, size = 4 << 20, 4000, 200 << 10
	p := newPair(t, Config{
		MaxData: 256 << 10, AckMark: 32, HiWater: 128,
		Unexpected: limit, UnexpectedOf: func(Peer) int64 { return LeastAllowance },
	})
	most := flood(t, p, messages, size)
	if bound := int64(limit + messages*(envelopeCost+headData)); most > bound || most < leastAllowance {
		t.Errorf("%d bytes are kept, at least %d and at most %d are right", most, leastAllowance, bound)
	}
}

// The same, by fast-box messages.
func TestUnexpectedFastBoxesAreBounded(t *testing.T) {
	const limit = 1 << 20
	p := newBoxed(t, Config{MaxData: 1 << 16, AckMark: 32, HiWater: 128, Unexpected: limit, UnexpectedOf: func(Peer) int64 { return limit }})
	done := 0
	var sends []*Request
	for range 100000 {
		s := p.send(0, Standard, []byte("abc"))
		p.carry(0)
		p.carry(1)
		if !s.Done() {
			sends = append(sends, s)
			continue
		}
		done++
		p.e[0].Release(s)
	}
	if most := int64(limit / link.FastBoxCost(3)); int64(done) > most {
		t.Errorf("%d sends are done that nobody has received, %d have room", done, most)
	}
	for range done + len(sends) {
		r := p.recv(1, make([]byte, 3))
		p.carry(0)
		p.carry(1)
		p.carry(0)
		if !r.Done() {
			t.Fatal("a message is missing")
		}
		p.e[1].Release(r)
	}
	for _, s := range sends {
		if !s.Done() {
			t.Fatal("a send is not done")
		}
	}
	if p.e[1].Kept() != 0 {
		t.Error("something is counted that is not there")
	}
	if s := p.send(0, Standard, []byte("abc")); !s.Done() {
		t.Error("there is no allowance although all was received")
	}
}

// Messages that are received as they come are never held back, however many.
func TestReceivedMessagesNeedNoAllowance(t *testing.T) {
	for _, size := range []int{0, 8, 90, 3000} {
		for _, withBoxes := range []bool{false, true} {
			var p interface{ carryAll() }
			cfg := Config{MaxData: 1 << 16, AckMark: 32, HiWater: 128, Unexpected: leastAllowance, UnexpectedOf: func(Peer) int64 { return leastAllowance }}
			n := newBoxed(t, cfg)
			if !withBoxes {
				n = &boxed{pair: newPair(t, cfg)}
				p = plainly{n.pair}
			} else {
				p = n
			}
			data, buf := alphabet(size), make([]byte, size)
			for i := range 5000 {
				s := n.send(0, Standard, data)
				if n.e[0].NeedsAllowance(0) {
					t.Fatalf("message %d of %d bytes is held back, fast-box messages %v", i, size, withBoxes)
				}
				p.carryAll()
				r := n.recv(1, buf)
				p.carryAll()
				if !s.Done() || !r.Done() {
					t.Fatalf("message %d of %d bytes is not through", i, size)
				}
				n.e[0].Release(s)
				n.e[1].Release(r)
			}
		}
	}
}

type plainly struct{ *pair }

func (p plainly) carryAll() { p.settle() }

func (p *boxed) carryAll() {
	for range 3 {
		p.carry(0)
		p.carry(1)
	}
}

// One sender gets much of the pool, several share it, and never more than there is.
func TestPoolIsShared(t *testing.T) {
	const procs, limit = 9, 16 << 20
	ids := make([]wire.Proc, procs)
	for i := range ids {
		ids[i].PID = int64(i)
	}
	e, err := New(Config{
		Directory: directoryOf(t, ids...), MaxData: 1 << 18, AckMark: 1, HiWater: 2,
		Unexpected: limit, UnexpectedOf: func(Peer) int64 { return limit },
	})
	if err != nil {
		t.Fatal(err)
	}
	sum := int64(0)
	for i := 1; i < procs; i++ {
		got := int64(e.grant(e.peer(Peer(i))))
		if i == 1 && got < limit/4 {
			t.Errorf("the first sender may have %d of %d bytes", got, limit)
		}
		if got < limit/2/(procs-1) {
			t.Errorf("sender %d may have only %d of %d bytes", i, got, limit)
		}
		sum += got
	}
	if sum > limit {
		t.Errorf("all may have %d bytes, of %d", sum, limit)
	}
}

// An allowance that is lower than before, or impossibly large, changes nothing.
func TestDirectLinksHaveRoom(t *testing.T) {
	const many = 1000
	for limit, want := range map[int64]int{0: 4, 64 << 20: many} {
		p := newPair(t, Config{MaxData: 100, AckMark: 2, HiWater: 4, Unexpected: limit, UnexpectedOf: func(Peer) int64 { return limit }})
		sent := 0
		for sent < many {
			if _, ok := p.e[0].SendEager(1, Envelope{Context: 2, Tag: 1}, []byte("far"), 3, 1); !ok {
				break
			}
			p.wireBytes(0)
			sent++
		}
		if sent != want {
			t.Errorf("with an allowance of %d bytes %d messages leave without a PROTOACK, not %d", limit, sent, want)
		}
	}
}

func TestOddAllowances(t *testing.T) {
	p := limited(t, 1<<20).e[0].peer(1)
	for _, v := range []uint64{0, 1, 1 << 63, 1<<64 - 1} {
		if p.allowed(v); p.limit != 1<<19 {
			t.Errorf("an allowance of %d makes %d of %d", v, p.limit, 1<<19)
		}
	}
}

// A proc that does not know of allowances gets the same packets as ever, and what it writes
// into the fields of allowances is ignored.
func TestPeersWithoutAllowances(t *testing.T) {
	for _, theirs := range []int64{0, LeastAllowance - 1} {
		p := newPair(t, Config{MaxData: 100, AckMark: 4, HiWater: 1 << 20, Unexpected: 1 << 16, UnexpectedOf: func(Peer) int64 { return theirs }})
		for i := range 10000 {
			if s := p.send(0, Standard, alphabet(100)); !p.move(0) || !s.Done() {
				t.Fatalf("send %d waits", i)
			}
		}
	}
}

// Both sides count the same memory for messages, which is what they take.
func TestCosts(t *testing.T) {
	const index = 64 // of an entry among those that are looked up
	if n := unsafe.Sizeof(Message{}) + index; n > envelopeCost {
		t.Errorf("an envelope takes %d bytes and counts %d", n, envelopeCost)
	}
	for n, want := range map[int64]int64{0: 0, 1: 64, 64: 64, 65: 128, 4096: 4096, 4097: 8192, 200 << 10: 256 << 10, 256 << 10: 256 << 10, 1 << 30: 1 << 30, 1<<30 + 1: 1 << 31} {
		if got := cost(n) - envelopeCost; got != want {
			t.Errorf("%d bytes of data count %d, not %d", n, got, want)
		}
		if n > 0 && n < 1<<20 {
			var b buffers
			if c := int64(cap(b.get(int(n)))); c != want {
				t.Errorf("%d bytes of data take %d and count %d", n, c, want)
			}
		}
	}
}
