package rma

import (
	"errors"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// A shared lock admits other shared requests, up to the first exclusive one, which then
// goes before all later ones.
func TestLocksInOrder(t *testing.T) {
	var l Locks
	ask := func(origin int, kind LockType, want bool) {
		t.Helper()
		if got, err := l.Request(origin, kind); got != want || err != nil {
			t.Fatalf("origin %d: granted %v, %v", origin, got, err)
		}
	}
	release := func(origin int, want ...int) {
		t.Helper()
		if got, err := l.Release(origin, nil); !slices.Equal(got, want) || err != nil {
			t.Fatalf("release by %d grants %v, %v; want %v", origin, got, err, want)
		}
	}
	ask(1, LockShared, true)
	ask(2, LockShared, true)
	ask(3, LockExclusive, false)
	ask(4, LockShared, false)
	ask(5, LockShared, false)
	release(1)
	release(2, 3)
	if l.Excludes(3) || !l.Excludes(4) {
		t.Error("3 has it alone")
	}
	release(3, 4, 5)
	if l.Excludes(6) {
		t.Error("a shared lock excludes nobody")
	}
	ask(6, LockExclusive, false)
	release(4)
	release(5, 6)
	release(6)
	if l.Held() || l.Excludes(1) {
		t.Error("nobody has it")
	}
}

func TestLocksMisused(t *testing.T) {
	var l Locks
	if _, err := l.Release(1, nil); !errors.Is(err, ErrSync) {
		t.Error("released by nobody:", err)
	}
	for _, origin := range []int{1, 2} {
		if _, err := l.Request(origin, LockExclusive); err != nil {
			t.Fatal(err)
		}
		if _, err := l.Request(origin, LockShared); !errors.Is(err, ErrSync) {
			t.Error("asked for twice:", err)
		}
	}
	if _, err := l.Release(2, nil); !errors.Is(err, ErrSync) {
		t.Error("released by one that waits:", err)
	}
}

// In every order an exclusive lock has a single holder, all requests are granted in their
// order, and none waits without need.
func TestLocksAnyOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var l Locks
		kinds, order, have := map[int]LockType{}, []int(nil), []int(nil)
		admit := func(granted ...int) {
			for _, origin := range granted {
				if len(order) == 0 || order[0] != origin {
					t.Fatalf("%d is granted before %v", origin, order)
				}
				order, have = order[1:], append(have, origin)
			}
			for _, origin := range have {
				if kinds[origin] == LockExclusive && len(have) > 1 {
					t.Fatalf("%v have the lock of %d", have, origin)
				}
			}
			if len(have) == 0 && len(order) > 0 {
				t.Fatalf("%v wait for nothing", order)
			}
		}
		for next := range rapid.IntRange(1, 40).Draw(t, "steps") {
			if len(have) > 0 && rapid.Bool().Draw(t, "release") {
				i := rapid.IntRange(0, len(have)-1).Draw(t, "who")
				origin := have[i]
				have = slices.Delete(have, i, i+1)
				granted, err := l.Release(origin, nil)
				if err != nil {
					t.Fatal(err)
				}
				admit(granted...)
				continue
			}
			kinds[next] = rapid.SampledFrom([]LockType{LockShared, LockExclusive}).Draw(t, "type")
			order = append(order, next)
			granted, err := l.Request(next, kinds[next])
			if err != nil {
				t.Fatal(err)
			}
			if granted {
				admit(next)
			} else {
				admit()
			}
		}
	})
}

// TestLocksForget: an origin that is lost neither holds the lock nor waits for it.
func TestLocksForget(t *testing.T) {
	var l Locks
	for origin, kind := range []LockType{LockExclusive, LockShared, LockExclusive, LockShared} {
		if _, err := l.Request(origin, kind); err != nil {
			t.Fatal(err)
		}
	}
	if got := l.Forget(2, nil); got != nil {
		t.Errorf("%v have the lock that 0 holds", got)
	}
	if got := l.Forget(0, nil); !slices.Equal(got, []int{1, 3}) {
		t.Errorf("%v have the lock of the lost one", got)
	}
	if got := l.Forget(0, nil); got != nil || l.Excludes(5) {
		t.Errorf("%v", got)
	}
	if _, err := l.Release(2, nil); !errors.Is(err, ErrSync) {
		t.Errorf("who is lost gives it back: %v", err)
	}
}

func TestLockTypes(t *testing.T) {
	for kind, want := range map[LockType]bool{300: false, 301: true, 302: true, 303: false, 0: false} {
		if kind.Valid() != want {
			t.Errorf("type %d: %v", kind, !want)
		}
	}
}
