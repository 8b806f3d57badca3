package comm

import "slices"

// builder makes a group. Members are added in rank order, one by one or in runs; regularly spaced
// ones are combined into runs.
type builder struct {
	runs []run
	size int
}

func (b *builder) add(p Proc) { b.addRun(run{first: int32(p), step: 1, n: 1}) }

func (b *builder) addRange(first Proc, n int) {
	b.addRun(run{first: int32(first), step: 1, n: int32(n)})
}

func (b *builder) addRun(r run) {
	if r.n < 1 {
		return
	}
	if r.n == 1 {
		r.step = 1
	}
	if k := len(b.runs); k > 0 && !b.runs[k-1].extend(&r) {
		b.split()
		if !b.runs[len(b.runs)-1].extend(&r) {
			b.append(r)
		}
	} else if k == 0 {
		b.append(r)
	}
	b.size += int(r.n)
}

// extend adds s to r if it continues it, and reports whether it did. A member that comes
// twice does not continue a run; the caller finds such errors later.
func (r *run) extend(s *run) bool {
	step := int64(r.step)
	if r.n == 1 {
		step = int64(s.first) - int64(r.first)
	}
	if step == 0 || s.n > 1 && int64(s.step) != step || int64(r.first)+int64(r.n)*step != int64(s.first) {
		return false
	}
	r.step, r.n = int32(step), r.n+s.n
	return true
}

// split ends the last run. A run of two members is cut if they are not neighbours: the
// second may begin another run, which makes look-ups faster.
func (b *builder) split() {
	r := &b.runs[len(b.runs)-1]
	if r.n != 2 || abs(int(r.step)) == 1 {
		return
	}
	second := r.at(1)
	r.n, r.step = 1, 1
	b.append(run{first: int32(second), step: 1, n: 1})
}

func (b *builder) append(r run) {
	if k := len(b.runs); k > 0 {
		r.rank = b.runs[k-1].rank + b.runs[k-1].n
	} else {
		r.rank = 0
	}
	b.runs = append(b.runs, r)
}

// group returns the group. The builder must not be used any more.
func (b *builder) group() *Group {
	if b.size == 0 {
		return Empty
	}
	g := &Group{runs: slices.Clip(b.runs), size: b.size}
	if len(g.runs) > scan {
		g.index = newIndex(g.runs)
	}
	return g
}

func newIndex(runs []run) *index {
	x := &index{order: make([]int32, len(runs)), reach: make([]Proc, len(runs))}
	for i := range x.order {
		x.order[i] = int32(i)
	}
	slices.SortFunc(x.order, func(a, b int32) int { return int(runs[a].low()) - int(runs[b].low()) })
	reach := Proc(-1)
	for i, k := range x.order {
		_, high := runs[k].ends()
		reach = max(reach, high)
		x.reach[i] = reach
	}
	return x
}
