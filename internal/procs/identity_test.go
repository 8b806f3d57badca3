package procs

import "testing"

// TestIdentities: the procs that a node starts at once have consecutive identities; nobody else has
// one of them, be it a proc of another node or namespace or one that is named by its process ID.
func TestIdentities(t *testing.T) {
	const pidLimit = 1 << 22
	seen := map[int64]bool{}
	take := func(x *identities, n int) {
		t.Helper()
		first := x.reserve(n)
		for i := range n {
			id := x.of(first + int64(i))
			if i > 0 && id != x.of(first)+int64(i) {
				t.Errorf("identity %#x of proc %d, after %#x", id, i, x.of(first))
			}
			if seen[id] || id < pidLimit {
				t.Errorf("%#x is another proc's, or may be a process ID", id)
			}
			seen[id] = true
		}
	}
	for _, ns := range []uint64{0, 0xeffffffc, 0xf0000001, 1<<namespaceBits - 1} {
		for _, pid := range []int{1, 2, 300, 65536 + 300, pidLimit - 1} {
			x := newIdentities(pid, ns)
			take(x, 128)
			take(x, 1000) // those of a spawned world
		}
	}
}

// TestIdentitiesOf16Bits: nodes of one machine that were started one after the other differ also in
// the last 16 bits of their procs' identities.
func TestIdentitiesOf16Bits(t *testing.T) {
	seen := map[uint16]bool{}
	for pid := 70_000; pid < 70_016; pid++ {
		x := newIdentities(pid, 1)
		first := x.reserve(256)
		for i := range int64(256) {
			low := uint16(x.of(first + i))
			if seen[low] {
				t.Fatalf("process %d: %#x is another proc's", pid, low)
			}
			seen[low] = true
		}
	}
}

// TestIdentitiesBeginAnew: after a million procs numbers are used again, and the rest of an
// identity stays.
func TestIdentitiesBeginAnew(t *testing.T) {
	x := newIdentities(77, 5)
	first := x.of(x.reserve(1))
	x.next.Store(1<<numberBits - 1)
	last, anew := x.of(x.reserve(1)), x.of(x.reserve(1))
	if last>>numberBits != first>>numberBits || anew>>numberBits != first>>numberBits || anew&(1<<numberBits-1) != 0 || anew < 0 {
		t.Errorf("%#x, %#x after %#x", last, anew, first)
	}
}
