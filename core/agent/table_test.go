package agent

import (
	"testing"

	"github.com/openimpi/impi/core/wire"
)

// TestTable finds each of many identities that differ in little, and nobody else.
func TestTable(t *testing.T) {
	var all []wire.Proc
	for h := range 40 {
		for pid := range 25 {
			p := ident(h, pid)
			if h%2 == 1 {
				p.Host[10], p.Host[11] = 0xff, 0xff
			}
			p.PID <<= h % 33
			all = append(all, p)
		}
	}
	tab := newTable(len(all))
	for r, p := range all {
		if _, ok := tab.insert(identityOf(p), wire.WorldRank(r)); !ok {
			t.Fatalf("%v is there already", p)
		}
	}
	var b [wire.HeaderSize]byte
	for r, p := range all {
		wire.Published.PutHeader(b[:], &wire.Packet{Src: p, Dest: p})
		for _, at := range []int{atSrc, atDest} {
			id := readIdentity(b[at:])
			if got := tab.find(id); got != wire.WorldRank(r) || id.proc() != p {
				t.Fatalf("%v: rank %d, want %d", id.proc(), got, r)
			}
		}
		p.PID ^= 1 << 62
		if got := tab.find(identityOf(p)); got != NoRank {
			t.Fatalf("%v is nobody, but found as %d", p, got)
		}
	}
	if r, ok := tab.insert(identityOf(all[7]), 99); ok || r != 7 {
		t.Fatalf("twin: %d %v", r, ok)
	}
}

// TestTableEmpty: a job may have no procs.
func TestTableEmpty(t *testing.T) {
	if r := newTable(0).find(identity{}); r != NoRank {
		t.Fatal(r)
	}
}
