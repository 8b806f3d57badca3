package node

import (
	"encoding/binary"
	"fmt"
	"math"
	"os"
	"strings"
	"testing"

	"github.com/openimpi/impi/config"
	"github.com/openimpi/impi/core/mpi"
	"github.com/openimpi/impi/internal/links"
)

func init() {
	programs["rounds"] = func() { w := initialize(); rounds(w); finalize() }
	programs["rounds and stays"] = func() { w := initialize(); rounds(w); everybody(w); hang() }
}

// expect ends a proc that has something else than expected.
func expect(ok bool, format string, args ...any) {
	if !ok {
		fmt.Println("wrong:", fmt.Sprintf(format, args...))
		os.Exit(7)
	}
}

// rounds sends doubles from the last rank, on the other site, to ranks 0 and 1, and from 1 to 0, on
// one site, in all ways. What comes from the other site is rounded, if the job's name says so, and
// nothing else is.
func rounds(w *mpi.Comm) {
	last := w.Size() - 1
	rounded := os.Getenv("ROUNDED") == "yes"
	as := func(x float64, from int) float64 {
		if from == last && rounded {
			return float64(float32(x))
		}
		return x
	}
	numbers := make([]float64, 30_000)
	for i := range numbers {
		numbers[i] = math.Sqrt(float64(i))
	}
	special := []float64{math.NaN(), math.Inf(-1), 1e300, -1e300, 1e-300, math.Copysign(0, -1), math.Pi}
	if w.Rank() == 0 {
		for from := 1; from <= last; from++ {
			roundsFrom(w, from, numbers, special, as)
		}
	} else {
		sendRounds(w, numbers, special)
	}
	exactly(w, last)
}

func sendRounds(w *mpi.Comm, numbers, special []float64) {
	check(mpi.Send(w, special, 0, 1))
	check(mpi.Send(w, numbers, 0, 20+w.Rank()))
	check(mpi.Send(w, []complex128{complex(math.Pi, -math.E)}, 0, 3))
	check(mpi.Send(w, []mpi.Pair[float64]{{Value: math.Pi, Index: 7}}, 0, 4))
	check(mpi.Send(w, binary.LittleEndian.AppendUint64(nil, math.Float64bits(math.Pi)), 0, 5))
	column, err := mpi.TypeVector(100, 1, 3, mpi.TypeOf[float64]())
	check(err)
	check(column.Commit())
	check(w.Send(mpi.Typed(numbers, 1, column), 0, 6))
	mixed, err := mpi.TypeStruct([]int64{1, 1}, []int64{0, 8}, []*mpi.Datatype{mpi.TypeOf[int64](), mpi.TypeOf[float64]()})
	check(err)
	check(mixed.Commit())
	check(w.Send(mpi.Typed([]int64{1<<62 + 1, int64(math.Float64bits(math.Pi))}, 1, mixed), 0, 7))
	check(mpi.Send(w, []float32{math.Pi}, 0, 8))
	check(mpi.Send(w, []int64{1<<62 + 1}, 0, 9))
}

func roundsFrom(w *mpi.Comm, from int, numbers, special []float64, of func(x float64, from int) float64) {
	as := func(x float64) float64 { return of(x, from) }
	in := make([]float64, len(numbers)+5)
	st, err := mpi.Probe(w, from, 1)
	check(err)
	n, err := st.Count(mpi.TypeOf[float64]())
	check(err)
	expect(n == len(special), "the probe counts %d of %d doubles", n, len(special))
	st, err = mpi.Recv(w, in, from, 1)
	check(err)
	n, err = st.Count(mpi.TypeOf[float64]())
	check(err)
	expect(n == len(special) && st.Bytes() == int64(8*n), "%d doubles in %d bytes", n, st.Bytes())
	for i, x := range special {
		expect(math.Float64bits(in[i]) == math.Float64bits(as(x)) || math.IsNaN(in[i]) && math.IsNaN(x), "%g has come as %g", x, in[i])
	}
	st, err = mpi.Recv(w, in, mpi.AnySource, 20+from)
	check(err)
	expect(st.Bytes() == int64(8*len(numbers)), "%d bytes of %d doubles", st.Bytes(), len(numbers))
	for i, x := range numbers {
		expect(in[i] == of(x, st.Source), "number %d, %g, has come as %g", i, x, in[i])
	}
	c := make([]complex128, 2)
	st, err = mpi.Recv(w, c, from, 3)
	check(err)
	expect(c[0] == complex(as(math.Pi), as(-math.E)) && st.Bytes() == 16, "%v, %d bytes", c[0], st.Bytes())
	p := make([]mpi.Pair[float64], 1)
	_, err = mpi.Recv(w, p, from, 4)
	check(err)
	expect(p[0].Value == math.Pi && p[0].Index == 7, "a pair is %v", p[0])
	raw := make([]byte, 8)
	_, err = mpi.Recv(w, raw, from, 5)
	check(err)
	expect(binary.LittleEndian.Uint64(raw) == math.Float64bits(math.Pi), "bytes of %g are % x", math.Pi, raw)
	column, err := mpi.TypeVector(100, 1, 3, mpi.TypeOf[float64]())
	check(err)
	check(column.Commit())
	clear(in)
	st, err = w.Recv(mpi.Typed(in, 1, column), from, 6)
	check(err)
	n, err = st.Elements(column)
	check(err)
	expect(n == 100, "a column has %d elements", n)
	for i := range 300 {
		expect(i%3 == 0 && in[i] == as(numbers[i]) || i%3 > 0 && in[i] == 0, "number %d of a column, %g, has come as %g", i, numbers[i], in[i])
	}
	words := make([]int64, 2)
	mixed, err := mpi.TypeStruct([]int64{1, 1}, []int64{0, 8}, []*mpi.Datatype{mpi.TypeOf[int64](), mpi.TypeOf[float64]()})
	check(err)
	check(mixed.Commit())
	_, err = w.Recv(mpi.Typed(words, 1, mixed), from, 7)
	check(err)
	expect(words[0] == 1<<62+1 && math.Float64frombits(uint64(words[1])) == as(math.Pi), "a struct is %v", words)
	f := make([]float32, 1)
	_, err = mpi.Recv(w, f, from, 8)
	check(err)
	expect(f[0] == math.Pi, "a float is %g", f[0])
	_, err = mpi.Recv(w, words[:1], from, 9)
	check(err)
	expect(words[0] == 1<<62+1, "an integer is %d", words[0])
}

// exactly does what never rounds: collective operations, which have to give all procs the same, and
// one-sided ones.
func exactly(w *mpi.Comm, last int) {
	third := []float64{1.0 / 3}
	in := []float64{0}
	if w.Rank() == last {
		in[0] = math.Pi
	}
	check(mpi.Bcast(w, in, last))
	expect(in[0] == math.Pi, "a broadcast of %g gives %g", math.Pi, in[0])
	check(mpi.Allreduce(w, third, in, mpi.Max))
	expect(in[0] == 1.0/3, "the maximum is %g", in[0])
	all := make([]float64, w.Size())
	check(mpi.Allgather(w, third, all))
	for _, x := range all {
		expect(x == 1.0/3, "gathered: %g", x)
	}
	memory := []float64{math.E}
	win, err := mpi.WinCreate(w, memory, nil)
	check(err)
	check(win.Fence(0))
	got := []float64{0}
	check(mpi.Get(win, got, (w.Rank()+1)%w.Size(), 0))
	check(win.Fence(0))
	expect(got[0] == math.E, "a get of %g gives %g", math.E, got[0])
	check(mpi.Put(win, third, (w.Rank()+1)%w.Size(), 0))
	check(win.Fence(0))
	expect(memory[0] == 1.0/3, "a put of a third gives %g", memory[0])
	check(win.Free())
}

// TestDoublesAsFloats: doubles that programs send to the other site are rounded if both sites want
// it, and nothing else is.
func TestDoublesAsFloats(t *testing.T) {
	precision := &config.Precision{Double: config.Float}
	for name, c := range map[string]struct {
		alpha, beta config.Route
		rounded     bool
	}{
		"both":           {config.Route{Precision: precision}, config.Route{Precision: precision}, true},
		"one":            {config.Route{Precision: precision}, config.Route{}, false},
		"nobody":         {config.Route{}, config.Route{}, false},
		"representation": {config.Route{Precision: precision}, config.Route{Precision: precision, Representation: config.External32}, false},
	} {
		for _, how := range []config.Route{
			{Prefer: []string{"tcp"}, Direct: true}, {Prefer: []string{"tcp"}}, {Prefer: []string{"shm", "tcp"}, Direct: true},
			packing(config.Route{Prefer: []string{"tcp"}, Direct: true, Resume: true}),
		} {
			t.Run(fmt.Sprintf("%s by %v %t", name, how.Prefer, how.Direct), func(t *testing.T) {
				job := withTransport(testJob("rounds", 2, 1), "shm", nil)
				for i, r := range []config.Route{c.alpha, c.beta} {
					route := how
					route.Site, route.Precision, route.Representation = "*", r.Precision, r.Representation
					job.Sites[i].Routes = []config.Route{route}
					if c.rounded {
						job.Sites[i].Program.Env["ROUNDED"] = "yes"
					}
				}
				wantNone(t, start(t, job))
			})
		}
	}
}

// TestWhatIsRounded: people are told that doubles are rounded, or why not.
func TestWhatIsRounded(t *testing.T) {
	precision := &config.Precision{Double: config.Float}
	for want, beta := range map[string]*config.Precision{
		"doubles in messages travel as floats": precision,
		"doubles do not travel as floats from rank 0: the route back of site beta (client 1) has no precision block": nil,
	} {
		job := route(testJob("rounds and stays", 1, 1), config.Route{Prefer: []string{"tcp"}, Direct: true, Precision: precision})
		job.Sites[1].Routes = []config.Route{{Site: "*", Prefer: []string{"tcp"}, Direct: true, Precision: beta}}
		for i := range job.Sites {
			job.Sites[i].Program.Env["ROUNDED"] = map[bool]string{true: "yes"}[beta != nil]
		}
		all := start(t, job)
		_, j := survey(t, all, links.Request{})
		var text strings.Builder
		j.Explain(&text, 0, 1)
		if !strings.Contains(text.String(), want) || !strings.Contains(text.String(), "precision double = float") {
			t.Errorf("no %q in\n%s", want, text.String())
		}
	}
}
