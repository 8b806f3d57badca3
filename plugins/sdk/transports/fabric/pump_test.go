package fabric_test

import (
	"bytes"
	"errors"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/openimpi/impi/plugins/sdk/link"
	"github.com/openimpi/impi/plugins/sdk/support/rdma"
	"github.com/openimpi/impi/plugins/sdk/transports/conn"
	"github.com/openimpi/impi/plugins/sdk/transports/fabric"
	"github.com/openimpi/impi/plugins/sdk/transports/fabric/fabrictest"
)

// side is a proc, and its plugin.
type side struct {
	*rdma.Link
	regions rdma.Regions
	domain  *fabrictest.Domain
	cache   *fabric.Cache
	conn    *fabrictest.Conn
	pump    *conn.Pump
	ended   chan error
}

// faulty is a connection with a fault of its vendor's.
type faulty struct {
	fabric.Conn
	read      func(r *fabric.Request)
	completed func(c *fabric.Completion)
	twice     bool
	message   func(b [][]byte, n int) int
	most      int // bytes of a message; 0: as many as there can be
}

func (f *faulty) Limits() fabric.Limits {
	l := f.Conn.Limits()
	if f.most > 0 {
		l.Message = f.most
	}
	return l
}

func (f *faulty) Read(r fabric.Request) (bool, error) {
	if f.read != nil {
		f.read(&r)
	}
	return f.Conn.Read(r)
}

func (f *faulty) Completed(done []fabric.Completion) int {
	n := f.Conn.Completed(done[:1])
	if n == 1 && f.completed != nil {
		f.completed(&done[0])
	}
	if n == 1 && f.twice {
		done[1] = done[0]
		n = 2
	}
	return n
}

func (f *faulty) Recv(b [][]byte) (int, error) {
	n, err := f.Conn.Recv(b)
	if n > 0 && f.message != nil {
		n = f.message(b, n)
	}
	return n, err
}

// pair makes two procs whose plugins are connected. wrap may change the second one's connection.
func pair(t *testing.T, rails int, budget int64, wrap func(fabric.Conn) fabric.Conn) (a, b *side) {
	t.Helper()
	socks, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
	if err != nil {
		t.Fatal(err)
	}
	var both [2]*side
	for i := range both {
		s := &side{ended: make(chan error, 1)}
		if s.domain, err = fabrictest.NewDomain(); err != nil {
			t.Fatal(err)
		}
		s.cache = fabric.NewCache(s.domain, budget)
		s.conn = fabrictest.NewConn(s.domain, socks[i], rails)
		var c fabric.Conn = s.conn
		if i == 1 && wrap != nil {
			c = wrap(c)
		}
		var fds [3]int
		if s.pump, fds, err = fabric.NewPump(c, s.cache); err != nil {
			t.Fatal(err)
		}
		if s.Link, err = rdma.New(fds[0], fds[1], fds[2], &s.regions); err != nil {
			t.Fatal(err)
		}
		go func() { s.ended <- s.pump.Run() }()
		t.Cleanup(func() { s.pump.Close(); s.Link.Close() })
		both[i] = s
	}
	return both[0], both[1]
}

func (s *side) allocate(t *testing.T, n int, seed byte) []byte {
	t.Helper()
	b, err := s.regions.AllocateApart(n)
	if err != nil {
		t.Fatal(err)
	}
	fill(b, seed)
	return b
}

func fill(b []byte, seed byte) {
	for i := range b {
		b[i] = byte(i>>8) ^ byte(i) + seed
	}
}

func closeAll(fds [3]int) {
	for _, fd := range fds {
		_ = unix.Close(fd)
	}
}

const patience = 20 * time.Second

// send lends b, until it is the sender's again.
func send(l link.Lender, b []byte) error { return sendAll(l, [][]byte{b}) }

func sendAll(l link.Lender, batch [][]byte) error {
	for end := time.Now().Add(patience); len(batch) > 0; {
		n, err := l.Lend(batch)
		if err != nil {
			return err
		}
		if batch = link.Advance(batch, n); n == 0 && !l.Arm(link.Writable) {
			wait(l, unix.POLLOUT)
		}
		if time.Now().After(end) {
			return errors.New("nothing is sent any more")
		}
	}
	return nil
}

func receive(l link.Link, b []byte) error {
	for end := time.Now().Add(patience); len(b) > 0; {
		n, err := l.Recv([][]byte{b})
		if err != nil {
			return err
		}
		if b = b[n:]; n == 0 && !l.Arm(link.Readable) {
			wait(l, unix.POLLIN)
		}
		if time.Now().After(end) {
			return errors.New("nothing comes any more")
		}
	}
	return nil
}

func wait(l link.Link, events int16) {
	_, _ = unix.Poll([]unix.PollFd{{Fd: int32(l.Handle()), Events: events}}, 100)
}

// exchange sends b from one side to memory of the other.
func exchange(t *testing.T, from, to *side, b, into []byte) error {
	t.Helper()
	sent := make(chan error, 1)
	go func() { sent <- send(from, b) }()
	err := receive(to, into)
	if err != nil {
		from.pump.Close() // which ends send
		<-sent
		return err
	}
	return errors.Join(err, <-sent)
}

func TestIntoTheReceiversMemory(t *testing.T) {
	var wrong atomic.Int32
	var want atomic.Pointer[byte]
	a, b := pair(t, 1, 0, func(c fabric.Conn) fabric.Conn {
		return &faulty{Conn: c, read: func(r *fabric.Request) {
			// The same memory at another address: what is written there is seen here.
			if r.Into[0] = 0x5a; *want.Load() != 0x5a {
				wrong.Add(1)
			}
		}}
	})
	const n = 3 << 20
	from, to := a.allocate(t, n, 1), b.allocate(t, n, 2)
	want.Store(&to[4096])
	if err := exchange(t, a, b, from[4096:], to[4096:]); err != nil {
		t.Fatal(err)
	}
	if wrong.Load() > 0 || !bytes.Equal(from[4096:], to[4096:]) {
		t.Fatal("the bytes are not those that were sent, or went another way")
	}
	if c := b.cache.Counts(); c.Misses != 1 {
		t.Fatalf("the receiver has registered %+v", c)
	}
}

// All four combinations of memory that is lent and other memory.
func TestMemoryOfAllKinds(t *testing.T) {
	for _, rails := range []int{1, 3} {
		a, b := pair(t, rails, 0, nil)
		for _, n := range []int{1, 4095, 64 << 10, 1<<20 + 17} {
			lentFrom, lentTo := a.allocate(t, n, 1), b.allocate(t, n, 2)
			heapFrom, heapTo := slices.Clone(lentFrom), make([]byte, n)
			for i, x := range [][2][]byte{{lentFrom, lentTo}, {lentFrom, heapTo}, {heapFrom, lentTo}, {heapFrom, heapTo}} {
				clear(x[1])
				if err := exchange(t, a, b, x[0], x[1]); err != nil || !bytes.Equal(x[0], x[1]) {
					t.Fatalf("%d bytes by %d rails, case %d: %v, equal %v", n, rails, i, err, bytes.Equal(x[0], x[1]))
				}
			}
			for s, mem := range map[*side][]byte{a: lentFrom, b: lentTo} {
				if err := s.regions.Free(uintptr(unsafe.Pointer(&mem[0]))); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
}

// Where memory cannot be registered its bytes are copied: of the sender, the receiver, and both.
func TestNothingCanBeRegistered(t *testing.T) {
	for name, refuses := range map[string][2]bool{"sender": {true, false}, "receiver": {false, true}, "both": {true, true}} {
		for _, most := range []int{0, 4096} { // the second one has shorter slots
			a, b := pair(t, 2, 0, func(c fabric.Conn) fabric.Conn { return &faulty{Conn: c, most: most} })
			for i, s := range []*side{a, b} {
				if refuses[i] {
					s.domain.Limit = 1
				}
			}
			const n = 400_000
			heap := make([]byte, n)
			for i := range 6 {
				from, to := a.allocate(t, n, byte(i)), b.allocate(t, n, 99)
				for _, into := range [][]byte{to, heap} {
					if err := exchange(t, a, b, from, into); err != nil || !bytes.Equal(from, into) {
						t.Fatalf("%s, round %d: %v", name, i, err)
					}
				}
			}
			for i, s := range []*side{a, b} {
				tried := refuses[i] && (i == 0 || !refuses[0]) // what the sender copies nobody reads
				if c := s.cache.Counts(); (c.Refused > 0) != tried || tried && c.Misses > 0 {
					t.Errorf("%s: side %d has %+v", name, i, c)
				}
			}
		}
	}
}

// Loans that are copied, loans that are read remotely or fetched, and messages in slots come in order.
func TestSomeCanBeRegistered(t *testing.T) {
	const n = 64 << 10
	for name, limits := range map[string][2]int64{"sender": {n, 0}, "receiver": {0, 1}} {
		a, b := pair(t, 1, 0, nil)
		a.domain.Limit, b.domain.Limit = limits[0], limits[1]
		var batch [][]byte
		var want []byte
		for i := range byte(5) {
			short := make([]byte, 3000)
			fill(short, 50+i)
			batch = append(batch, a.allocate(t, n, i), short)
			want = append(append(want, batch[2*i]...), short...)
		}
		sent := make(chan error, 1)
		go func() { sent <- sendAll(a, batch) }()
		got := make([]byte, len(want))
		if err := receive(b, got); err != nil || !bytes.Equal(got, want) {
			t.Fatalf("%s: %v", name, err)
		}
		if err := <-sent; err != nil {
			t.Fatal(err)
		}
		if x, y := a.cache.Counts(), b.cache.Counts(); x.Refused+y.Refused == 0 || x.Misses == 0 {
			t.Errorf("%s: %+v, %+v", name, x, y)
		}
	}
}

// Sides whose slots have different lengths understand each other.
func TestSlotsOfTwoLengths(t *testing.T) {
	a, b := pair(t, 1, 0, func(c fabric.Conn) fabric.Conn { return &faulty{Conn: c, most: 2048} })
	from, to := make([]byte, 300_000), make([]byte, 300_000)
	fill(from, 3)
	for _, x := range [][2]*side{{a, b}, {b, a}} {
		clear(to)
		if err := exchange(t, x[0], x[1], from, to); err != nil || !bytes.Equal(from, to) {
			t.Fatal(err)
		}
	}
}

func TestRegistrationsAreCachedAndEvicted(t *testing.T) {
	const n = 128 << 10
	a, b := pair(t, 1, 3*n, nil)
	var from [][]byte
	for i := range 5 {
		from = append(from, a.allocate(t, n, byte(i)))
	}
	to := b.allocate(t, n, 9)
	pass := func(i int) {
		t.Helper()
		if err := exchange(t, a, b, from[i], to); err != nil || !bytes.Equal(from[i], to) {
			t.Fatal(err)
		}
	}
	for range 10 {
		pass(0)
	}
	if c := a.cache.Counts(); c.Misses != 1 || c.Hits != 9 {
		t.Fatalf("ten messages from one region: %+v", c)
	}
	for range 2 {
		for i := range from {
			pass(i)
		}
	}
	if c := a.cache.Counts(); c.Evictions == 0 || c.Registered > 3*n || c.Misses < 8 {
		t.Fatalf("five regions in turn, three fit: %+v", c)
	}
	if c := b.cache.Counts(); c.Misses != 1 {
		t.Fatalf("the receiver has one region: %+v", c)
	}
}

func TestRailsThatFail(t *testing.T) {
	a, b := pair(t, 3, 0, nil)
	from, to := a.allocate(t, 1<<20, 1), b.allocate(t, 1<<20, 2)
	b.conn.FailRail(1)
	if err := exchange(t, a, b, from, to); err != nil || !bytes.Equal(from, to) {
		t.Fatalf("one of three rails fails: %v", err)
	}
	b.conn.FailRail(0)
	b.conn.FailRail(2)
	const short = 100_000 // goes by one rail
	err := exchange(t, a, b, from[:short], to[:short])
	if why := <-b.ended; !errors.Is(err, link.ErrBroken) || why == nil || !strings.Contains(why.Error(), "no rail is left") {
		t.Fatalf("all rails fail: the link: %v, the plugin: %v", err, why)
	}
	if c := b.cache.Counts(); c.Registered != 0 {
		t.Fatalf("%+v when the link has ended", c)
	}
}

// Faults of a vendor's connection, and what the plugin says of them.
func TestFaults(t *testing.T) {
	for name, c := range map[string]struct {
		fault faulty
		want  string
	}{
		"completed twice":           {faulty{twice: true}, "completes read 1, which is not under way"},
		"another read completed":    {faulty{completed: func(c *fabric.Completion) { c.Op = 77 }}, "completes read 77"},
		"a key that has ended":      {faulty{read: func(r *fabric.Request) { r.Key = append(slices.Clone(r.Key[:11]), 99) }}, "the key is of no registration"},
		"outside of the memory":     {faulty{read: func(r *fabric.Request) { r.From = 1 << 62 }}, "bytes at 4611686018427387904"},
		"a message cut":             {faulty{message: func(_ [][]byte, n int) int { return n - 1 }}, "a message of 31 bytes"},
		"two messages run into one": {faulty{message: func(_ [][]byte, n int) int { return n + 32 }}, "bytes behind its header"},
		"a message changed":         {faulty{message: func(b [][]byte, n int) int { b[0][1] = 9; return n }}, "speaks version 9"},
		"a message again":           {faulty{message: func(b [][]byte, n int) int { b[0][0] = 1; clear(b[0][2:4]); return 32 }}, "hello comes first and once"},
	} {
		t.Run(name, func(t *testing.T) {
			a, b := pair(t, 1, 0, func(x fabric.Conn) fabric.Conn {
				f := c.fault
				f.Conn = x
				return &f
			})
			from, to := a.allocate(t, 1<<20, 1), b.allocate(t, 1<<20, 2)
			err := exchange(t, a, b, from, to)
			if err == nil { // a completion too many may come when the bytes are there
				err = receive(b, to)
			}
			why := <-b.ended
			if !errors.Is(err, link.ErrBroken) || why == nil || !strings.Contains(why.Error(), c.want) {
				t.Fatalf("the link: %v, the plugin: %v", err, why)
			}
		})
	}
}

// A proc that is gone has nothing written to its memory any more, and a sender whose memory
// nobody has read yet learns that the link is broken.
func TestGoneWithLoans(t *testing.T) {
	a, b := pair(t, 1, 0, nil)
	from := a.allocate(t, 1<<20, 1)
	if n, err := a.Lend([][]byte{from}); n != 0 || err != nil {
		t.Fatal(n, err)
	}
	if err := b.Close(); err != nil {
		t.Fatal(err)
	}
	if err := send(a, from); !errors.Is(err, link.ErrBroken) {
		t.Fatal(err)
	}
	<-a.ended
	if c := a.cache.Counts(); c.Registered != 0 {
		t.Fatalf("%+v when the link has ended", c)
	}
}
