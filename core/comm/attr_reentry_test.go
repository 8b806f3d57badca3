package comm

import (
	"errors"
	"sync"
	"testing"
)

// reentrant gives o a key whose Deleter calls f before it returns.
func reentrant(o *cached, f func(n Keyval, value any)) Keyval {
	o.t.Helper()
	n, err := o.keys.Create(CommFamily, nil, func(_ any, n Keyval, value, _ any) error {
		o.log = append(o.log, "delete "+value.(string))
		f(n, value)
		return nil
	}, nil)
	if err != nil {
		o.t.Fatal(err)
	}
	return n
}

// While a value's Deleter runs, the value is still there, and deleting it does nothing.
func TestDeleterDeletesItself(t *testing.T) {
	o := newCached(t)
	n := reentrant(o, func(n Keyval, value any) {
		o.has(n, value)
		if err := o.keys.Delete(CommFamily, &o.attrs, o, n); err != nil {
			t.Error(err)
		}
		o.has(n, value)
	})
	o.set(n, "a")
	if err := o.keys.Clear(&o.attrs, o); err != nil {
		t.Error(err)
	}
	o.said("delete a")
	o.has(n, nil)
}

func TestDeleterFreesItsKey(t *testing.T) {
	o := newCached(t)
	n := reentrant(o, func(n Keyval, _ any) {
		for range 2 {
			if err := o.keys.Free(CommFamily, n); err != nil {
				t.Error(err)
			}
		}
	})
	o.set(n, "a")
	if err := o.keys.Delete(CommFamily, &o.attrs, o, n); err != nil {
		t.Error(err)
	}
	o.alive(0)
	if err := o.keys.Free(CommFamily, n); !errors.Is(err, ErrKeyval) {
		t.Errorf("afterwards: %v", err)
	}
}

// What a Deleter deletes itself is not deleted a second time.
func TestDeleterDeletesAnother(t *testing.T) {
	o := newCached(t)
	a := o.key()
	b := reentrant(o, func(Keyval, any) {
		if err := o.keys.Delete(CommFamily, &o.attrs, o, a); err != nil {
			t.Error(err)
		}
	})
	o.set(a, "a")
	o.set(b, "b")
	if err := o.keys.Clear(&o.attrs, o); err != nil {
		t.Error(err)
	}
	o.said("delete b", "delete a")
}

func TestCopierDeletesAnother(t *testing.T) {
	o := newCached(t)
	var later Keyval
	n, err := o.keys.Create(CommFamily, func(any, Keyval, any, any) (any, bool, error) {
		return nil, false, o.keys.Delete(CommFamily, &o.attrs, o, later)
	}, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	later = o.key()
	o.set(n, "a")
	o.set(later, "b")
	if _, err := o.keys.Copy(&o.attrs, o); err != nil {
		t.Error(err)
	}
	o.said("delete b")
}

// A Deleter that attaches again is called again, but not for ever.
func TestDeleterAttachesAgain(t *testing.T) {
	o := newCached(t)
	other := o.key()
	left := 2
	n := reentrant(o, func(n Keyval, _ any) {
		if left--; left >= 0 {
			o.set(other, "o")
		}
	})
	o.set(n, "a")
	if err := o.keys.Clear(&o.attrs, o); err != nil {
		t.Error(err)
	}
	o.said("delete a", "delete o")

	o = newCached(t)
	n = reentrant(o, func(n Keyval, _ any) { o.set(n, "again") })
	o.set(n, "a")
	if err := errors.Join(o.keys.Free(CommFamily, n), o.keys.Clear(&o.attrs, o)); err != nil {
		t.Error(err)
	}
	if len(o.attrs.list) != 0 || len(o.log) > 2*rounds {
		t.Errorf("%d are left after %d calls", len(o.attrs.list), len(o.log))
	}
	o.alive(0)
}

func TestSetByItsOwnDeleter(t *testing.T) {
	o := newCached(t)
	first := true
	n := reentrant(o, func(n Keyval, _ any) {
		if first {
			first = false
			o.set(n, "nested")
		}
	})
	o.set(n, "a")
	o.set(n, "b")
	o.said("delete a", "delete nested")
	o.has(n, "b")
	if err := errors.Join(o.keys.Delete(CommFamily, &o.attrs, o, n), o.keys.Free(CommFamily, n)); err != nil {
		t.Error(err)
	}
	o.alive(0)
}

// Goroutines may use one object at the same time (run with -race).
func TestManyGoroutines(t *testing.T) {
	o := newCached(t)
	o.keys.Guard = new(sync.Mutex)
	n, err := o.keys.Create(CommFamily, func(_ any, _ Keyval, _, value any) (any, bool, error) { return value, true, nil },
		func(any, Keyval, any, any) error { return nil }, nil)
	if err != nil {
		t.Fatal(err)
	}
	var all sync.WaitGroup
	for i := range 8 {
		all.Go(func() {
			for range 200 {
				copies, err := o.keys.Copy(&o.attrs, o)
				_, _, get := o.keys.Get(CommFamily, &o.attrs, n)
				if err := errors.Join(err, get, o.keys.Set(CommFamily, &o.attrs, o, n, i), o.keys.Clear(&copies, o), o.keys.Delete(CommFamily, &o.attrs, o, n)); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	all.Wait()
	if err := errors.Join(o.keys.Clear(&o.attrs, o), o.keys.Free(CommFamily, n)); err != nil {
		t.Error(err)
	}
	o.alive(0)
}
