package rdma

import (
	"errors"
	"runtime"
	"sync/atomic"
	"testing"

	"github.com/openimpi/impi/plugins/sdk/link"
)

// A region that is freed while a plugin may still read it keeps its memory, its number and its
// place among what is lent until the loan is over.
func TestFreedWithALoan(t *testing.T) {
	var r Regions
	l, p := sides(t, &r)
	first := lentMemory(t, &r, 64<<10)
	if n, err := l.Lend([][]byte{first}); n != 0 || err != nil {
		t.Fatal(n, err)
	}
	if err := r.Free(base(first)); err != nil {
		t.Fatal(err)
	}
	second := lentMemory(t, &r, 64<<10)
	if n, err := l.Lend([][]byte{first, second}); n != 0 || err != nil {
		t.Fatal(n, err)
	}
	a, b := next(t, p, SendLoan), next(t, p, SendLoan)
	if a.Region == b.Region || first[100] != 700&0xff {
		t.Fatalf("%+v, and then %+v; byte 100 is %d", a, b, first[100])
	}
	complete(t, p, Entry{Kind: LoanSent, Number: a.Number})
	if n, err := l.Lend([][]byte{first, second}); n != len(first) || err != nil {
		t.Fatal(n, err)
	}
	if _, err := l.Lend([][]byte{second}); err != nil {
		t.Fatal(err)
	}
	if e := next(t, p, Forget); e.Region != a.Region || e.Generation != a.Generation {
		t.Fatalf("%+v after %+v", e, a)
	}
}

// readOf has the plugin asked to read into lent memory.
func readOf(t *testing.T, l *Link, p *Port, r *Regions) (to []byte, e Entry) {
	t.Helper()
	to = lentMemory(t, r, 64<<10)
	complete(t, p, Entry{Kind: Offered, Message: 1, Length: 64 << 10})
	if n, err := l.Recv([][]byte{to}); n != 0 || err != nil {
		t.Fatal(n, err)
	}
	return to, next(t, p, Read)
}

// Recall waits for the read that is under way, and what was read is read again.
func TestRecall(t *testing.T) {
	var r Regions
	l, p := sides(t, &r)
	l.Recall() // of nothing
	to, e := readOf(t, l, p, &r)
	var completed atomic.Bool
	over := make(chan struct{})
	go func() {
		defer close(over)
		for l.in.b.readerSleeps.Load() == 0 {
			runtime.Gosched()
		}
		completed.Store(true)
		_ = p.Complete(Entry{Kind: WasRead, Number: e.Number})
	}()
	if l.Recall(); !completed.Load() {
		t.Fatal("the memory is given back while the plugin writes to it")
	}
	<-over
	if n, err := l.Recv([][]byte{to}); n != 0 || err != nil {
		t.Fatalf("%d bytes were delivered that were recalled, %v", n, err)
	}
	if again := next(t, p, Read); again.At != 0 || again.Length != e.Length {
		t.Fatalf("%+v after %+v", again, e)
	}
	complete(t, p, Entry{Kind: WasRead, Number: e.Number + 1})
	if n, err := l.Recv([][]byte{to}); n != len(to) || err != nil {
		t.Fatal(n, err)
	}
}

// Memory in which the plugin reads is not given back before the plugin has closed its side, when the
// read takes too long, when the plugin has broken the rules, and by Close.
func TestReadEndsWithTheLink(t *testing.T) {
	for name, gives := range map[string]func(l *Link, p *Port){
		"recall": func(l *Link, _ *Port) {
			l.patience = -1
			l.Recall()
		},
		"broken rules": func(l *Link, p *Port) {
			_ = p.Complete(Entry{Kind: 77})
			l.Recall()
		},
		"close": func(l *Link, _ *Port) { _ = l.Close() },
	} {
		var r Regions
		l, p := sides(t, &r)
		to, _ := readOf(t, l, p, &r)
		var closed atomic.Bool
		go func() {
			for !p.Left() {
				_ = p.Look()
				runtime.Gosched()
			}
			closed.Store(true)
			p.Close()
		}()
		if gives(l, p); !closed.Load() {
			t.Errorf("%s: the memory is given back while the plugin writes to it", name)
		}
		if _, err := l.Recv([][]byte{to}); !errors.Is(err, link.ErrBroken) && !errors.Is(err, link.ErrClosed) {
			t.Errorf("%s: the link is used on: %v", name, err)
		}
		if err := r.Free(base(to)); err != nil {
			t.Error(err)
		}
		if l.Close(); r.table[0] != nil {
			t.Errorf("%s: memory that was freed is kept", name)
		}
		p.Forsake()
	}
}
