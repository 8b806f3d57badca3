package proto

import (
	"slices"
	"testing"
)

func TestCommon(t *testing.T) {
	for _, c := range []struct {
		list []uint32
		want int
	}{
		{nil, 0}, {[]uint32{Version}, Version}, {[]uint32{Version + 1, Oldest, Version}, Version},
		{[]uint32{Oldest}, Oldest}, {[]uint32{Version + 1, 1 << 31}, 0}, {[]uint32{0}, 0},
	} {
		if got := Common(c.list); got != c.want {
			t.Errorf("%v: %d, want %d", c.list, got, c.want)
		}
	}
}

// The newest version lacks nothing, each older one at least what the next one added.
func TestLacking(t *testing.T) {
	if got := Lacking(Version); len(got) != 0 {
		t.Errorf("version %d lacks %v", Version, got)
	}
	for _, v := range Versions()[:len(Versions())-1] {
		if got := Lacking(v); len(got) <= len(Lacking(v+1)) {
			t.Errorf("version %d lacks %v: what did version %d add?", v, got, v+1)
		}
	}
	if got := Versions(); !slices.Contains(got, Version-1) {
		t.Errorf("versions %v: the one before the newest is not spoken", got)
	}
}
