package script

import (
	"math/rand/v2"
	"testing"
)

// sizes are the jobs that generated programs are for.
var sizes = []struct{ procs, dataLen int }{{1, 1}, {2, 16}, {3, 1024}, {5, 64}, {8, 4096}, {17, 256}}

// programs calls f with many random programs.
func programs(t *testing.T, n int, f func(t *testing.T, seed uint64, p *Program)) {
	t.Helper()
	for seed := range uint64(n) {
		size := sizes[seed%uint64(len(sizes))]
		p := Generate(rand.New(rand.NewPCG(seed, 1)), Options{Procs: size.procs, DataLen: size.dataLen, Steps: 20 + int(seed%7)*25})
		f(t, seed, p)
		if t.Failed() {
			t.Fatalf("seed %d:\n%s", seed, p)
		}
	}
}

func TestGeneratedProgramsAreLegal(t *testing.T) {
	programs(t, 600, func(t *testing.T, seed uint64, p *Program) {
		if err := Check(p); err != nil {
			t.Error(err)
		}
	})
}

func TestRoundTrip(t *testing.T) {
	programs(t, 200, func(t *testing.T, seed uint64, p *Program) {
		text := p.String()
		q, err := Parse(text)
		if err != nil {
			t.Fatal(err)
		}
		if again := q.String(); again != text {
			t.Errorf("read and written again:\n%s", again)
		}
		if err := Check(q); err != nil {
			t.Error(err)
		}
	})
}
