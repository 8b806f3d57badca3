package mpi

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/openimpi/impi/core/dynamic"
	"github.com/openimpi/impi/core/mpierr"
	"github.com/openimpi/impi/core/names"
	"github.com/openimpi/impi/internal/engine/proc"
	"github.com/openimpi/impi/internal/wireup"
)

// registry is the node of a proc, and keeps names itself.
type registry struct {
	p     *proc.Process
	table *names.Table
	heard []wireup.OtherWorld
	down  bool // the server for names does not answer
}

// Send answers at once.
func (r *registry) Send(m wireup.Message) error {
	r.heard = append(r.heard, *m.Meeting)
	answer := wireup.Message{Kind: wireup.KindNamed, Meeting: &wireup.OtherWorld{Request: m.Meeting.Request}}
	n, owner := names.Name{Scope: m.Meeting.Info["scope"], Service: m.Meeting.Service}, &names.Owner{}
	var err error
	switch {
	case m.Kind != wireup.KindPublish && m.Kind != wireup.KindUnpublish && m.Kind != wireup.KindLookup:
		answer.Kind = m.Kind
	case r.down:
		answer.Reason, answer.Meeting.Class = "nobody listens", int(mpierr.Other)
	case m.Kind == wireup.KindPublish:
		err = r.table.Publish(1, owner, n, m.Meeting.Port, false)
	case m.Kind == wireup.KindUnpublish:
		err = r.table.Unpublish(owner, n)
	default:
		answer.Meeting.Port, err = r.table.Lookup(n)
	}
	if err != nil {
		answer.Reason, answer.Meeting.Class = err.Error(), int(mpierr.Of(err))
	}
	r.p.Node.HandleMessage(answer, nil)
	return nil
}

func newRegistry(t *testing.T) (*Proc, *registry) {
	t.Helper()
	p := newTestNodes().world(t, "a", 1)[0]
	if err := (*Comm)(p.Comms.World).SetErrhandler(ErrorsReturn); err != nil {
		t.Fatal(err)
	}
	r := &registry{p: p, table: names.NewTable(names.Limits{})}
	r.table.AddPublisher(1)
	p.Node.Control = r
	return &Proc{p}, r
}

func wantClass(t *testing.T, what string, err error, sentinel error, class Class) {
	t.Helper()
	if !errors.Is(err, sentinel) || ErrorClass(err) != class {
		t.Errorf("%s: %v of class %v, want %v of %v", what, err, ErrorClass(err), sentinel, class)
	}
}

// TestNamesOfServices goes through the life of names. A port is any text.
func TestNamesOfServices(t *testing.T) {
	x, r := newRegistry(t)
	long := strings.Repeat("p", dynamic.MaxPortName)
	for range 3 {
		_, err := x.LookupName("heat", nil)
		wantClass(t, "nothing there", err, ErrName, mpierr.Name)
	}
	for service, port := range map[string]string{"heat": "no port\nat all \xff", strings.Repeat("s", MaxServiceName): long, "empty": ""} {
		if err := x.PublishName(service, nil, port); err != nil {
			t.Error(err)
		}
		if got, err := x.LookupName(service, nil); err != nil || got != port {
			t.Errorf("%q: %v", got, err)
		}
	}
	wantClass(t, "again", x.PublishName("heat", nil, "p"), ErrService, mpierr.Service)
	chem := infoOf(t, "scope", "chem", "timeout", "0.5", "another", "key")
	_, err := x.LookupName("heat", chem)
	wantClass(t, "another scope", err, ErrName, mpierr.Name)
	if got := r.heard[len(r.heard)-1]; got.Timeout != time.Second/2 || len(got.Info) != 1 {
		t.Errorf("the node heard %+v", got)
	}
	if err := x.PublishName("heat", chem, "q"); err != nil {
		t.Error(err)
	}
	if err := x.UnpublishName("heat", nil, "whatever"); err != nil {
		t.Error(err)
	}
	wantClass(t, "unpublish again", x.UnpublishName("heat", nil, "p"), ErrService, mpierr.Service)
	if got, err := x.LookupName("heat", chem); err != nil || got != "q" {
		t.Errorf("%q: %v", got, err)
	}
	r.down = true
	_, err = x.LookupName("heat", nil)
	wantClass(t, "no server", err, ErrNames, mpierr.Other)
	if n := len(x.p.Node.Asking); n > 0 {
		t.Errorf("%d requests are left", n)
	}
}

// TestBadNames: none of them reaches the node.
func TestBadNames(t *testing.T) {
	x, r := newRegistry(t)
	freed := infoOf(t)
	if err := freed.Free(); err != nil {
		t.Fatal(err)
	}
	long := strings.Repeat("s", MaxServiceName+1)
	for what, c := range map[string]struct {
		err      error
		sentinel error
		class    Class
	}{
		"publish nothing":           {x.PublishName("", nil, "p"), ErrArg, mpierr.Arg},
		"unpublish a long name":     {x.UnpublishName(long, nil, "p"), ErrArg, mpierr.Arg},
		"look up a zero byte":       {second(x.LookupName("a\x00", nil)), ErrArg, mpierr.Arg},
		"publish a long port":       {x.PublishName("s", nil, strings.Repeat("p", dynamic.MaxPortName+1)), dynamic.ErrPort, mpierr.Port},
		"publish a port with zero":  {x.PublishName("s", nil, "p\x00"), dynamic.ErrPort, mpierr.Port},
		"publish with a freed info": {x.PublishName("s", freed, "p"), ErrInfo, mpierr.Info},
		"timeout that is none":      {second(x.LookupName("s", infoOf(t, "timeout", "soon"))), ErrInfoValue, mpierr.InfoValue},
		"timeout below zero":        {x.UnpublishName("s", infoOf(t, "timeout", "-1"), "p"), ErrInfoValue, mpierr.InfoValue},
		"port with a bad backlog":   {second(x.OpenPort(infoOf(t, "backlog", "0"))), ErrInfoValue, mpierr.InfoValue},
		"port with a bad lifetime":  {second(x.OpenPort(infoOf(t, "lifetime", "NaN"))), ErrInfoValue, mpierr.InfoValue},
	} {
		wantClass(t, what, c.err, c.sentinel, c.class)
	}
	if len(r.heard) > 0 {
		t.Errorf("the node heard %+v", r.heard)
	}
}

// TestNamesOfOneAlone: a program that nobody started has nobody to ask.
func TestNamesOfOneAlone(t *testing.T) {
	x, _ := newRegistry(t)
	x.p.Node.Control = nil
	wantClass(t, "alone", x.PublishName("s", nil, "p"), ErrAlone, mpierr.Other)
}

func TestNamesNeedInit(t *testing.T) {
	for what, err := range map[string]error{
		"PublishName": PublishName("s", nil, "p"), "UnpublishName": UnpublishName("s", nil, "p"), "LookupName": second(LookupName("s", nil)),
		"OpenPort": second(OpenPort(nil)), "ClosePort": ClosePort("p"),
	} {
		wantClass(t, what, err, ErrNotInitialized, mpierr.Other)
	}
}

// TestPortWithALifetime: the node is told how long.
func TestPortWithALifetime(t *testing.T) {
	x, r := newRegistry(t)
	if _, err := x.OpenPort(infoOf(t, "lifetime", "2.5", "backlog", "7")); err != nil {
		t.Fatal(err)
	}
	if len(r.heard) != 1 || r.heard[0].Timeout != 2500*time.Millisecond || r.heard[0].Backlog != 7 {
		t.Errorf("the node heard %+v", r.heard)
	}
}
