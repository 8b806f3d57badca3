package mpi

import (
	"errors"
	"fmt"
	"io"
	"sync"
	"testing"
	"time"

	"github.com/openimpi/impi/core/message"
	"github.com/openimpi/impi/core/wire"
	"github.com/openimpi/impi/internal/drive"
	"github.com/openimpi/impi/internal/engine/proc"
	"github.com/openimpi/impi/internal/wireup"
	"github.com/openimpi/impi/plugins/sdk/link"
)

// toPeer is the port of p to a peer.
func toPeer(p *proc.Process, peer message.Peer) *proc.Endpoint {
	for _, q := range p.Endpoints.List {
		if q != nil && q.Peer == peer {
			return q
		}
	}
	return nil
}

// fastBoxesSent is how many fast-box messages p has sent to a peer.
func fastBoxesSent(p *proc.Process, peer message.Peer) uint64 {
	p.Lock()
	defer p.Unlock()
	return toPeer(p, peer).Link.(link.FastBoxLink).FastBoxesSent()
}

// longestBox is the longest message that is one of a fast box in rings of 32 KiB.
const longestBox = 4 << 10

// Messages that fit are fast-box messages where procs have memory in common, and cost no
// allocation, whatever their receive is.
func TestFastBoxMessagesAllocateNothing(t *testing.T) {
	for _, n := range []int{0, 8, link.InFastBox, link.InFastBox + 1, longestBox, longestBox + 1} {
		procs := layout{procs: 2, link: rings(32 << 10)}.start(t)
		a, b := (*Comm)(procs[0].Comms.World), (*Comm)(procs[1].Comms.World)
		out, in := pattern(n, 3), make([]byte, n)
		reqs := make([]Request, 2)
		check := func(st Status, err error) {
			if err != nil || st.Bytes() != int64(n) || st.Source != 0 || string(in) != string(out) {
				t.Fatalf("%d bytes: %+v, %v", n, st, err)
			}
			clear(in)
		}
		round := func() {
			_ = Send(a, out, 1, 0)
			check(Recv(b, in, 0, 0))
			_ = Send(a, out, 1, 1)
			check(Recv(b, in, AnySource, AnyTag))
			reqs[0], _ = Isend(a, out, 1, 2)
			reqs[1], _ = Irecv(b, in, 0, 2)
			_, _ = reqs[0].Wait() // first: the window may be closed
			check(reqs[1].Wait())
		}
		for range 100 {
			round() // pools fill
		}
		before := fastBoxesSent(procs[0], 1)
		if a := testing.AllocsPerRun(200, round); a > 0 {
			t.Errorf("%d bytes: %v allocations", n, a)
		}
		if sent := fastBoxesSent(procs[0], 1) - before; (sent > 0) != (n <= longestBox) || sent%3 != 0 {
			t.Errorf("%d bytes: %d fast-box messages", n, sent)
		}
	}
}

// Goroutines that receive at the same time from one proc have their own messages, in
// order, whoever of them finds which fast-box message.
func TestManyReceiveFastBoxes(t *testing.T) {
	for _, spin := range []string{"auto", "0"} {
		l := layout{procs: 2, spin: spin, link: rings(8 << 10)}
		l.run(t, func(t *testing.T, c *Comm) error {
			const tags, count = 4, 1500
			var all sync.WaitGroup
			errs := [tags]error{}
			for tag := range tags {
				all.Go(func() {
					buf := make([]int64, 1+tag*80) // they go in the box, behind the boxes and as packets
					for i := range int64(count) {
						buf[tag*80] = i
						if c.Rank() == 0 {
							errs[tag] = errors.Join(errs[tag], Send(c, buf, 1, tag))
							continue
						}
						buf[tag*80] = -1
						st, err := Recv(c, buf, 0, tag)
						if err != nil || st.Tag != tag || buf[tag*80] != i {
							errs[tag] = fmt.Errorf("tag %d: message %d is %d: %+v, %w", tag, i, buf[tag*80], st, err)
							return
						}
					}
				})
			}
			all.Wait()
			return errors.Join(errs[:]...)
		})
	}
}

// Who receives fast-box messages that are always there already sees to his other links, too.
func TestStreakStarvesNobody(t *testing.T) {
	procs := layout{procs: 3, messages: true, link: rings(64 << 10)}.start(t)
	p, b := procs[0], make([]byte, 8)
	round := func() {
		for range 32 {
			if err := Send((*Comm)(procs[1].Comms.World), b, 0, 0); err != nil {
				t.Fatal(err)
			}
		}
		for range 32 {
			if _, err := Recv((*Comm)(p.Comms.World), b, 1, 0); err != nil {
				t.Fatal(err)
			}
		}
	}
	for range 100 {
		round()
	}
	if err := Send((*Comm)(procs[2].Comms.World), make([]byte, 500), 0, 0); err != nil {
		t.Fatal(err)
	}
	for i := 0; ; i++ {
		p.Lock()
		messages, _ := p.Eng.Waiting()
		p.Unlock()
		if messages == 1 {
			return
		}
		if i == 2*drive.MemoryScanEvery*proc.StreakMax/32 {
			t.Fatalf("nobody has looked at another link after %d receives", 32*i)
		}
		round()
	}
}

// silent is a node that does nothing.
type silent struct{}

func (silent) Send(wireup.Message) error { return nil }

// Who receives from a proc whose link has broken, and of which the node has not said anything
// yet, waits.
func TestRecvByALinkThatHasJustBroken(t *testing.T) {
	procs := layout{procs: 2, link: rings(8 << 10), messages: true}.start(t)
	p := procs[0]
	p.Node.Control, p.Endpoints.Grace = silent{}, time.Hour
	q := toPeer(p, 1)
	p.Lock()
	q.Drop(io.ErrUnexpectedEOF)
	p.Unlock()
	got := make(chan error)
	for range 2 {
		go func() { got <- second(Recv((*Comm)(p.Comms.World), make([]byte, 8), 1, 0)) }()
	}
	sleeping(p, 2)
	p.Lock()
	q.GiveUp(io.ErrUnexpectedEOF)
	p.Unlock()
	for range 2 {
		if err := <-got; !errors.Is(err, message.ErrPeerDown) {
			t.Errorf("got %v", err)
		}
	}
}

// TestDraftOverMemory: packets of the draft are packets over memory, too.
func TestDraftOverMemory(t *testing.T) {
	layout{procs: 2, link: rings(8 << 10), dialect: wire.Draft}.run(t, func(_ *testing.T, c *Comm) error {
		var word [1]int32
		for range 3 {
			if err := swapWords(c, &word); err != nil {
				return err
			}
		}
		return expect("word", word[0], int32(1-c.Rank()))
	})
}
