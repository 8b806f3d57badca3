package comm

import (
	"testing"

	"pgregory.net/rapid"
)

func TestGroupsTravel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		g := fromInts(drawList(t, "group"))
		b := append(AppendGroup(nil, g), 1, 2, 3)
		got, rest, err := ReadGroup(b, 61)
		if err != nil || got.Compare(g) != Identical || len(rest) != 3 {
			t.Fatalf("%v, %v, %d bytes left; want %v", got, err, len(rest), g.Procs())
		}
		if len(b) > 4+runSize*g.Size()+3 {
			t.Fatalf("%d bytes for %d members", len(b), g.Size())
		}
	})
	if n := len(AppendGroup(nil, NewGroup(0, million))); n > 16 {
		t.Errorf("a million members in a row take %d bytes", n)
	}
}

func TestDamagedGroups(t *testing.T) {
	for name, b := range map[string][]byte{
		"nothing":           {},
		"half a count":      {0, 0, 0},
		"more runs":         {0, 0, 0, 1, 0, 0, 0, 0},
		"endless runs":      {255, 255, 255, 255, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 1},
		"no members":        {0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0},
		"negative number":   {0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 1, 255, 0, 0, 0},
		"too many":          {0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 11},
		"no step":           {0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2},
		"beyond the limit":  {0, 0, 0, 1, 0, 0, 0, 9, 0, 0, 0, 1, 0, 0, 0, 2},
		"below 0":           {0, 0, 0, 1, 0, 0, 0, 1, 255, 255, 255, 255, 0, 0, 0, 3},
		"a negative member": {0, 0, 0, 1, 255, 255, 255, 255, 0, 0, 0, 1, 0, 0, 0, 1},
		"one twice":         {0, 0, 0, 2, 0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0, 2, 0, 0, 0, 2, 0, 0, 0, 1, 0, 0, 0, 1},
	} {
		if g, _, err := ReadGroup(b, 10); err == nil {
			t.Errorf("%s: %v", name, g.Procs())
		} else {
			wrong(t, err, ErrMessage)
		}
	}
}

func FuzzReadGroup(f *testing.F) {
	for _, g := range []*Group{Empty, NewGroup(3, 5), {runs: []run{{first: 9, step: -2, n: 4}}, size: 4}} {
		f.Add(AppendGroup(nil, g))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		g, rest, err := ReadGroup(b, 1000)
		if err != nil {
			return
		}
		again, _, err := ReadGroup(AppendGroup(nil, g), 1000)
		if err != nil || again.Compare(g) != Identical || len(rest) > len(b)-4 {
			t.Fatalf("%v became %v, %v", g.Procs(), again, err)
		}
		for p := range g.All() {
			if p < 0 || p >= 1000 {
				t.Fatalf("member %d", p)
			}
		}
	})
}
