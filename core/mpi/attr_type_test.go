package mpi

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/openimpi/impi/core/datatype"
	"github.com/openimpi/impi/core/mpierr"
)

// typeLog is what the callbacks of a key of datatypes were called for.
type typeLog struct {
	key   Keyval
	calls []string
	fail  bool
}

func newTypeLog(t *testing.T) *typeLog {
	t.Helper()
	l := new(typeLog)
	var err error
	l.key, err = CreateTypeKeyval(func(old *Datatype, _ Keyval, _, value any) (any, bool, error) {
		l.calls = append(l.calls, fmt.Sprintf("copy %v", value))
		if l.fail {
			return nil, false, errCallback
		}
		return value, true, nil
	}, func(d *Datatype, _ Keyval, value, _ any) error {
		l.calls = append(l.calls, fmt.Sprintf("delete %v", value))
		if l.fail {
			return errCallback
		}
		return d.Valid() // it is alive meanwhile
	}, nil)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func (l *typeLog) called(t *testing.T, want ...string) {
	t.Helper()
	if !slices.Equal(l.calls, want) {
		t.Errorf("called %q, want %q", l.calls, want)
	}
	l.calls = nil
}

// has checks the attribute of a datatype; nil: none.
func (l *typeLog) has(d *Datatype, want any) error {
	value, ok, err := TypeAttr(d, l.key)
	if err == nil && (ok != (want != nil) || value != want) {
		err = fmt.Errorf("attribute is %v, %v; want %v", value, ok, want)
	}
	return err
}

func derived(t *testing.T) *Datatype {
	t.Helper()
	d, err := datatype.Contiguous(3, datatype.Basic(datatype.Byte))
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func TestTypeAttributes(t *testing.T) {
	l, d := newTypeLog(t), derived(t)
	if err := first(l.has(d, nil), TypeSetAttr(d, l.key, 1), l.has(d, 1), TypeSetAttr(d, l.key, 2), l.has(d, 2)); err != nil {
		t.Error(err)
	}
	l.called(t, "delete 1")
	if err := first(TypeDeleteAttr(d, l.key), l.has(d, nil), TypeDeleteAttr(d, l.key)); err != nil {
		t.Error(err)
	}
	l.called(t, "delete 2")
	named := datatype.Basic(datatype.Byte)
	if err := first(TypeSetAttr(named, l.key, 3), l.has(named, 3), l.has(d, nil), TypeDeleteAttr(named, l.key)); err != nil {
		t.Errorf("of a named type: %v", err)
	}
}

func TestTypeDupCopiesAttributes(t *testing.T) {
	l, d := newTypeLog(t), derived(t)
	if err := TypeSetAttr(d, l.key, 1); err != nil {
		t.Fatal(err)
	}
	e, err := TypeDup(d)
	if err != nil {
		t.Fatal(err)
	}
	l.called(t, "copy 1")
	if err := first(l.has(e, 1), TypeSetAttr(e, l.key, 2), l.has(d, 1), TypeFree(e)); err != nil {
		t.Error(err)
	}
	l.called(t, "delete 1", "delete 2")
	l.fail = true
	if e, err := TypeDup(d); e != nil || !errors.Is(err, errCallback) || l.has(d, 1) != nil {
		t.Errorf("a callback that fails: %v, %v", e, err)
	}
}

func TestTypeFreeDeletesAttributes(t *testing.T) {
	l, d := newTypeLog(t), derived(t)
	if err := TypeSetAttr(d, l.key, 1); err != nil {
		t.Fatal(err)
	}
	l.fail = true
	if err := TypeFree(d); !errors.Is(err, errCallback) || l.has(d, 1) != nil {
		t.Errorf("a callback that fails: %v", err)
	}
	l.fail = false
	if err := TypeFree(d); err != nil {
		t.Error(err)
	}
	l.called(t, "delete 1", "delete 1")
	for what, err := range map[string]error{
		"free": TypeFree(d), "set": TypeSetAttr(d, l.key, 1), "get": l.has(d, nil), "delete": TypeDeleteAttr(d, l.key), "dup": second(TypeDup(d)),
		"free of none": TypeFree(nil), "get of none": l.has(nil, nil),
	} {
		if ErrorClass(err) != mpierr.Type {
			t.Errorf("%s after it: %v", what, err)
		}
	}
	named := datatype.Basic(datatype.Byte)
	if err := TypeSetAttr(named, l.key, 2); err != nil {
		t.Fatal(err)
	}
	if err := TypeFree(named); ErrorClass(err) != mpierr.Type || l.has(named, 2) != nil {
		t.Errorf("free of a named type: %v", err)
	}
	if err := TypeDeleteAttr(named, l.key); err != nil {
		t.Error(err)
	}
}
