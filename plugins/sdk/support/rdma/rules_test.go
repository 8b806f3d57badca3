package rdma

import (
	"encoding/binary"
	"errors"
	"io"
	"os"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/openimpi/impi/plugins/sdk/link"
)

// What a plugin must not complete: the proc's link is broken, with an error that says what was
// wrong.
func TestWrongCompletions(t *testing.T) {
	for name, c := range map[string]struct {
		entries []Entry
		want    string
	}{
		"unknown kind":            {[]Entry{{Kind: 77}}, "kind 77"},
		"slot that was not sent":  {[]Entry{{Kind: SlotSent, Slot: 1}}, "slot 1 for sending"},
		"slot twice":              {[]Entry{{Kind: SlotSent}, {Kind: SlotSent}}, "slot 0 for sending was completed; 0 messages"},
		"slot out of range":       {[]Entry{{Kind: SlotSent, Slot: 1 << 30}}, "slot 1073741824"},
		"loan that is not":        {[]Entry{{Kind: LoanSent, Number: 1}}, "loan 1"},
		"read that is not":        {[]Entry{{Kind: WasRead, Number: 5}}, "read 5"},
		"wrong slot":              {[]Entry{{Kind: Arrived, Slot: 2, Length: 1}}, "slot 2 for receiving"},
		"no bytes":                {[]Entry{{Kind: Arrived}}, "0 bytes came"},
		"longer than a slot":      {[]Entry{{Kind: Arrived, Length: 1025}}, "1025 bytes came"},
		"length that overflows":   {[]Entry{{Kind: Arrived, Length: 1 << 63}}, "bytes came in slot 0"},
		"message number":          {[]Entry{{Kind: Offered, Message: 2, Length: 5}}, "message 2 of 5 bytes"},
		"message twice":           {[]Entry{{Kind: Offered, Message: 1, Length: 5}, {Kind: Offered, Message: 1, Length: 5}}, "the next is message 2"},
		"too long a message":      {[]Entry{{Kind: Offered, Message: 1, Length: MaxLength + 1}}, "1073741825 bytes"},
		"message after the end":   {[]Entry{{Kind: PeerEnded}, {Kind: Offered, Message: 1, Length: 5}}, "after the peer's last"},
		"end twice":               {[]Entry{{Kind: PeerEnded}, {Kind: PeerEnded}}, "twice"},
		"more messages than room": {[]Entry{{Kind: Offered, Message: 1, Length: 5}, {Kind: Offered, Message: 2, Length: 5}, {Kind: Offered, Message: 3, Length: 5}, {Kind: Offered, Message: 4, Length: 5}, {Kind: Offered, Message: 5, Length: 5}}, "message 5"},
	} {
		l, p := sides(t, nil)
		if _, err := l.Send([][]byte{{1}}); err != nil {
			t.Fatal(err)
		}
		for _, e := range c.entries {
			complete(t, p, e)
		}
		l.poll()
		_, err := l.Send([][]byte{{1}})
		if !errors.Is(err, ErrRules) || !errors.Is(err, link.ErrBroken) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// What a proc must not submit.
func TestWrongSubmissions(t *testing.T) {
	for name, e := range map[string]Entry{
		"unknown kind":          {Kind: 77},
		"wrong slot":            {Kind: SendSlot, Slot: 1, Length: 1},
		"longer than a slot":    {Kind: SendSlot, Length: 1025},
		"no bytes":              {Kind: SendSlot},
		"slot that is free":     {Kind: Free},
		"offset that overflows": {Kind: SendLoan, Offset: 1 << 63, Length: 8},
		"length":                {Kind: Read, Length: 1 << 40},
	} {
		l, p := sides(t, nil)
		l.submit(e)
		if _, _, err := p.Next(); !errors.Is(err, ErrRules) {
			t.Errorf("%s: %v", name, err)
		}
	}
	_, p := sides(t, nil)
	for _, e := range []Entry{{Offset: 1000, Length: 100}, {Offset: 4096, Length: 1}, {Offset: 1 << 50, Length: 1}} {
		if at, ok := p.StageAt(&e); ok {
			t.Errorf("%+v is at %d", e, at)
		}
	}
}

func TestWrongCounters(t *testing.T) {
	l, p := sides(t, nil)
	p.out.b.head.Store(1 << 40)
	if _, err := receive(l, 1); !errors.Is(err, ErrRules) {
		t.Error(err)
	}
	l, p = sides(t, nil)
	l.out.b.head.Store(1 << 40)
	if _, _, err := p.Next(); !errors.Is(err, ErrRegion) {
		t.Error(err)
	}
	l, p = sides(t, nil)
	l.out.b.tail.Store(1 << 40)
	for range perSlot*small.Slots + 1 {
		l.submit(Entry{Kind: Done})
	}
	if !errors.Is(l.err, ErrRules) {
		t.Error(l.err)
	}
	_ = p
}

func TestEnds(t *testing.T) {
	l, p := sides(t, nil)
	arrive(t, p, "last")
	complete(t, p, Entry{Kind: PeerEnded})
	if got, err := receive(l, 9); got != "last" || err != nil {
		t.Fatal(got, err)
	}
	if _, err := receive(l, 9); err != io.EOF { //nolint:errorlint // a link reports it bare
		t.Fatal(err)
	}

	l, p = sides(t, nil)
	arrive(t, p, "last")
	p.Close()
	if got, err := receive(l, 9); got != "last" || err != nil {
		t.Fatal(got, err)
	}
	if _, err := receive(l, 9); !errors.Is(err, link.ErrBroken) {
		t.Fatalf("the plugin has died: %v", err)
	}
	if _, err := l.Send([][]byte{{1}}); !errors.Is(err, link.ErrBroken) {
		t.Fatal(err)
	}
}

// A send that fails because nothing would arrive any more leaves what has come.
func TestLastMessageAfterSend(t *testing.T) {
	l, p := sides(t, nil)
	arrive(t, p, "last")
	complete(t, p, Entry{Kind: PeerEnded})
	p.Deaf()
	if _, err := l.Send([][]byte{{1}}); !errors.Is(err, link.ErrBroken) {
		t.Fatal(err)
	}
	if got, err := receive(l, 9); got != "last" || err != nil {
		t.Fatal(got, err)
	}
	if _, err := receive(l, 9); err != io.EOF { //nolint:errorlint // a link reports it bare
		t.Fatal(err)
	}
}

// A proc that looks all the time gets the message that comes just before the end.
func TestLastMessageWhileLooking(t *testing.T) {
	for range 300 {
		l, p := sides(t, nil)
		go func() {
			_ = p.Arrive(copy(p.ReceiveSlot(), "last"))
			_ = p.Complete(Entry{Kind: PeerEnded})
			p.Deaf()
		}()
		b := make([]byte, 9)
		for n := 0; n == 0; {
			var err error
			l.idle = lookEvery // so that each receive looks for the end
			if n, err = l.Recv([][]byte{b}); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// A process that has no descriptors left makes no side of a region, and keeps nothing of it.
func TestNoDescriptorsLeft(t *testing.T) {
	kept := func() (n int) {
		maps, err := os.ReadFile("/proc/self/maps")
		if err != nil {
			t.Fatal(err)
		}
		fds, err := os.ReadDir("/proc/self/fd")
		if err != nil {
			t.Fatal(err)
		}
		return strings.Count(string(maps), "/memfd:") + len(fds)
	}
	var limit unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &limit); err != nil {
		t.Fatal(err)
	}
	failures := 0
	for n := range uint64(1000) {
		before := kept()
		if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &unix.Rlimit{Cur: n, Max: limit.Max}); err != nil {
			t.Fatal(err)
		}
		p, fds, err := NewPort(small)
		if back := unix.Setrlimit(unix.RLIMIT_NOFILE, &limit); back != nil {
			t.Fatal(back)
		}
		if err == nil {
			p.Close()
			for _, fd := range fds {
				_ = unix.Close(fd)
			}
			break
		}
		if failures++; kept() > before { // fewer: the garbage of other tests
			t.Fatalf("after %q there are more open files and mappings than before", err)
		}
	}
	if failures < 6 {
		t.Fatalf("it has failed only %d times", failures)
	}
}

func TestDetach(t *testing.T) {
	l, p := sides(t, nil)
	for range 3 {
		if _, err := l.Send([][]byte{{1}}); err != nil {
			t.Fatal(err)
		}
	}
	arrive(t, p, "ab")
	if got, err := receive(l, 1); got != "a" || err != nil {
		t.Fatal(got, err)
	}
	if _, _, _, err := l.Detach(); !errors.Is(err, ErrRules) {
		t.Fatalf("a message was received in part: %v", err)
	}
	if got, err := receive(l, 1); got != "b" || err != nil {
		t.Fatal(got, err)
	}
	file, sock, channel, err := l.Detach()
	if err != nil {
		t.Fatal(err)
	}
	m, err := New(file, sock, channel, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	if n, err := m.Send([][]byte{make([]byte, 5000)}); n != small.SlotSize || err != nil {
		t.Fatalf("%d bytes were taken with one slot, %v", n, err)
	}
	for range 3 {
		next(t, p, SendSlot)
	}
	next(t, p, Free)
	if e := next(t, p, SendSlot); e.Slot != 3 {
		t.Fatalf("%+v", e)
	}
	complete(t, p, Entry{Kind: SlotSent, Slot: 0})
	arrive(t, p, "more")
	if got, err := receive(m, 9); got != "more" || err != nil {
		t.Fatal(got, err)
	}
}

func TestWrongRecords(t *testing.T) {
	good := Lent{Number: 1, Generation: 1, Size: 4096}
	for name, spoil := range map[string]func(b []byte){
		"magic":      func(b []byte) { b[0] = 0 },
		"version":    func(b []byte) { b[5] = 9 },
		"kind":       func(b []byte) { b[7] = 9 },
		"number":     func(b []byte) { clear(b[8:12]) },
		"generation": func(b []byte) { clear(b[12:16]) },
		"size":       func(b []byte) { binary.BigEndian.PutUint64(b[16:], 1<<63) },
	} {
		b := appendRecord(nil, good)
		if _, err := parseRecord(b); err != nil {
			t.Fatal(err)
		}
		spoil(b)
		if l, err := parseRecord(b); !errors.Is(err, ErrRules) {
			t.Errorf("%s: %+v, %v", name, l, err)
		}
	}
	fd, err := unix.MemfdCreate("x", unix.MFD_CLOEXEC|unix.MFD_ALLOW_SEALING)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(fd)
	if err := unix.Ftruncate(fd, 4096); err != nil {
		t.Fatal(err)
	}
	if err := checkLent(fd, good); !errors.Is(err, ErrRules) {
		t.Errorf("a file that can be made smaller: %v", err)
	}
	if _, err := unix.FcntlInt(uintptr(fd), unix.F_ADD_SEALS, unix.F_SEAL_SHRINK); err != nil {
		t.Fatal(err)
	}
	if err := checkLent(fd, good); err != nil {
		t.Error(err)
	}
	good.Size = 8192
	if err := checkLent(fd, good); !errors.Is(err, ErrRules) {
		t.Errorf("a file that is smaller: %v", err)
	}
}

// FuzzParse has the header of a control region, and then completions, written by a plugin that may
// write anything: nothing outside of the region is touched, and no check panics.
func FuzzParse(f *testing.F) {
	f.Add(header(small), []byte{1, 0, 0, 0})
	f.Add(header(Shape{maxSlots, maxSlotSize}), []byte{3, 0, 0, 0, 0, 0, 0, 0})
	f.Fuzz(func(t *testing.T, head, entries []byte) {
		mem := make([]byte, small.Size())
		copy(mem, head[:min(len(head), headerSize)])
		r, err := parse(mem)
		if err != nil {
			if !errors.Is(err, ErrRegion) {
				t.Fatal(err)
			}
			return
		}
		l := newLink(r, nil)
		l.err = l.resume()
		copy(mem[headerSize+r.shape.entries()*entrySize:][:r.shape.entries()*entrySize], entries)
		l.in.b.head.Store(l.in.tail + uint64(len(entries)/entrySize))
		for range 4 {
			l.poll()
			for i := range l.queue {
				if p := &l.queue[i]; p.size <= 0 || p.size > MaxLength || p.buf != nil && len(p.buf) > r.shape.SlotSize {
					t.Fatalf("%+v", *p)
				}
			}
		}
	})
}
