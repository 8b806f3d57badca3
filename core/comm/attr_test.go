package comm

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
)

var errCallback = errors.New("the callback says no")

// cached is an object with attributes, and the log of their callbacks.
type cached struct {
	t     *testing.T
	keys  *Keys
	attrs Attrs
	log   []string
	fail  map[any]bool // values whose Deleter or Copier fails
}

func newCached(t *testing.T) *cached {
	return &cached{t: t, keys: new(Keys), fail: map[any]bool{}}
}

// key makes a key whose callbacks write to the log.
func (o *cached) key() Keyval {
	o.t.Helper()
	n, err := o.keys.Create(CommFamily, func(old any, _ Keyval, extra, value any) (any, bool, error) {
		o.log = append(o.log, fmt.Sprintf("copy %v", value))
		if o.fail[value] {
			return nil, false, errCallback
		}
		return fmt.Sprintf("%v'", value), true, nil
	}, func(_ any, _ Keyval, value, _ any) error {
		o.log = append(o.log, fmt.Sprintf("delete %v", value))
		if o.fail[value] {
			return errCallback
		}
		return nil
	}, nil)
	if err != nil {
		o.t.Fatal(err)
	}
	return n
}

func (o *cached) set(n Keyval, value any) {
	o.t.Helper()
	if err := o.keys.Set(CommFamily, &o.attrs, o, n, value); err != nil {
		o.t.Fatal(err)
	}
}

func (o *cached) has(n Keyval, want any) {
	o.t.Helper()
	value, ok, err := o.keys.Get(CommFamily, &o.attrs, n)
	if err != nil || ok != (want != nil) || value != want {
		o.t.Errorf("key %d has %v, %v, %v; want %v", n, value, ok, err, want)
	}
}

// said compares the log with want, and empties it.
func (o *cached) said(want ...string) {
	o.t.Helper()
	if !slices.Equal(o.log, want) {
		o.t.Errorf("called %q, want %q", o.log, want)
	}
	o.log = nil
}

func (o *cached) alive(keys int) {
	o.t.Helper()
	if got := o.keys.Len(); got != keys {
		o.t.Errorf("%d keys are alive, want %d", got, keys)
	}
}

func TestSetReplacesAfterDeleting(t *testing.T) {
	o := newCached(t)
	n := o.key()
	o.has(n, nil)
	o.set(n, "a")
	o.said()
	o.set(n, "b")
	o.said("delete a")
	o.has(n, "b")
	o.fail["b"] = true
	if err := o.keys.Set(CommFamily, &o.attrs, o, n, "c"); !errors.Is(err, errCallback) {
		t.Errorf("over a value that stays: %v", err)
	}
	o.said("delete b")
	o.has(n, "b")
}

func TestDelete(t *testing.T) {
	o := newCached(t)
	n := o.key()
	if err := o.keys.Delete(CommFamily, &o.attrs, o, n); err != nil {
		t.Errorf("of what is not attached: %v", err)
	}
	o.set(n, "a")
	o.fail["a"] = true
	if err := o.keys.Delete(CommFamily, &o.attrs, o, n); !errors.Is(err, errCallback) {
		t.Errorf("of what stays: %v", err)
	}
	o.has(n, "a")
	o.fail["a"] = false
	if err := o.keys.Delete(CommFamily, &o.attrs, o, n); err != nil {
		t.Error(err)
	}
	o.has(n, nil)
	o.said("delete a", "delete a")
}

func TestWrongKeys(t *testing.T) {
	o := newCached(t)
	typ, err := o.keys.Create(TypeFamily, nil, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	dead := o.key()
	if err := o.keys.Free(CommFamily, dead); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		n    Keyval
		says string
	}{
		{KeyvalInvalid, "MPI_KEYVAL_INVALID"}, {-1, "predefined"}, {501, "predefined"}, {605, "predefined"},
		{dead, "is freed"}, {typ + 400, "never made"}, {typ, "for datatypes, not for communicators"},
	} {
		_, _, get := o.keys.Get(CommFamily, &o.attrs, c.n)
		for what, err := range map[string]error{
			"set": o.keys.Set(CommFamily, &o.attrs, o, c.n, 1), "get": get,
			"delete": o.keys.Delete(CommFamily, &o.attrs, o, c.n), "free": o.keys.Free(CommFamily, c.n),
		} {
			if !errors.Is(err, ErrKeyval) || !strings.Contains(err.Error(), c.says) {
				t.Errorf("%s of %d: %v, want %q", what, c.n, err, c.says)
			}
		}
	}
	o.said()
	o.alive(1)
}

// Keys are as numbers what MPI's ABI allows, and are never used again.
func TestKeyNumbers(t *testing.T) {
	var keys Keys
	seen := map[Keyval]bool{}
	for i := range 300 {
		n, err := keys.Create(Family(i%3), nil, nil, nil)
		if err != nil || n < FirstKeyval || seen[n] {
			t.Fatalf("%d, %v", n, err)
		}
		seen[n] = true
		if i%2 == 0 {
			if err := keys.Free(Family(i%3), n); err != nil {
				t.Fatal(err)
			}
		}
	}
	keys.next = lastKeyval - 3
	if n, err := keys.Create(WinFamily, nil, nil, nil); err != nil || n > lastKeyval {
		t.Errorf("the last: %d, %v", n, err)
	}
	if n, err := keys.Create(CommFamily, nil, nil, nil); !errors.Is(err, ErrKeyvals) || n != KeyvalInvalid {
		t.Errorf("one more: %d, %v", n, err)
	}
}

func TestFreedKeyLivesWithItsAttributes(t *testing.T) {
	o := newCached(t)
	n := o.key()
	o.set(n, "a")
	for range 2 { // the second call has no effect
		if err := o.keys.Free(CommFamily, n); err != nil {
			t.Error(err)
		}
	}
	o.has(n, "a")
	o.set(n, "b")
	copies, err := o.keys.Copy(&o.attrs, o)
	if err != nil {
		t.Fatal(err)
	}
	o.said("delete a", "copy b")
	if err := o.keys.Delete(CommFamily, &o.attrs, o, n); err != nil {
		t.Error(err)
	}
	o.has(n, nil) // the copy keeps the key alive
	o.alive(1)
	if err := o.keys.Clear(&copies, o); err != nil {
		t.Error(err)
	}
	o.said("delete b", "delete b'")
	o.alive(0)
	if _, _, err := o.keys.Get(CommFamily, &o.attrs, n); !errors.Is(err, ErrKeyval) {
		t.Errorf("after the last: %v", err)
	}
}

func TestCopyInOrderOfAttachment(t *testing.T) {
	o := newCached(t)
	a, b, c := o.key(), o.key(), o.key()
	o.set(b, "b")
	o.set(c, "c")
	o.set(a, "a")
	o.set(b, "B") // attached again
	o.said("delete b")
	copies, err := o.keys.Copy(&o.attrs, o)
	if err != nil {
		t.Fatal(err)
	}
	o.said("copy c", "copy a", "copy B")
	d := &cached{t: t, keys: o.keys, attrs: copies}
	d.has(a, "a'")
	d.has(b, "B'")
	o.has(b, "B")
	if err := o.keys.Clear(&d.attrs, d); err != nil {
		t.Error(err)
	}
	o.said("delete B'", "delete a'", "delete c'")
	o.has(a, "a")
}

func TestCopyLeavesOutWhatIsNotKept(t *testing.T) {
	o := newCached(t)
	null, err := o.keys.Create(CommFamily, nil, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	declines, err := o.keys.Create(CommFamily, func(any, Keyval, any, any) (any, bool, error) { return 7, false, nil }, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	o.set(null, 1)
	o.set(declines, 2)
	copies, err := o.keys.Copy(&o.attrs, o)
	if err != nil || len(copies.list) != 0 {
		t.Errorf("%v, %v", copies.list, err)
	}
	for _, n := range []Keyval{null, declines} { // and holds nothing
		if err := errors.Join(o.keys.Free(CommFamily, n), o.keys.Delete(CommFamily, &o.attrs, o, n)); err != nil {
			t.Error(err)
		}
	}
	o.alive(0)
}

func TestCopyThatFails(t *testing.T) {
	o := newCached(t)
	a, b, c := o.key(), o.key(), o.key()
	o.set(a, "a")
	o.set(b, "b")
	o.set(c, "c")
	o.fail["b"] = true
	copies, err := o.keys.Copy(&o.attrs, o)
	if !errors.Is(err, errCallback) {
		t.Errorf("got %v", err)
	}
	o.said("copy a", "copy b")
	o.keys.Drop(&copies, o)
	o.said("delete a'")
	for n, want := range map[Keyval]any{a: "a", b: "b", c: "c"} {
		o.has(n, want)
	}
}

func TestClearLastInFirstOut(t *testing.T) {
	o := newCached(t)
	a, b, c := o.key(), o.key(), o.key()
	o.set(a, "a")
	o.set(b, "b")
	o.set(c, "c")
	o.fail["b"] = true
	if err := o.keys.Clear(&o.attrs, o); !errors.Is(err, errCallback) {
		t.Errorf("got %v", err)
	}
	o.said("delete c", "delete b")
	o.has(a, "a")
	o.has(b, "b")
	o.has(c, nil)
	o.keys.Drop(&o.attrs, o) // whatever the callbacks return
	o.said("delete b", "delete a")
	o.has(b, nil)
}

func TestCallbacksGetWhatTheKeyWasMadeWith(t *testing.T) {
	o := newCached(t)
	extra := new(int)
	var n Keyval
	n, err := o.keys.Create(WinFamily, func(old any, key Keyval, e, value any) (any, bool, error) {
		if old != any(o) || key != n || e != any(extra) || value != 5 {
			t.Errorf("copy of %v, %d, %v, %v", old, key, e, value)
		}
		return 6, true, nil
	}, func(object any, key Keyval, value, e any) error {
		if object != any("another") || key != n || e != any(extra) || value != 6 {
			t.Errorf("delete of %v, %d, %v, %v", object, key, value, e)
		}
		return nil
	}, extra)
	if err != nil {
		t.Fatal(err)
	}
	if err := o.keys.Set(WinFamily, &o.attrs, o, n, 5); err != nil {
		t.Fatal(err)
	}
	copies, err := o.keys.Copy(&o.attrs, o)
	if err != nil {
		t.Fatal(err)
	}
	if err := o.keys.Clear(&copies, "another"); err != nil {
		t.Error(err)
	}
}
