package datatype

import (
	"fmt"
	"math"
	"slices"

	"pgregory.net/rapid"
)

// entry is one basic element of a typemap.
type entry struct {
	kind Kind
	disp int64
}

// model is a datatype as the standard defines it: the whole typemap, and marks.
// It knows nothing of how a Type is made.
type model struct {
	entries  []entry
	los, his []int64 // bounds of what has no markers
	lbs, ubs []int64 // of markers
	align    int64
	natural  bool // extent rounded up to the alignment
}

func basicModel(k Kind) model {
	return model{entries: []entry{{k, 0}}, los: []int64{0}, his: []int64{int64(k.Size())}, align: int64(k.Align())}
}

// tail is the bytes from the beginning of an element to behind its last member.
func tail(k Kind) int64 {
	if i := layouts[k].index; i > 0 {
		return int64(i) + 4
	}
	return int64(k.Size())
}

func (m model) bounds() (lb, ub int64) {
	if len(m.los) > 0 {
		lb = slices.Min(m.los)
	}
	if len(m.his) > 0 {
		ub = slices.Max(m.his)
	}
	if len(m.lbs) > 0 {
		lb = slices.Min(m.lbs)
	}
	if len(m.ubs) > 0 {
		ub = slices.Max(m.ubs)
	}
	if len(m.entries) == 0 && len(m.lbs) == 0 && len(m.ubs) > 0 {
		lb = ub
	}
	if len(m.entries) == 0 && len(m.ubs) == 0 && len(m.lbs) > 0 {
		ub = lb
	}
	if m.natural && len(m.ubs) == 0 {
		for (ub-lb)%max(m.align, 1) != 0 {
			ub++
		}
	}
	return lb, ub
}

func (m model) extent() int64 {
	lb, ub := m.bounds()
	return ub - lb
}

func (m model) trueBounds() (lb, ub int64) {
	if len(m.entries) == 0 {
		return 0, 0
	}
	lb, ub = math.MaxInt64, math.MinInt64
	for _, e := range m.entries {
		lb, ub = min(lb, e.disp), max(ub, e.disp+tail(e.kind))
	}
	return lb, ub
}

func (m model) size() (n int64) {
	for _, e := range m.entries {
		n += sizeOf(e.kind)
	}
	return n
}

// sizeOf is MPI's size of a kind: pairs without padding.
func sizeOf(k Kind) int64 {
	if l := layouts[k]; l.index > 0 {
		return int64(l.width) + 4
	}
	return int64(k.Size())
}

func (m model) packed(r Representation) (n int64) {
	for _, e := range m.entries {
		n += int64(r.Size(e.kind))
	}
	return n
}

// put adds n items of c at disp.
func (m *model) put(c model, disp, n int64) {
	for i := range n {
		at := disp + i*c.extent()
		for _, e := range c.entries {
			m.entries = append(m.entries, entry{e.kind, e.disp + at})
		}
		lb, ub := c.bounds()
		if len(c.lbs) > 0 {
			m.lbs = append(m.lbs, lb+at)
		} else if len(c.entries) > 0 {
			m.los = append(m.los, lb+at)
		}
		if len(c.ubs) > 0 {
			m.ubs = append(m.ubs, ub+at)
		} else if len(c.entries) > 0 {
			m.his = append(m.his, ub+at)
		}
		m.align = max(m.align, c.align)
	}
}

func (m model) withBounds(lb, extent int64) model {
	m.lbs, m.ubs = []int64{lb}, []int64{lb + extent}
	m.natural = false
	return m
}

// pack is the stream of count items at origin in mem.
func (m model) pack(r Representation, mem []byte, origin int64, count int) []byte {
	var stream []byte
	for i := range int64(count) {
		for _, e := range m.entries {
			at := origin + i*m.extent() + e.disp
			b := make([]byte, r.Size(e.kind))
			if err := r.Encode(b, mem[at:at+int64(e.kind.Size())], e.kind, 1); err != nil {
				panic(err)
			}
			stream = append(stream, b...)
		}
	}
	return stream
}

// unpack is the inverse; elements of which a part is missing stay as they are.
func (m model) unpack(r Representation, mem []byte, origin int64, count int, stream []byte) {
	for i := range int64(count) {
		for _, e := range m.entries {
			at, size := origin+i*m.extent()+e.disp, r.Size(e.kind)
			if len(stream) < size {
				return
			}
			if err := r.Decode(mem[at:at+int64(e.kind.Size())], stream, e.kind, 1); err != nil {
				panic(err)
			}
			stream = stream[size:]
		}
	}
}

// both is a type and its model.
type both struct {
	t    *Type
	m    model
	text string
}

func must(t *Type, err error) *Type {
	if err != nil {
		panic(err)
	}
	return t
}

var drawnKinds = []Kind{Byte, Int16, Int32, Float64, Complex64, PairInt16, PairFloat64, Char, Long, WChar, Bool, LongDouble, Pair2Float32}

// drawType makes a random type of random types.
func drawType(t *rapid.T, depth int) both {
	if depth == 0 || rapid.IntRange(0, 5).Draw(t, "leaf") == 0 {
		k := rapid.SampledFrom(drawnKinds).Draw(t, "kind")
		return both{Basic(k), basicModel(k), k.String()}
	}
	n := func(name string, most int) int64 { return int64(rapid.IntRange(0, most).Draw(t, name)) }
	disp := func(name string) int64 { return int64(rapid.IntRange(-6, 12).Draw(t, name)) }
	switch which := rapid.IntRange(0, 11).Draw(t, "constructor"); which {
	case 0:
		return drawStruct(t, depth)
	case 1, 2, 3:
		return drawVector(t, which, n("count", 4), n("length", 3), disp("stride"), drawType(t, depth-1))
	case 4, 5, 6, 7:
		return drawIndexed(t, which, drawType(t, depth-1))
	case 8:
		c := drawType(t, depth-1)
		lb, extent := disp("lb"), int64(rapid.IntRange(-20, 60).Draw(t, "extent"))
		return both{must(Resized(c.t, lb, extent)), c.m.withBounds(lb, extent), fmt.Sprintf("resized(%d,%d,%s)", lb, extent, c.text)}
	case 9:
		c := drawType(t, depth-1)
		return both{must(Dup(c.t)), c.m, "dup(" + c.text + ")"}
	default:
		return drawArray(t, drawType(t, depth-1))
	}
}

func drawVector(t *rapid.T, which int, count, length, stride int64, c both) both {
	var m model
	ext := c.m.extent()
	switch which {
	case 1:
		m.put(c.m, 0, count)
		return both{must(Contiguous(count, c.t)), m, fmt.Sprintf("contiguous(%d,%s)", count, c.text)}
	case 2:
		for i := range count {
			m.put(c.m, i*stride*ext, length)
		}
		return both{must(Vector(count, length, stride, c.t)), m, fmt.Sprintf("vector(%d,%d,%d,%s)", count, length, stride, c.text)}
	default:
		stride *= 5
		for i := range count {
			m.put(c.m, i*stride, length)
		}
		return both{must(Hvector(count, length, stride, c.t)), m, fmt.Sprintf("hvector(%d,%d,%d,%s)", count, length, stride, c.text)}
	}
}

func drawIndexed(t *rapid.T, which int, c both) both {
	blocks := rapid.IntRange(0, 5).Draw(t, "blocks")
	lens, disps := make([]int64, blocks), make([]int64, blocks)
	length := int64(rapid.IntRange(0, 3).Draw(t, "length"))
	for i := range lens {
		lens[i] = int64(rapid.IntRange(0, 3).Draw(t, "len"))
		disps[i] = int64(rapid.IntRange(-4, 14).Draw(t, "disp"))
		if which >= 6 {
			lens[i] = length
		}
	}
	var m model
	for i := range lens {
		at := disps[i]
		if which == 4 || which == 6 {
			at *= c.m.extent()
		}
		m.put(c.m, at, lens[i])
	}
	text := fmt.Sprintf("%d:indexed(%v,%v,%s)", which, lens, disps, c.text)
	switch which {
	case 4:
		return both{must(Indexed(lens, disps, c.t)), m, text}
	case 5:
		return both{must(Hindexed(lens, disps, c.t)), m, text}
	case 6:
		return both{must(IndexedBlock(length, disps, c.t)), m, text}
	default:
		return both{must(HindexedBlock(length, disps, c.t)), m, text}
	}
}

func drawStruct(t *rapid.T, depth int) both {
	blocks := rapid.IntRange(0, 4).Draw(t, "members")
	lens, disps, types := make([]int64, blocks), make([]int64, blocks), make([]*Type, blocks)
	m := model{natural: true}
	text := "struct("
	for i := range lens {
		c := drawType(t, depth-1)
		lens[i], disps[i], types[i] = int64(rapid.IntRange(0, 2).Draw(t, "len")), int64(rapid.IntRange(-10, 60).Draw(t, "disp")), c.t
		m.put(c.m, disps[i], lens[i])
		text += fmt.Sprintf("%d@%d %s;", lens[i], disps[i], c.text)
	}
	return both{must(Struct(lens, disps, types)), m, text + ")"}
}

// drawArray makes a subarray or a darray of one to three dimensions.
func drawArray(t *rapid.T, c both) both {
	dims := rapid.IntRange(1, 3).Draw(t, "dims")
	order := rapid.SampledFrom([]Order{OrderC, OrderFortran}).Draw(t, "order")
	sizes := make([]int64, dims)
	for i := range sizes {
		sizes[i] = int64(rapid.IntRange(1, 4).Draw(t, "size"))
	}
	if rapid.Bool().Draw(t, "distributed") {
		return drawDarray(t, c, sizes, order)
	}
	subsizes, starts := make([]int64, dims), make([]int64, dims)
	takes := make([][]int64, dims)
	for i := range sizes {
		subsizes[i] = int64(rapid.IntRange(1, int(sizes[i])).Draw(t, "subsize"))
		starts[i] = int64(rapid.IntRange(0, int(sizes[i]-subsizes[i])).Draw(t, "start"))
		for j := range subsizes[i] {
			takes[i] = append(takes[i], starts[i]+j)
		}
	}
	return both{must(Subarray(sizes, subsizes, starts, order, c.t)), arrayModel(c.m, sizes, takes, order),
		fmt.Sprintf("subarray(%v,%v,%v,%d,%s)", sizes, subsizes, starts, order, c.text)}
}

func drawDarray(t *rapid.T, c both, sizes []int64, order Order) both {
	spreads, procs := make([]Spread, len(sizes)), int64(1)
	for i := range spreads {
		s := Spread{Size: sizes[i], Procs: 1, Arg: DistributeDefault}
		s.How = rapid.SampledFrom([]Distribution{DistributeNone, DistributeBlock, DistributeCyclic}).Draw(t, "how")
		if s.How != DistributeNone {
			s.Procs = int64(rapid.IntRange(1, 3).Draw(t, "procs"))
			if rapid.Bool().Draw(t, "arg") {
				s.Arg = int64(rapid.IntRange(1, 3).Draw(t, "block"))
				if s.How == DistributeBlock {
					s.Arg = max(s.Arg, (s.Size+s.Procs-1)/s.Procs)
				}
			}
		}
		spreads[i] = s
		procs *= s.Procs
	}
	rank := int64(rapid.IntRange(0, int(procs)-1).Draw(t, "rank"))
	takes, left := make([][]int64, len(sizes)), rank
	for i := len(sizes) - 1; i >= 0; i-- {
		takes[i] = owned(spreads[i], left%spreads[i].Procs)
		left /= spreads[i].Procs
	}
	return both{must(Darray(procs, rank, spreads, order, c.t)), arrayModel(c.m, sizes, takes, order),
		fmt.Sprintf("darray(%d of %d,%v,%d,%s)", rank, procs, spreads, order, c.text)}
}

// owned are the indices of a dimension that one coordinate has: index by index.
func owned(s Spread, at int64) (take []int64) {
	for i := range s.Size {
		owner := int64(0)
		switch {
		case s.How == DistributeBlock && s.Arg == DistributeDefault:
			owner = i / ((s.Size + s.Procs - 1) / s.Procs)
		case s.How == DistributeBlock:
			owner = i / s.Arg
		case s.How == DistributeCyclic && s.Arg == DistributeDefault:
			owner = i % s.Procs
		case s.How == DistributeCyclic:
			owner = i / s.Arg % s.Procs
		}
		if owner == at {
			take = append(take, i)
		}
	}
	return take
}

// arrayModel places c at all combinations of the indices taken, the dense
// dimension fastest.
func arrayModel(c model, sizes []int64, takes [][]int64, order Order) model {
	dims := make([]int, len(sizes))
	for i := range dims {
		dims[i] = i
	}
	if order == OrderC {
		slices.Reverse(dims)
	}
	ats, stride := []int64{0}, c.extent()
	for _, dim := range dims {
		var next []int64
		for _, index := range takes[dim] {
			for _, at := range ats {
				next = append(next, at+index*stride)
			}
		}
		ats, stride = next, stride*sizes[dim]
	}
	var m model
	for _, at := range ats {
		m.put(c, at, 1)
	}
	return m.withBounds(0, stride)
}
