package mpi

import (
	"encoding/binary"
	"errors"
	"fmt"
	"sync"
	"testing"
	"unsafe"

	"github.com/openimpi/impi/core/datatype"
	"github.com/openimpi/impi/core/message"
	"github.com/openimpi/impi/internal/engine/proc"
	"github.com/openimpi/impi/internal/fastpath"
)

const worldHandle = 0x101

// onFastPath runs body in two procs that share memory with C, and whose link has taken fast-box
// messages.
func onFastPath(t *testing.T, body func(c *Comm, m *fastpath.Memory) error) {
	t.Helper()
	withFastPath(t, func(unsafe.Pointer, int64) {}, body)
}

func withFastPath(t *testing.T, received func(buf unsafe.Pointer, n int64), body func(c *Comm, m *fastpath.Memory) error) {
	t.Helper()
	layout{procs: 2, link: rings(64 << 10), spin: "auto"}.run(t, func(_ *testing.T, c *Comm) error {
		m := new(fastpath.Memory)
		c.in().Process().UseFastPath(m, received)
		var word [1]int32
		for range 2 { // a route, then fast-box messages both ways
			if err := swapWords(c, &word); err != nil {
				return err
			}
		}
		c.in().FastPath(worldHandle)
		return body(c, m)
	})
}

// swapWords waits for the other proc.
func swapWords(c *Comm, word *[1]int32) error {
	q, err := Isend(c, []int32{int32(c.Rank())}, 1-c.Rank(), 99)
	if err != nil {
		return err
	}
	_, err = Recv(c, word[:], 1-c.Rank(), 99)
	return first(err, complete(&q))
}

// asC posts a receive as C does, from the other proc of World.
func asC(m *fastpath.Memory, buf []byte, tag int) (i int, gen uint32, err error) {
	if !m.Gate.CompareAndSwap(fastpath.Open, fastpath.Inside) {
		return 0, 0, fmt.Errorf("the gate is %d", m.Gate.Load())
	}
	defer m.Gate.Store(fastpath.Open)
	c := m.CommOf(worldHandle)
	peer := c.Peer[1-c.Rank]
	if peer == fastpath.None || m.Peers[peer].Takes == 0 {
		return 0, 0, fmt.Errorf("no fast-box messages by peer %d", peer)
	}
	at := m.Spare
	r := &m.Table[at]
	m.Spare = r.Next
	*r = fastpath.Request{
		Gen: r.Gen + 1, State: fastpath.Posted, Comm: worldHandle, Context: c.Context, Buf: unsafe.Pointer(&buf[0]), Room: uint64(len(buf)),
		Rank: 1 - c.Rank, Tag: int32(tag), Peer: int32(peer), Next: fastpath.None,
	}
	if m.Last == fastpath.None {
		m.First = at
	} else {
		m.Table[m.Last].Next = at
	}
	m.Last = at
	return int(at), r.Gen, nil
}

// TestReceivesOfC are completed by Go, in the order in which C has posted them.
func TestReceivesOfC(t *testing.T) {
	onFastPath(t, func(c *Comm, m *fastpath.Memory) error {
		var word [1]int32
		if c.Rank() == 0 {
			_, err := Recv(c, word[:], 1, 98) // they are posted
			for i := range 3 {
				err = first(err, Send(c, pattern(10+i, i), 1, 5))
			}
			return first(err, Send(c, pattern(3000, 3), 1, 6), Send(c, pattern(20, 4), 1, 7), swapWords(c, &word))
		}
		bufs := [...][]byte{make([]byte, 64), make([]byte, 64), make([]byte, 64), make([]byte, 4000), make([]byte, 5), make([]byte, 8)}
		var qs [len(bufs)]Request
		for i, tag := range []int{5, AnyTag, 5, 6, 7, 8} {
			k, gen, err := asC(m, bufs[i], tag)
			if err != nil {
				return fmt.Errorf("receive %d: %w", i, err)
			}
			qs[i] = Request(c.in().FastPathRequest(k, gen))
		}
		err := Send(c, word[:], 0, 98)
		for i, size := range []int{10, 11, 12, 3000} {
			stale := qs[i]
			st, e := qs[i].Wait()
			tag := 5 + i/3
			err = first(err, e, expect("size", st.Bytes(), int64(size)), expect("tag", st.Tag, tag), expect("source", st.Source, 0),
				expect("data", string(bufs[i][:size]), string(pattern(size, i))), expect("null", qs[i].Null(), true))
			if _, e := stale.Wait(); !errors.Is(e, ErrRequest) {
				err = first(err, fmt.Errorf("a request that is over: %w", e))
			}
		}
		st, e := qs[4].Wait()
		err = first(err, expect("too long", errors.Is(e, message.ErrTruncate), true), expect("what fits", st.Bytes(), 5))
		e = qs[5].Cancel()
		st, e2 := qs[5].Wait()
		err = first(err, e, e2, expect("cancelled", st.Cancelled(), true))
		free := 0
		for i := m.Spare; i != fastpath.None; i = m.Table[i].Next {
			free++
		}
		return first(err, expect("free requests", free, fastpath.Requests), swapWords(c, &word))
	})
}

// TestMemoryOfReceivesOfC tells C what Go has written for it, and what was received from any
// source.
func TestMemoryOfReceivesOfC(t *testing.T) {
	var told sync.Map
	withFastPath(t, func(buf unsafe.Pointer, n int64) { told.Store(buf, n) }, func(c *Comm, m *fastpath.Memory) error {
		var word [1]int32
		if c.Rank() == 0 {
			_, err := Recv(c, word[:], 1, 98)
			return first(err, Send(c, pattern(10, 1), 1, 5), Send(c, pattern(20, 2), 1, 6), swapWords(c, &word))
		}
		var qs [3]Request
		var bufs [len(qs)][]byte
		for i, tag := range []int{5, 6, 7} {
			bufs[i] = make([]byte, 40)
			k, gen, err := asC(m, bufs[i], tag)
			if err != nil {
				return err
			}
			if i == 1 {
				m.Table[k].Peer, m.Table[k].Rank = fastpath.AnySource, proc.AnySource
			}
			qs[i] = Request(c.in().FastPathRequest(k, gen))
		}
		err := first(expect("whole", m.CommOf(worldHandle).Whole, 1), Send(c, word[:], 0, 98))
		_, e := qs[0].Wait()
		st, e1 := qs[1].Wait()
		e2 := qs[2].Cancel()
		_, e3 := qs[2].Wait()
		err = first(err, e, e1, e2, e3, expect("size", st.Bytes(), 20), expect("source", st.Source, 0), expect("data", string(bufs[1][:20]), string(pattern(20, 2))))
		for i, want := range []any{int64(10), int64(20), nil} {
			if n, _ := told.Load(unsafe.Pointer(&bufs[i][0])); n != want {
				err = first(err, fmt.Errorf("C is told of %v bytes of receive %d, want %v", n, i, want))
			}
		}
		return first(err, swapWords(c, &word))
	})
}

// obey does what rank 0 says, and nothing else: it sends a word with a tag for each that comes, or
// receives a long message for a 0, until there is a -1.
func obey(c *Comm) error {
	var word [1]int32
	for {
		if _, err := Recv(c, word[:], 0, 50); err != nil || word[0] < 0 {
			return err
		}
		if word[0] > 0 {
			if err := Send(c, []int32{100 + word[0]}, 0, int(word[0])); err != nil {
				return err
			}
		} else if _, err := Recv(c, make([]byte, 1<<20), 0, 6); err != nil {
			return err
		}
	}
}

// TestGate is open while nobody waits, and says what C may do.
func TestGate(t *testing.T) {
	onFastPath(t, func(c *Comm, m *fastpath.Memory) error {
		if c.Rank() == 1 {
			return obey(c)
		}
		peer := &m.Peers[m.CommOf(worldHandle).Peer[1]]
		tell := func(words ...int32) (err error) {
			for _, w := range words {
				err = first(err, Send(c, []int32{w}, 1, 50))
			}
			return err
		}
		hear := func(tag int) error {
			var in [1]int32
			_, err := Recv(c, in[:], 1, tag)
			return first(err, expect("word", in[0], int32(100+tag)))
		}
		state := func(what string, takes uint32) error {
			return first(expect(what+": gate", m.Gate.Load(), fastpath.Open), expect(what+": sends", peer.Sends, 1), expect(what+": takes", peer.Takes, takes))
		}
		var in [1]int32
		err := first(tell(1), hear(1), state("at rest", 1))
		q, e := Irecv(c, in[:], 1, 3)
		err = first(err, e, state("with a receive", 0), tell(3), complete(&q), state("without", 1))
		err = first(err, tell(4, 5), hear(5), state("with a message", 0), hear(4), state("without", 1))
		s, e := Isend(c, make([]byte, 1<<20), 1, 6)
		err = first(err, e, expect("with a long send: takes", peer.Takes, 0), tell(0), complete(&s), tell(1), hear(1), state("without", 1))
		c.in().Process().FastPath.CommOf(4096).Handle = 4096
		c.in().Process().FastPath.Forget()
		return first(err, expect("forgotten", m.CommOf(4096).Handle, 0), tell(-1))
	})
}

// TestFreedIsForgotten has C ask for a communicator that was freed, and for no other one.
func TestFreedIsForgotten(t *testing.T) {
	onFastPath(t, func(c *Comm, m *fastpath.Memory) error {
		const handle = uintptr(worldHandle + 8)
		made, err := c.Dup()
		if err != nil {
			return err
		}
		made.in().FastPath(handle)
		err = expect("made", m.CommOf(handle).Handle, handle)
		return first(err, made.Free(), expect("freed", m.CommOf(handle).Handle, 0), expect("world", m.CommOf(worldHandle).Handle, worldHandle))
	})
}

// TestNoFastPathToOtherRepresentations wants nothing of C where elements may have to be converted,
// whoever else shares the machine.
func TestNoFastPathToOtherRepresentations(t *testing.T) {
	for name, want := range map[string]int32{"": 1, "external32": 0, "native-be": 0} {
		if datatype.HostOrder() == datatype.NativeBE && name == "native-be" {
			want = 1
		}
		data := func(int, int) string { return name }
		layout{procs: 2, link: rings(64 << 10), data: data}.run(t, func(_ *testing.T, c *Comm) error {
			m := new(fastpath.Memory)
			c.in().Process().UseFastPath(m, func(unsafe.Pointer, int64) {})
			var word [1]int32
			return first(swapWords(c, &word), swapWords(c, &word), expect("peers to "+name, m.Used, want))
		})
	}
}

// TestLeaveAsked has Go wait for C to leave, which it asks for.
func TestLeaveAsked(t *testing.T) {
	onFastPath(t, func(c *Comm, m *fastpath.Memory) error {
		var word [1]int32
		if !m.Gate.CompareAndSwap(fastpath.Open, fastpath.Inside) {
			return fmt.Errorf("the gate is %d", m.Gate.Load())
		}
		done := make(chan error)
		go func() { done <- Send(c, []int32{1}, 1-c.Rank(), 2) }()
		for m.LeaveAsked.Load() == 0 {
			select {
			case err := <-done:
				return fmt.Errorf("Send did not wait: %w", err)
			default:
			}
		}
		m.Gate.Store(fastpath.Open)
		_, err := Recv(c, word[:], 1-c.Rank(), 2)
		return first(<-done, err, expect("leave asked", m.LeaveAsked.Load(), 0), swapWords(c, &word))
	})
}

// TestFastBoxMessagesOfC are what Go receives, and wake who sleeps.
func TestFastBoxMessagesOfC(t *testing.T) {
	onFastPath(t, func(c *Comm, m *fastpath.Memory) error {
		var word [1]int32
		if c.Rank() == 1 {
			for i := range 100 {
				st, err := Recv(c, word[:], 0, i)
				if err = first(err, expect("word", word[0], int32(i)), expect("size", st.Bytes(), 4)); err != nil {
					return err
				}
				if err := Send(c, word[:], 0, i); err != nil {
					return err
				}
			}
			return nil
		}
		e := m.CommOf(worldHandle)
		at := int(e.Peer[1])
		for i := range 100 {
			if !m.Gate.CompareAndSwap(fastpath.Open, fastpath.Inside) {
				return fmt.Errorf("the gate is %d", m.Gate.Load())
			}
			l := &m.Peers[at]
			n := l.Room(4)
			n.Context, n.Rank, n.Tag = e.Context, e.Rank, int32(i)
			l.Post(binary.NativeEndian.AppendUint32(nil, uint32(i)), l.OutAt)
			m.Gate.Store(fastpath.Open)
			c.in().Process().FastPath.Wake(at)
			if _, err := Recv(c, word[:], 1, i); err != nil || word[0] != int32(i) {
				return fmt.Errorf("%d came back for %d: %w", word[0], i, err)
			}
		}
		return expect("sent", c.in().Process().Eng.SentTo(message.Peer(1)) >= 100, true)
	})
}
