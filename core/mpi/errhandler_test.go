package mpi

import (
	"errors"
	"runtime"
	"strings"
	"testing"

	"github.com/openimpi/impi/core/mpierr"
	"github.com/openimpi/impi/internal/engine/proc"
	"github.com/openimpi/impi/internal/machine"
	"github.com/openimpi/impi/internal/wireup"
)

// listener is an error handler that notes what it hears, and uses MPI: a call
// that still holds the lock would never come back from it.
type listener struct {
	h    *Errhandler
	c    *Comm
	errs []error
}

func newListener(t *testing.T) *listener {
	t.Helper()
	l := new(listener)
	var err error
	l.h, err = NewErrhandler(func(c *Comm, err error) {
		l.c, l.errs = c, append(l.errs, err)
		if proc.LifeState(c.in().Process().State.Load()) != proc.Ended {
			if _, _, err := Iprobe((*Comm)(c.in().Process().Comms.Self), 0, 99); err != nil {
				t.Errorf("in the handler: %v", err)
			}
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// on is a listener for errors on c.
func (l *listener) on(t *testing.T, c *Comm) *listener {
	t.Helper()
	if err := c.SetErrhandler(l.h); err != nil {
		t.Fatal(err)
	}
	return l
}

// heard checks that the handler was called for c with just this error, and forgets it.
func (l *listener) heard(t *testing.T, c *Comm, err error) {
	t.Helper()
	if err == nil || len(l.errs) != 1 || l.errs[0] != err || l.c != c {
		t.Errorf("heard %v of %p, want only %v of %p", l.errs, l.c, err, c)
	}
	l.c, l.errs = nil, nil
}

// program makes p the program's process, as Init does, until the test's end.
func program(t *testing.T, p *proc.Process) {
	t.Helper()
	set := func(p *proc.Process) {
		proc.ProcessMu.Lock()
		defer proc.ProcessMu.Unlock()
		proc.ThisProcess = p
	}
	set(p)
	t.Cleanup(func() { set(nil) })
}

func TestHandlerIsToldOnce(t *testing.T) {
	c := (*Comm)(layout{}.start(t)[0].Comms.World)
	l := newListener(t).on(t, c)
	l.heard(t, c, Send(c, []byte{1}, 9, 0))
	l.heard(t, c, second(c.Split(-3, 0))) // which is made of other calls
	if err := Barrier(c); err != nil || l.errs != nil {
		t.Errorf("a call that succeeds: %v, %v", err, l.errs)
	}
	if err := c.SetErrhandler(ErrorsReturn); err != nil {
		t.Fatal(err)
	}
	if err := Send(c, []byte{1}, 9, 0); err == nil || l.errs != nil {
		t.Errorf("after another was set: %v, %v", err, l.errs)
	}
}

// A handler may use the communicator, whatever call has failed.
func TestHandlerMayCallMPI(t *testing.T) {
	p, ends := withStrangers(t)
	c, calls := (*Comm)(p.Comms.World), 0
	h, err := NewErrhandler(func(c *Comm, _ error) {
		calls++
		buf := make([]byte, 1)
		q, err := Isend(c, []byte{7}, 0, 5)
		if err == nil {
			_, err = Recv(c, buf, 0, 5)
		}
		if err == nil {
			_, err = q.Wait()
		}
		if err != nil || buf[0] != 7 {
			t.Errorf("in the handler: %v, %v", buf, err)
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := c.SetErrhandler(h); err != nil {
		t.Fatal(err)
	}
	pending := make([]Request, 6)
	for i := range pending {
		if pending[i], err = Irecv(c, make([]byte, 1), 1, 0); err != nil {
			t.Fatal(err)
		}
	}
	if err := ends[1].Close(); err != nil {
		t.Fatal(err)
	}
	_, _, waitany := Waitany(pending[:1])
	_, waitsome := Waitsome(pending[1:2], nil)
	_, _, test := pending[2].Test()
	_, _, testany := test3(Testany(pending[3:4]))
	_, _, iprobe := Iprobe(c, 1, 0)
	_, _, mprobe := Mprobe(c, 1, 0)
	_, _, improbe := Improbe(c, 1, 0)
	failures := []error{
		waitany, waitsome, test, testany, iprobe, mprobe, improbe, second(pending[4].Wait()), Waitall(pending[5:], nil),
		second(Probe(c, 1, 0)), Ssend(c, []byte{1}, 1, 0), second(Recv(c, []byte{1}, 1, 0)), Bcast(c, []byte{1}, 1),
		second(Sendrecv(c, []byte{1}, 1, 0, []byte{1}, 1, 0)),
	}
	for i, err := range failures {
		if err == nil {
			t.Errorf("call %d does not fail", i)
		}
	}
	if calls != len(failures) {
		t.Errorf("%d calls for %d failures", calls, len(failures))
	}
}

func test3(_ int, done bool, st Status, err error) (bool, Status, error) { return done, st, err }

func TestNewCommunicatorsInherit(t *testing.T) {
	c := (*Comm)(layout{}.start(t)[0].Comms.World)
	l := newListener(t).on(t, c)
	dup, err1 := c.Dup()
	split, err2 := c.Split(0, 0)
	cart, err3 := c.CartCreate([]int{1}, []bool{true}, false)
	if err := errors.Join(err1, err2, err3); err != nil {
		t.Fatal(err)
	}
	sub, err := cart.CartSub([]bool{true})
	if err != nil {
		t.Fatal(err)
	}
	if err := c.SetErrhandler(ErrorsReturn); err != nil { // is theirs no more
		t.Fatal(err)
	}
	for _, d := range []*Comm{dup, split, cart, sub} {
		l.heard(t, d, Send(d, []byte{1}, 9, 0))
	}
}

// The handler is the business of the communicator of a request, the first that
// failed where there are several.
func TestHandlerOfRequests(t *testing.T) {
	c := (*Comm)(layout{}.start(t)[0].Comms.World)
	d, err := c.Dup()
	if err != nil {
		t.Fatal(err)
	}
	onC, onD := newListener(t).on(t, c), newListener(t).on(t, d)
	begin := func(c *Comm, room int) Request {
		q, err := Irecv(c, make([]byte, room), 0, 0)
		if err == nil {
			err = Send(c, make([]byte, 2), 0, 0)
		}
		if err != nil {
			t.Fatal(err)
		}
		return q
	}
	q := begin(d, 1)
	onD.heard(t, d, second(q.Wait()))
	onD.heard(t, d, Waitall([]Request{begin(c, 2), begin(d, 1), begin(c, 1)}, nil))
	_, _, err = Waitany([]Request{begin(d, 1), begin(c, 1)})
	onD.heard(t, d, err)
	_, err = Waitsome([]Request{begin(c, 2), begin(d, 1)}, nil)
	onD.heard(t, d, err)
	_, err = Testall([]Request{begin(c, 2), begin(d, 1)}, nil)
	onD.heard(t, d, err)
	onC.heard(t, c, Waitall([]Request{begin(d, 2)}, make([]Status, 2))) // no request is to blame
	if onC.errs != nil || onD.errs != nil {
		t.Errorf("heard besides: %v, %v", onC.errs, onD.errs)
	}
}

// Calls without a communicator: the handler of SELF if it has one, else WORLD's.
func TestHandlerOfOtherCalls(t *testing.T) {
	p := layout{}.start(t)[0]
	program(t, p)
	onWorld := newListener(t).on(t, (*Comm)(p.Comms.World))
	onWorld.heard(t, (*Comm)(p.Comms.World), NewInfo().Delete("x"))
	onWorld.heard(t, (*Comm)(p.Comms.World), DimsCreate(-1, []int{0}))
	onWorld.heard(t, (*Comm)(p.Comms.World), Barrier(nil))
	onWorld.heard(t, (*Comm)(p.Comms.World), Init())
	onSelf := newListener(t).on(t, (*Comm)(p.Comms.Self))
	onSelf.heard(t, (*Comm)(p.Comms.Self), NewInfo().Delete("x"))
	onSelf.heard(t, (*Comm)(p.Comms.Self), new(Request).Cancel())
	onWorld.heard(t, (*Comm)(p.Comms.World), Send((*Comm)(p.Comms.World), []byte{1}, 9, 0))
}

func TestErrhandlersAreCounted(t *testing.T) {
	c := (*Comm)(layout{}.start(t)[0].Comms.World)
	l := newListener(t).on(t, c)
	if err := l.h.Free(); err != nil {
		t.Fatal(err)
	}
	l.heard(t, c, Send(c, []byte{1}, 9, 0)) // c has it still
	again := c.SetErrhandler(l.h)
	l.heard(t, c, again)
	for what, err := range map[string]error{"set": again, "free": l.h.Free(), "default": SetDefaultErrhandler(l.h)} {
		if ErrorClass(err) != mpierr.Errhandler {
			t.Errorf("%s of a freed handler: %v", what, err)
		}
	}
	got, err := c.GetErrhandler()
	if err != nil || got != l.h {
		t.Fatal(got, err)
	}
	if err := errors.Join(c.SetErrhandler(got), got.Free()); err != nil {
		t.Errorf("what Get gave: %v", err)
	}
	fresh := (*Comm)(layout{}.start(t)[0].Comms.World)
	if h, err := fresh.GetErrhandler(); h != ErrorsReturn || err != nil || errors.Join(h.Free(), h.Free()) != nil {
		t.Errorf("at first: %v, %v", h, err)
	}
}

func TestErrhandlersThatAreNone(t *testing.T) {
	c := (*Comm)(layout{}.start(t)[0].Comms.World)
	_, noFunction := NewErrhandler(nil)
	forWindows := (*Errhandler)(proc.ErrhandlerOf("for windows", nil, nil))
	var none *Errhandler
	var nowhere *Comm
	program(t, c.in().Process())
	for what, x := range map[string]struct {
		err  error
		want Class
	}{
		"no function": {noFunction, mpierr.Arg}, "free of none": {none.Free(), mpierr.Errhandler}, "none for c": {c.SetErrhandler(none), mpierr.Errhandler},
		"for windows": {c.SetErrhandler(forWindows), mpierr.Errhandler}, "none as default": {SetDefaultErrhandler(nil), mpierr.Errhandler},
		"for no communicator": {nowhere.SetErrhandler(ErrorsReturn), mpierr.Comm}, "of no communicator": {second(nowhere.GetErrhandler()), mpierr.Comm},
		"call of no communicator": {nowhere.CallErrhandler(ErrArg), mpierr.Comm},
	} {
		if x.err == nil || ErrorClass(x.err) != x.want {
			t.Errorf("%s: %v", what, x.err)
		}
	}
	if h, err := c.GetErrhandler(); h != ErrorsReturn || err != nil {
		t.Errorf("c has %v, %v", h, err)
	}
}

func TestCallErrhandler(t *testing.T) {
	c := (*Comm)(layout{}.start(t)[0].Comms.World)
	l := newListener(t).on(t, c)
	mine := NewError(mpierr.NoMem)
	if err := c.CallErrhandler(mine); err != nil {
		t.Error(err)
	}
	l.heard(t, c, mine)
	if err := c.CallErrhandler(nil); err != nil || l.errs != nil {
		t.Errorf("without an error: %v, %v", err, l.errs)
	}
}

// deathbed is a machine whose procs note their exit status; the goroutine ends.
type deathbed struct {
	machine.Local
	code int
	said wireup.Message
}

func (d *deathbed) Exit(code int, _ string) {
	d.code = code
	runtime.Goexit()
}

// Send makes it the node too.
func (d *deathbed) Send(m wireup.Message) error {
	if m.Kind == wireup.KindAbort {
		d.said = m
	}
	return nil
}

// dies runs f on a proc with a node and tells how that ended.
func dies(t *testing.T, f func(c *Comm)) *deathbed {
	t.Helper()
	d := &deathbed{code: -1}
	p, err := proc.NewProcess(layout{procs: 3}.job(1), nil, d, d)
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		f((*Comm)(p.Comms.World))
	}()
	<-done
	return d
}

func TestFatalErrorsEndTheJob(t *testing.T) {
	for _, h := range []*Errhandler{ErrorsAreFatal, ErrorsAbort} {
		d := dies(t, func(c *Comm) {
			if err := c.SetErrhandler(h); err != nil {
				t.Error(err)
			}
			err := Send(c, []byte{1}, 9, 0)
			t.Errorf("%s: Send returns %v", h.in().Name(), err)
		})
		if d.code != int(mpierr.Rank) || d.said.Code != d.code {
			t.Errorf("%s: exit status %d, job's %d", h.in().Name(), d.code, d.said.Code)
		}
		for _, part := range []string{"fatal error", "MPI_ERR_RANK", "mpi.Send", "MPI_COMM_WORLD", "rank 1 of 3"} {
			if !strings.Contains(d.said.Reason, part) {
				t.Errorf("%s: %q does not tell of %q", h.in().Name(), d.said.Reason, part)
			}
		}
	}
}

// What ends by a loss might have gone on: the text says how.
func TestFatalErrorOfALoss(t *testing.T) {
	rank := NewError(mpierr.Rank)
	for _, why := range []error{ErrProcFailed, ErrRevoked, rank} {
		d := dies(t, func(c *Comm) {
			_ = c.SetErrhandler(ErrorsAreFatal)
			_ = c.CallErrhandler(why)
		})
		if said, want := strings.Contains(d.said.Reason, "with mpi.ErrorsReturn in the place of its error handler (SetErrhandler) the program can go on"), why != rank; said != want {
			t.Errorf("%q: %v", d.said.Reason, said)
		}
	}
}

// A class of the program's own is no exit status; an unnamed communicator has a number.
func TestFatalErrorOfTheProgram(t *testing.T) {
	class, err := AddErrorClass()
	if err != nil {
		t.Fatal(err)
	}
	d := dies(t, func(c *Comm) {
		c.SetName("")
		_ = c.SetErrhandler(ErrorsAreFatal)
		_ = c.CallErrhandler(NewError(class))
	})
	if d.code != int(mpierr.Other) || !strings.Contains(d.said.Reason, "communicator of context 0") {
		t.Errorf("exit status %d, %q", d.code, d.said.Reason)
	}
}

func TestDefaultErrhandler(t *testing.T) {
	c := (*Comm)(layout{}.start(t)[0].Comms.World)
	l := newListener(t)
	if err := SetDefaultErrhandler(l.h); err != nil {
		t.Fatal(err)
	}
	defer proc.Fallback.Store(nil)
	l.heard(t, c, Send(c, []byte{1}, 9, 0))
	d, err := c.Dup()
	if err != nil {
		t.Fatal(err)
	}
	if err := SetDefaultErrhandler(ErrorsReturn); err != nil {
		t.Fatal(err)
	}
	if err := Send(d, []byte{1}, 9, 0); err == nil || l.errs != nil {
		t.Errorf("what nobody set follows the default: %v, %v", err, l.errs)
	}
}
