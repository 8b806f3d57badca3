package startup

import (
	"errors"
	"math"
	"net/netip"
	"slices"
	"testing"
	"time"

	"github.com/openimpi/impi/core/wire"
	"github.com/openimpi/impi/internal/allocs"
	"github.com/openimpi/impi/internal/watchdog"
	"github.com/openimpi/impi/plugins/sdk/support/unproved"
)

// program is a fuzzer's input, read as operations.
type program []byte

func (p *program) byte() byte {
	if len(*p) == 0 {
		return 0
	}
	b := (*p)[0]
	*p = (*p)[1:]
	return b
}

// bytes returns as many bytes as the next one says.
func (p *program) bytes() []byte {
	n := min(int(p.byte()), len(*p))
	b := (*p)[:n]
	*p = (*p)[n:]
	return b
}

// The operations of a conversation. The upper bits choose a connection.
const (
	opSay = iota // and as many bytes as the next one says
	opAccept
	opClose
	opTick // the next byte is in seconds
	opAbort
	opQuiet // the peer's connection ends with an error
	ops
)

const fuzzConns = 20

func op(kind, conn int) byte { return byte(kind + ops*conn) }

// say appends b to a program, in pieces of at most n.
func say(p []byte, conn int, b []byte, n int) []byte {
	for piece := range slices.Chunk(b, n) {
		p = append(p, op(opSay, conn), byte(len(piece)))
		p = append(p, piece...)
	}
	return p
}

// manyConns is a server, and what its owner knows of the connections.
type manyConns struct {
	*Server
	t      *testing.T
	now    time.Time
	fed    int
	closed map[ConnID]bool // by either side, as far as the owner knows
	met    map[ConnID]bool
}

// FuzzServerConns lets twenty connections say anything in any pieces, in any
// order, while they come and go and time passes. Whatever happens, the owner is
// asked only for what it can do, memory is within the bounds of limits.go, and
// once the time is over and everybody is gone the job has ended.
func FuzzServerConns(f *testing.F) {
	for _, auth := range []Auth{{None: true}, {HasKey: true, Key: 5678}} {
		up, _ := recording(f, auth)
		for _, piece := range []int{3, 7, 250} {
			p := []byte{op(opAccept, 0), op(opAccept, 1), op(opAccept, 2)}
			p = say(p, 2, up[0][:min(len(up[0]), 4)], piece)
			p = say(p, 1, up[1], piece)
			p = say(p, 0, up[0], piece)
			f.Add(append(p, op(opTick, 0), 11), auth.HasKey, uint8(1))
			f.Add(append(p[:len(p)*2/3:len(p)*2/3], op(opClose, 1), op(opAbort, 0)), auth.HasKey, uint8(1))
		}
	}
	f.Add(slices.Repeat([]byte{op(opAccept, 5), op(opSay, 5), 16, 'A', 'U', 'T', 'H', 0, 0, 0, 4, 0, 0, 0, 2, 0, 0, 0, 0, op(opQuiet, 5)}, 3), true, uint8(1))
	f.Fuzz(func(t *testing.T, b []byte, key bool, clients uint8) {
		defer watchdog.Start()()
		auth := Auth{None: true, HasKey: key, Key: 5678}
		s, err := NewServer(ServerConfig{Clients: 1 + int(clients)%wire.MaxClients, Auth: auth, Waiting: 6, WaitingThere: 4}, scriptStart)
		if err != nil {
			t.Fatal(err)
		}
		c := &manyConns{Server: s, t: t, now: scriptStart, closed: map[ConnID]bool{}, met: map[ConnID]bool{}}
		steps := 0
		cost := allocs.Bytes(func() { steps = c.run(b) })
		if most := uint64(allocs.MaxError + 64*c.fed + 8<<10*steps); cost > most {
			t.Fatalf("%d bytes in %d steps took %d bytes of memory, at most %d should be", c.fed, steps, cost, most)
		}
		c.finish()
	})
}

func (c *manyConns) run(b program) (steps int) {
	for ; len(b) > 0; steps++ {
		x := int(b.byte())
		id := ConnID(x / ops % fuzzConns)
		switch x % ops {
		case opSay:
			said := b.bytes()
			c.fed += len(said)
			c.Receive(id, said, c.now)
		case opAccept:
			if c.met[id] {
				continue // numbers are not used again
			}
			c.met[id] = true
			c.Accept(id, "somebody", unproved.From(netip.AddrFrom4([4]byte{10, 0, 0, byte(id % 3)})), c.now)
		case opClose, opQuiet:
			var cause error
			if x%ops == opQuiet {
				cause = errors.New("reset")
			}
			if c.Closed(id, cause); c.met[id] {
				c.closed[id] = true
			}
		case opTick:
			c.now = c.now.Add(time.Duration(b.byte()) * time.Second)
			c.Tick(c.now)
		case opAbort:
			c.Abort(errors.New("operator"))
		}
		c.act()
		c.bounded()
	}
	return steps
}

// act looks at what the owner is to do.
func (c *manyConns) act() {
	for a, ok := c.Next(); ok; a, ok = c.Next() {
		switch a.Kind {
		case ActEvent:
			_ = a.Event.String()
			continue
		case ActSend:
			if len(a.Bytes) == 0 {
				c.t.Fatal("nothing is to be sent")
			}
		case ActClose:
			if !c.closed[a.Conn] && c.conn(a.Conn) != nil {
				c.t.Fatalf("conn %d is closed and still known", a.Conn)
			}
		}
		if !c.met[a.Conn] || c.closed[a.Conn] {
			c.t.Fatalf("conn %d is not there: %+v", a.Conn, a)
		}
		c.closed[a.Conn] = a.Kind == ActClose
	}
}

// bounded compares the server's own counts with limits.go.
func (c *manyConns) bounded() {
	waiting := 0
	for _, o := range c.conns {
		limit := MaxSubmission
		if o.state < connColl {
			waiting++
			limit = maxUnknown
		}
		if have := len(o.in.buf) - o.in.off; have > wire.CommandSize+limit+math.MaxUint8 || o.in.skip > limit {
			c.t.Fatalf("conn %d holds %d bytes and skips %d", o.id, have, o.in.skip)
		}
	}
	if waiting > c.cfg.Waiting || waiting != c.unknown.Len() {
		c.t.Fatalf("%d connections wait", waiting)
	}
	sum, held := 0, 0
	for i := range c.coll.clients {
		k := &c.coll.clients[i]
		if k.bytes < 0 || k.bytes > MaxPending || k.count > MaxLabels {
			c.t.Fatalf("client %d: %d bytes of %d labels", i, k.bytes, k.count)
		}
		sum += k.bytes
	}
	for _, p := range c.coll.pending {
		held += p.total
	}
	if sum != held {
		c.t.Fatalf("%d bytes are held, the clients have %d", held, sum)
	}
}

// finish lets time pass and closes all connections.
func (c *manyConns) finish() {
	for range 2 {
		c.now = c.now.Add(time.Hour)
		c.Tick(c.now)
		c.act()
	}
	for id := range c.met {
		if !c.closed[id] {
			c.Closed(id, nil)
			c.closed[id] = true
			c.act()
		}
	}
	ended, err := c.Ended()
	if !ended {
		c.t.Fatal("the job goes on without anybody")
	}
	if _, ok := c.Deadline(); ok || len(c.conns) > 0 {
		c.t.Fatalf("%d connections are left, or a deadline, after %v", len(c.conns), err)
	}
}

// The operations of a client's owner.
const (
	clSay = iota
	clTick
	clFinish
	clFail
	clClosed
	clOps
)

// FuzzClientOwner feeds a client anything, in any pieces, between its owner's
// calls. The first error is final, what the client says is always commands, and
// lengths that the server only announces cost nothing.
func FuzzClientOwner(f *testing.F) {
	for dialect, auth := range []Auth{{None: true}, {HasKey: true, Key: 5678}} {
		_, down := recording(f, auth)
		for _, n := range []int{5, 200} {
			var p []byte
			for piece := range slices.Chunk(down[0], n) {
				p = append(append(p, clSay, byte(len(piece))), piece...)
			}
			f.Add(append(p, clFinish, clClosed), dialect == 1, auth.HasKey)
			f.Add(append(p[:len(p)/2:len(p)/2], clTick, 255, clFail), dialect == 1, auth.HasKey)
		}
	}
	f.Fuzz(func(t *testing.T, b []byte, draft, key bool) {
		defer watchdog.Start()()
		cfg := testClient(0, 2)
		cfg.Auth = Auth{None: !key, HasKey: key, Key: 5678}
		if draft {
			cfg.Dialect = wire.Draft
		}
		c, err := NewClient(cfg)
		if err != nil {
			t.Fatal(err)
		}
		fed, steps := 0, 0
		cost := allocs.Bytes(func() { fed, steps = operate(t, c, b, key) })
		if most := uint64(allocs.MaxError + 128*fed + 4<<10*steps); cost > most {
			t.Fatalf("%d bytes in %d steps took %d bytes of memory, at most %d should be", fed, steps, cost, most)
		}
		if j, ok := c.Job(); ok {
			checkBounds(t, j)
		}
		if c.Tick(scriptStart.Add(24*time.Hour)) == nil && c.Closed(nil) == nil && c.state != clientFinished {
			t.Fatal("no end")
		}
	})
}

func operate(t *testing.T, c *Client, b program, key bool) (fed, steps int) {
	now := scriptStart
	c.Start(now)
	var first error
	var out []byte
	for ; len(b) > 0; steps++ {
		switch b.byte() % clOps {
		case clSay:
			said := b.bytes()
			fed += len(said)
			c.Receive(said, now)
		case clTick:
			now = now.Add(time.Duration(b.byte()) * time.Second)
			c.Tick(now)
		case clFinish:
			c.Finish()
		case clFail:
			c.Fail(errors.New("a proc died"))
		case clClosed:
			c.Closed(nil)
		}
		out = append(out, c.Output()...)
		switch err := c.Err(); {
		case first == nil:
			first = err
		case err != first:
			t.Fatalf("%v became %v", first, err)
		}
		if len(c.in.buf)-c.in.off > wire.CommandSize+MaxAnswer || c.in.skip > MaxAnswer {
			t.Fatalf("%d bytes are held, %d skipped", len(c.in.buf)-c.in.off, c.in.skip)
		}
	}
	checkOutput(t, out, key)
	return fed, steps
}

// checkOutput cuts what a client said into commands; after AUTH the key may come.
func checkOutput(t *testing.T, out []byte, key bool) {
	r := reader{buf: out}
	for n := 0; r.off < len(r.buf); n++ {
		if h, ok := r.peek(wire.KeySize); ok && n == 1 && key {
			if c, _ := wire.ParseCommand(h); c != wire.CmdFail {
				r.raw(wire.KeySize)
			}
		}
		if r.off == len(r.buf) {
			return
		}
		if _, ok, err := r.next(MaxSubmission, knownToServer); !ok || err != nil || r.skip > 0 {
			t.Fatalf("command %d of %x: %v", n, out, err)
		}
	}
}

// TestLyingLengths: what is announced and does not come costs nothing, wherever
// the protocol has a length or a count.
func TestLyingLengths(t *testing.T) {
	_, down := recording(t, Auth{None: true})
	const most = 64 << 10
	for i := 0; i+4 <= len(down[0]); i += 4 {
		for _, lie := range []uint32{MaxProcs, MaxAnswer, math.MaxInt32, math.MaxUint32} {
			stream := slices.Clone(down[0])
			copy(stream[i:], []byte{byte(lie >> 24), byte(lie >> 16), byte(lie >> 8), byte(lie)})
			c, _ := NewClient(testClient(0, 2))
			c.Start(scriptStart)
			if cost := allocs.BytesExact(func() { c.Receive(stream, scriptStart) }); cost > most {
				t.Errorf("client: %#x at %d costs %d bytes", lie, i, cost)
			}
		}
	}
	up, _ := recording(t, Auth{None: true})
	for i := 0; i+4 <= len(up[0]); i += 4 {
		for _, lie := range []uint32{MaxSubmission, MaxAnswer, math.MaxInt32, math.MaxUint32} {
			stream := slices.Clone(up[0])
			copy(stream[i:], []byte{byte(lie >> 24), byte(lie >> 16), byte(lie >> 8), byte(lie)})
			s, _ := NewServer(ServerConfig{Clients: 2, Auth: Auth{None: true}}, scriptStart)
			if cost := allocs.BytesExact(func() {
				s.Accept(0, "liar", unproved.Source{}, scriptStart)
				s.Receive(0, stream, scriptStart)
			}); cost > most {
				t.Errorf("server: %#x at %d costs %d bytes", lie, i, cost)
			}
		}
	}
}
