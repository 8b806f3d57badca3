package quic

import (
	"runtime"
	"testing"
)

func TestHalfOfTheProcessors(t *testing.T) {
	for n, want := range map[int]int{1: 1, 2: 1, 3: 2, 4: 2, 64: 32} {
		if got := half(n); got != want {
			t.Errorf("%d of %d, want %d", got, n, want)
		}
	}
}

func TestOwnProcessHeedsTheOperator(t *testing.T) {
	before := runtime.GOMAXPROCS(5)
	t.Cleanup(func() { runtime.GOMAXPROCS(before) })
	t.Setenv("GOMAXPROCS", "5")
	if New().OwnProcess(); runtime.GOMAXPROCS(0) != 5 {
		t.Errorf("%d processors, the operator wants 5", runtime.GOMAXPROCS(0))
	}
	t.Setenv("GOMAXPROCS", "")
	if New().OwnProcess(); runtime.GOMAXPROCS(0) != 3 {
		t.Errorf("%d processors of 5, want 3", runtime.GOMAXPROCS(0))
	}
}
