package script

import (
	"slices"
	"testing"
)

func TestModelOfCommunicators(t *testing.T) {
	p := legal(t, `procs 6
dup w new=a
split a new=b,c colors=9,2,9,none,2,9 keys=0,5,-1,0,5,0
dup b new=d
cart w new=g dims=2,3 periodic=no,yes
cartsub g new=r0,r1 keep=no,yes
cartsub g new=s0,s1,s2 keep=yes,no
free a
dup c new=e
`)
	c := newComms(p.Procs)
	for _, s := range p.Steps {
		if _, _, err := c.apply(s); err != nil {
			t.Fatal(err)
		}
	}
	for _, w := range []struct {
		name    string
		members []int
		context uint64
	}{
		{World, []int{0, 1, 2, 3, 4, 5}, 0}, {"a", []int{0, 1, 2, 3, 4, 5}, 4},
		{"b", []int{1, 4}, 6}, {"c", []int{2, 0, 5}, 6},
		{"d", []int{1, 4}, 8},
		{"g", []int{0, 1, 2, 3, 4, 5}, 10}, // the members of d have seen more than the others
		{"r0", []int{0, 1, 2}, 12}, {"r1", []int{3, 4, 5}, 12},
		{"s0", []int{0, 3}, 14}, {"s2", []int{2, 5}, 14}, {"e", []int{2, 0, 5}, 16},
	} {
		g := c.byName[w.name]
		if g == nil || !slices.Equal(g.members, w.members) || g.context != w.context {
			t.Errorf("%s is %+v, want %v and %d", w.name, g, w.members, w.context)
		}
	}
	if c.byName["a"].live || !c.byName["b"].live {
		t.Error("freed are the wrong ones")
	}
	g := c.byName["g"].grid // rank 4 is at (1, 1)
	for _, w := range []struct{ rank, dim, disp, want int }{
		{4, 0, 1, -1}, {4, 0, -1, 1}, {4, 1, 1, 5}, {4, 1, 2, 3}, {4, 1, -2, 5}, {3, 1, -1, 5},
	} {
		if got := g.shift(w.rank, w.dim, w.disp); got != w.want {
			t.Errorf("%+v: %d", w, got)
		}
	}
	if d := c.byName["s1"].grid; !slices.Equal(d.dims, []int{2}) || d.periodic[0] {
		t.Errorf("%+v", d)
	}
}
