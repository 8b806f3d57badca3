package mpi

import (
	"bytes"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"sync/atomic"
	"testing"

	"github.com/openimpi/impi/core/message"
	"github.com/openimpi/impi/core/wire"
	"github.com/openimpi/impi/internal/engine/proc"
	"github.com/openimpi/impi/internal/machine"
	"github.com/openimpi/impi/plugins/sdk/link"
)

// The goroutine that makes progress sleeps in the poll set, others sleep until
// it has something for them. Whatever a third one completes for them without a
// byte coming by a link must wake them.

// sleeping waits until n goroutines of p sleep: the driver and n-1 that wait for it.
func sleeping(p *proc.Process, n int) {
	for {
		if p.Mu.TryLock() { // lock would keep the driver from going to sleep
			ready := p.Asleep && p.Waiters == n-1
			p.Mu.Unlock()
			if ready {
				return
			}
		}
		runtime.Gosched()
	}
}

// sleepers starts n goroutines that each receive tag i from rank src, and waits
// until all of them sleep.
func sleepers(p *proc.Process, n, src int) <-chan error {
	got := make(chan error, n)
	for i := range n {
		go func() {
			_, err := Recv((*Comm)(p.Comms.World), make([]byte, 1), src, i)
			got <- err
		}()
	}
	sleeping(p, n)
	return got
}

func TestSendToSelfWakesTheReceiver(t *testing.T) {
	for _, spin := range []string{"auto", "0"} {
		p := layout{spin: spin}.start(t)[0]
		const n = 3
		got := sleepers(p, n, 0)
		for i := range n {
			if err := Ssend((*Comm)(p.Comms.World), []byte{1}, 0, i); err != nil {
				t.Fatal(err)
			}
		}
		for range n {
			if err := <-got; err != nil {
				t.Error(err)
			}
		}
	}
}

func TestReceiveFromSelfWakesTheSender(t *testing.T) {
	p := layout{spin: "0"}.start(t)[0]
	sent := make(chan error)
	go func() { sent <- Ssend((*Comm)(p.Comms.World), []byte{1}, 0, 5) }()
	sleeping(p, 1)
	if _, err := Recv((*Comm)(p.Comms.World), make([]byte, 1), 0, 5); err != nil {
		t.Fatal(err)
	}
	if err := <-sent; err != nil {
		t.Error(err)
	}
}

func TestSendToSelfWakesTheProbe(t *testing.T) {
	p := layout{spin: "0"}.start(t)[0]
	found := make(chan Status)
	go func() {
		st, _ := Probe((*Comm)(p.Comms.World), AnySource, AnyTag)
		found <- st
	}()
	sleeping(p, 1)
	q, err := Issend((*Comm)(p.Comms.World), []byte{1}, 0, 5)
	if err != nil {
		t.Fatal(err)
	}
	if st := <-found; st.Tag != 5 {
		t.Errorf("found %+v", st)
	}
	if err := first(second(Recv((*Comm)(p.Comms.World), make([]byte, 1), 0, 5)), second(q.Wait())); err != nil {
		t.Error(err)
	}
}

func TestCancelWakesWhoWaits(t *testing.T) {
	p := layout{procs: 2, spin: "0"}.start(t)[0]
	q, err := Irecv((*Comm)(p.Comms.World), make([]byte, 1), 1, 0)
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan error)
	copied := q
	go func() {
		st, err := q.Wait()
		if err == nil && !st.Cancelled() {
			err = errors.New("not cancelled")
		}
		done <- err
	}()
	sleeping(p, 1)
	if err := copied.Cancel(); err != nil {
		t.Fatal(err)
	}
	if err := <-done; err != nil {
		t.Error(err)
	}
}

// mute is a link that breaks when it is written to, and shows nobody who
// sleeps that it did.
type mute struct{ link.Link }

func (mute) Send([][]byte) (int, error) { return 0, fmt.Errorf("%w: by the test", link.ErrBroken) }

func TestLinkThatASendFindsBrokenWakesReceivers(t *testing.T) {
	p, err := proc.NewProcess(layout{procs: 2, spin: "0"}.job(0), nil, machine.Local{}, nil)
	if err != nil {
		t.Fatal(err)
	}
	a, _ := socketPair()
	connect(t, p, 1, mute{a})
	got := sleepers(p, 2, 1)
	if err := Send((*Comm)(p.Comms.World), make([]byte, 10_000), 1, 0); !errors.Is(err, message.ErrPeerDown) {
		t.Errorf("send: %v", err)
	}
	for range 2 {
		if err := <-got; !errors.Is(err, message.ErrPeerDown) {
			t.Errorf("receive: %v", err)
		}
	}
}

func TestEndOfTheJobWakesAll(t *testing.T) {
	p := layout{procs: 2, spin: "0"}.start(t)[0]
	got := sleepers(p, 2, 1)
	p.Lock()
	p.SetFailed(errors.New("for the test"))
	p.Unlock()
	for range 2 {
		if err := <-got; !errors.Is(err, ErrJobOver) {
			t.Errorf("receive: %v", err)
		}
	}
}

// flood is a link by which messages with tag 3 never cease to come, and one with
// tag 2 once somebody has asked for it.
type flood struct {
	link.Link
	asked         atomic.Bool
	noise, answer []byte
}

func (f *flood) Recv(batch [][]byte) (int, error) {
	if f.asked.Swap(false) {
		return copy(batch[0], f.answer), nil
	}
	return copy(batch[0], f.noise), nil
}

func (*flood) Send(batch [][]byte) (int, error) { return link.Len(batch), nil }

func (*flood) Handle() int { return link.NoHandle }

// A goroutine whose message does not come must let the others have theirs, even
// if it never runs out of work.
func TestEndlessTrafficStarvesNobody(t *testing.T) {
	p, err := proc.NewProcess(layout{procs: 2}.job(0), nil, machine.Local{}, nil)
	if err != nil {
		t.Fatal(err)
	}
	packet := func(tag wire.Tag) []byte {
		b := make([]byte, wire.HeaderSize)
		wire.Published.PutHeader(b, &wire.Packet{Src: p.Eng.Proc(1), Dest: p.Eng.Proc(0), LSRank: 1, Tag: tag})
		return b
	}
	f := &flood{noise: packet(3), answer: packet(2)}
	connect(t, p, 1, f)
	q, err := Irecv((*Comm)(p.Comms.World), []byte{}, 1, 1)
	if err != nil {
		t.Fatal(err)
	}
	never := make(chan error)
	go func() { never <- second(q.Wait()) }()
	for range 20 {
		got := make(chan error)
		go func() { got <- second(Recv((*Comm)(p.Comms.World), []byte{}, 1, 2)) }()
		for waits := false; !waits; {
			runtime.Gosched()
			p.Lock()
			waits = p.Driving && p.Waiters > 0
			p.Unlock()
		}
		f.asked.Store(true)
		if err := <-got; err != nil {
			t.Fatal(err)
		}
	}
	copied := q
	if err := copied.Cancel(); err != nil {
		t.Fatal(err)
	}
	if err := <-never; err != nil {
		t.Error(err)
	}
}

// What leaves only now that the program waits for it completes without anything
// coming back.
func TestWaitForWhatWasHeldBack(t *testing.T) {
	for _, spin := range []string{"auto", "0"} {
		p := layout{procs: 2, spin: spin}.start(t)[0]
		reqs := make([]Request, 3)
		for i := range reqs {
			var err error
			if reqs[i], err = Isend((*Comm)(p.Comms.World), make([]byte, 4000), 1, 0); err != nil {
				t.Fatal(err)
			}
		}
		if err := Waitall(reqs, nil); err != nil {
			t.Error(err)
		}
	}
}

// A goroutine that sends more than the link takes leaves the rest to the driver,
// which sleeps and did not wait for room so far.
func TestSleepingDriverFinishesTheSendOfAnother(t *testing.T) {
	const n = 4 << 20
	p, err := proc.NewProcess(layout{procs: 2, dataLen: n, spin: "0"}.job(0), nil, machine.Local{}, nil)
	if err != nil {
		t.Fatal(err)
	}
	a, b := socketPair()
	connect(t, p, 1, a)
	got := sleepers(p, 1, 1)
	sent := make(chan error)
	go func() { sent <- Send((*Comm)(p.Comms.World), pattern(n, 3), 1, 5) }()
	sleeping(p, 2)
	h, data := packet(t, b, n)
	if h.Tag != 5 || !bytes.Equal(data, pattern(n, 3)) {
		t.Errorf("%v arrived damaged", h)
	}
	if err := <-sent; err != nil {
		t.Error(err)
	}
	if err := b.Close(); err != nil {
		t.Fatal(err)
	}
	if err := <-got; !errors.Is(err, message.ErrPeerDown) {
		t.Errorf("the receive: %v", err)
	}
}

// arrived reads n packets without data from the end of a link, however long they
// take, and gives their tags.
func arrived(t *testing.T, l link.Link, n int) (tags []wire.Tag) {
	t.Helper()
	for range n {
		h, _ := packet(t, l, 0)
		tags = append(tags, h.Tag)
	}
	return tags
}

// What an Isend has held back leaves though the program does not come back.
func TestHeldBackLeavesByItself(t *testing.T) {
	p, ends := withStrangers(t)
	for tag := range 3 {
		if _, err := Isend((*Comm)(p.Comms.World), []byte{}, 1, tag); err != nil {
			t.Fatal(err)
		}
	}
	if tags := arrived(t, ends[1], 3); !slices.Equal(tags, []wire.Tag{0, 1, 2}) {
		t.Errorf("tags %v", tags)
	}
}

// A blocking send holds nothing back, and what was held goes before it.
func TestBlockingSendLeavesAtOnce(t *testing.T) {
	p, ends := withStrangers(t)
	p.Endpoints.Flusher.Stop()
	p.Endpoints.Armed = true // nobody comes to flush
	for tag := range 3 {
		if _, err := Isend((*Comm)(p.Comms.World), []byte{}, 1, tag); err != nil {
			t.Fatal(err)
		}
	}
	if err := Send((*Comm)(p.Comms.World), []byte{}, 1, 3); err != nil {
		t.Fatal(err)
	}
	b := make([]byte, 5*wire.HeaderSize)
	if n, err := ends[1].Recv([][]byte{b}); n != 4*wire.HeaderSize || err != nil {
		t.Errorf("%d bytes have left, %v", n, err)
	}
}

// tally is a link that counts how often it is written to, and takes nothing while it is full.
type tally struct {
	link.Link
	writes int
	full   bool
}

func (l *tally) Send(batch [][]byte) (int, error) {
	l.writes++
	if l.full {
		return 0, nil
	}
	return l.Link.Send(batch)
}

// TestShortMessagesShareWrites: a lone message leaves at once, while more of them are gathered:
// those that a program begins in a row, and those for which the link has no room yet.
func TestShortMessagesShareWrites(t *testing.T) {
	job := layout{procs: 2, spin: "0"}.job(0)
	job.HiWater = 1000 // nobody acknowledges packets here
	p, err := proc.NewProcess(job, nil, machine.Local{}, nil)
	if err != nil {
		t.Fatal(err)
	}
	a, b := socketPair()
	l := &tally{Link: a}
	connect(t, p, 1, l)
	p.Endpoints.Flusher.Stop()
	p.Endpoints.Armed = true // nobody comes to flush
	world := (*Comm)(p.Comms.World)
	in := make([]byte, 1000*wire.HeaderSize)
	wrote := func(what string, writes, messages int) {
		t.Helper()
		if n, err := b.Recv([][]byte{in}); n != messages*wire.HeaderSize || err != nil {
			t.Errorf("%s: %d bytes have left, %v, want %d messages", what, n, err, messages)
		}
		if l.writes != writes {
			t.Errorf("%s: %d writes, want %d", what, l.writes, writes)
		}
		l.writes = 0
	}
	begin := func(n int) {
		t.Helper()
		for range n {
			if _, err := Isend(world, []byte{}, 1, 0); err != nil {
				t.Fatal(err)
			}
		}
	}
	waits := func() {
		p.Lock()
		p.Endpoints.FlushAll()
		p.Unlock()
	}
	begin(1)
	wrote("a lone message", 1, 1)
	waits()
	begin(100)
	wrote("the first of a row", 1, 1)
	waits()
	wrote("the others", 1, 99)
	for range 3 {
		if err := Send(world, []byte{}, 1, 0); err != nil {
			t.Fatal(err)
		}
		wrote("a blocking one", 1, 1)
	}
	l.full = true
	begin(100)
	l.writes, l.full = 0, false
	waits()
	wrote("what a full link was given", 1, 100)
}
