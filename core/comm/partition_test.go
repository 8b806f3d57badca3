package comm

import (
	"cmp"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// TestDivideAgainstLists picks each colour's ranks out and sorts them.
func TestDivideAgainstLists(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		choices := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) Choice {
			return Choice{rapid.Int32Range(-1, 4).Draw(t, "color"), rapid.Int32Range(-2, 2).Draw(t, "key")}
		}), 0, 30).Draw(t, "choices")
		parts, found := Divide(choices), 0
		for color := range int32(5) {
			var want []Proc
			for r, c := range choices {
				if c.Color == color {
					want = append(want, Proc(r))
				}
			}
			slices.SortStableFunc(want, func(a, b Proc) int { return cmp.Compare(choices[a].Key, choices[b].Key) })
			i := slices.IndexFunc(parts, func(p Part) bool { return p.Color == color })
			if (i >= 0) != (len(want) > 0) || i >= 0 && !slices.Equal(parts[i].Group.Procs(), want) {
				t.Fatalf("colour %d of %v: part %d of %v, want %v", color, choices, i, parts, want)
			}
			if i >= 0 {
				found++
			}
		}
		if found != len(parts) {
			t.Fatalf("%d parts of %d colours", len(parts), found)
		}
		for r := range choices {
			mine := parts.PartsOf(NewGroup(Proc(r), 1))
			if len(mine) != min(1, int(choices[r].Color)+1) || len(mine) == 1 && mine[0].Color != choices[r].Color {
				t.Fatalf("rank %d of colour %d is in %v", r, choices[r].Color, mine)
			}
			part, ok := PartOf(choices, r)
			if ok != (len(mine) == 1) || ok && (part.Color != mine[0].Color || !slices.Equal(part.Group.Procs(), mine[0].Group.Procs())) {
				t.Fatalf("rank %d is in %v, %v, and in %v of all parts", r, part, ok, mine)
			}
		}
		b := parts.Append(nil)
		again, err := ReadPartition(b, max(1, len(choices)), 0)
		if err != nil || len(again) != len(parts) || len(b) > PartitionLimit(len(choices), 0) {
			t.Fatalf("%d bytes, at most %d; %d parts, %v", len(b), PartitionLimit(len(choices), 0), len(again), err)
		}
		for i := range again {
			if again[i].Color != parts[i].Color || again[i].Group.Compare(parts[i].Group) != Identical || again[i].Remote != nil {
				t.Fatalf("part %d became %v", i, again[i])
			}
		}
	})
}

// A colour that only one side has makes no communicator.
func TestJoinSides(t *testing.T) {
	left := Divide([]Choice{{7, 0}, {2, 0}, {7, -1}, {-1, 0}, {9, 0}})
	right := Divide([]Choice{{2, 5}, {7, 0}, {8, 0}, {2, 3}})
	joined := left.Join(right)
	if len(joined) != 2 || joined[0].Color != 2 || joined[1].Color != 7 {
		t.Fatalf("joined %v", joined)
	}
	members(t, joined[0].Group, 1)
	members(t, joined[0].Remote, 3, 0)
	members(t, joined[1].Group, 2, 0)
	members(t, joined[1].Remote, 1)
	again, err := ReadPartition(joined.Append(nil), 5, 4)
	if err != nil || len(again) != 2 || again[1].Remote.Compare(joined[1].Remote) != Identical {
		t.Errorf("%v, %v", again, err)
	}
	if _, err := ReadPartition(joined.Append(nil), 5, 3); err == nil {
		t.Error("there are three ranks on the other side, but 3 is one of them")
	}
}

func TestDamagedPartitions(t *testing.T) {
	good := Partition{{3, NewGroup(0, 2), NewGroup(0, 1)}, {4, NewGroup(2, 1), nil}}.Append(nil)
	for n := range good {
		_, err := ReadPartition(good[:n], 3, 1)
		wrong(t, err, ErrMessage)
	}
	_, err := ReadPartition(append(good, 0), 3, 1)
	wrong(t, err, ErrMessage)
	_, err = ReadPartition([]byte{255, 255, 255, 255}, 3, 1)
	wrong(t, err, ErrMessage)
}

func FuzzReadPartition(f *testing.F) {
	f.Add(Partition{{3, NewGroup(0, 2), NewGroup(0, 1)}, {4, NewGroup(2, 1), nil}}.Append(nil))
	f.Add([]byte{0, 0, 0, 0})
	f.Fuzz(func(t *testing.T, b []byte) {
		p, err := ReadPartition(b, 100, 50)
		if err != nil {
			return
		}
		if again, err := ReadPartition(p.Append(nil), 100, 50); err != nil || len(again) != len(p) {
			t.Fatalf("%v became %v, %v", p, again, err)
		}
	})
}

func TestSelect(t *testing.T) {
	g := of(t, 10, 12, 14, 3, 5)
	for _, c := range []struct{ list, want []Proc }{{[]Proc{4, 0, 2}, []Proc{5, 10, 14}}, {nil, nil}} {
		sub, err := g.Select(of(t, c.list...))
		if err != nil {
			t.Fatal(err)
		}
		members(t, sub, c.want...)
	}
	if all, err := g.Select(NewGroup(0, 5)); err != nil || all != g {
		t.Errorf("all of it: %v, %v", all, err)
	}
	_, err := g.Select(NewGroup(3, 3))
	wrong(t, err, ErrRank)
	if !of(t, 3, 12).IsSubset(g) || of(t, 3, 13).IsSubset(g) || !Empty.IsSubset(g) {
		t.Error("what is within what")
	}
}
