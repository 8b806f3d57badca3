package mpi

import (
	"errors"
	"fmt"
	"testing"

	"github.com/openimpi/impi/core/comm"
	"github.com/openimpi/impi/core/mpierr"
)

// A callback's own code reaches the caller through everything between them.
func TestOwnCodeTravelsThroughErrors(t *testing.T) {
	class, err1 := AddErrorClass()
	code, err2 := AddErrorCode(class)
	if err := errors.Join(err1, err2, AddErrorString(code, "out of beer")); err != nil {
		t.Fatal(err)
	}
	c := (*Comm)(layout{}.start(t)[0].Comms.World)
	key := keyOf(t, nil, func(*Comm, Keyval, any, any) error { return NewError(code) }, nil)
	if err := c.SetAttr(key, 1); err != nil {
		t.Fatal(err)
	}
	err := c.DeleteAttr(key)
	var e *Error
	if ErrorClass(err) != class || ErrorCode(err) != code || !errors.As(err, &e) || e.Text != "out of beer" {
		t.Errorf("got %v of class %v", err, ErrorClass(err))
	}
	if got, err := ClassOf(code); got != class || err != nil {
		t.Errorf("class of the code: %v, %v", got, err)
	}
	if text, err := ErrorString(code); text != "out of beer" || err != nil {
		t.Errorf("text of the code: %q, %v", text, err)
	}
	if err := errors.Join(RemoveErrorString(code), RemoveErrorCode(code), RemoveErrorClass(class)); err != nil {
		t.Error(err)
	}
	if ErrorClass(err) != class { // it is what it was when it was made
		t.Errorf("after the removal: %v", ErrorClass(err))
	}
}

func TestErrorCodes(t *testing.T) {
	own := NewError(mpierr.NoMem)
	for _, x := range []struct {
		err         error
		class, code Class
	}{
		{nil, mpierr.Success, mpierr.Success},
		{fmt.Errorf("a: %w", comm.ErrRank), mpierr.Rank, mpierr.Rank},
		{errors.New("anything"), mpierr.Other, mpierr.Other},
		{own, mpierr.NoMem, mpierr.NoMem},
		{fmt.Errorf("%w: %w", comm.ErrRank, own), mpierr.NoMem, mpierr.NoMem},
		{fmt.Errorf("%w: %w", ErrInStatus, own), mpierr.InStatus, mpierr.InStatus},
	} {
		if ErrorClass(x.err) != x.class || ErrorCode(x.err) != x.code {
			t.Errorf("%v: class %v, code %v", x.err, ErrorClass(x.err), ErrorCode(x.err))
		}
	}
}

func TestFaultsOfCodes(t *testing.T) {
	p := layout{}.start(t)[0]
	program(t, p)
	l := newListener(t).on(t, (*Comm)(p.Comms.World))
	for what, call := range map[string]func() error{
		"text for a class of MPI": func() error { return AddErrorString(mpierr.Rank, "x") }, "code of no class": func() error { return second(AddErrorCode(1 << 30)) },
		"removal of a class of MPI": func() error { return RemoveErrorClass(mpierr.Rank) }, "removal of no code": func() error { return RemoveErrorCode(1 << 30) },
		"no text to remove": func() error { return RemoveErrorString(1 << 30) }, "text of nothing": func() error { return second(ErrorString(1 << 30)) },
		"class of nothing": func() error { return second(ClassOf(-1)) },
	} {
		err := call()
		l.heard(t, (*Comm)(p.Comms.World), err)
		if ErrorClass(err) != mpierr.Arg {
			t.Errorf("%s: %v", what, err)
		}
	}
}
