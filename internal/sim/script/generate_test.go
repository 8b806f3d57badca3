package script

import (
	"fmt"
	"os"
	"runtime/debug"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// sizes are the jobs that programs are generated for.
var sizes = []struct{ procs, dataLen int }{{1, 1}, {2, 16}, {3, 1024}, {5, 64}, {8, 4096}, {17, 256}}

// example is the program that a seed gives.
func example(seed uint64, o Options) *Program {
	return rapid.Custom(func(t *rapid.T) *Program {
		defer func() {
			switch r := recover(); fmt.Sprintf("%T", r) {
			case "<nil>":
			case "rapid.invalidData":
				panic(r)
			default:
				fmt.Println("seed", seed, r, string(debug.Stack())) // rapid would try another seed
				os.Exit(1)
			}
		}()
		return Generate(t, o)
	}).Example(int(seed))
}

// programs calls f with many random programs.
func programs(t *testing.T, n int, f func(t *testing.T, seed uint64, p *Program)) {
	t.Helper()
	for seed := range uint64(n) {
		size := sizes[seed%uint64(len(sizes))]
		p := example(seed, Options{Procs: size.procs, DataLen: size.dataLen, Steps: 20 + int(seed%7)*25})
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

func TestGenerateIsDetermined(t *testing.T) {
	for seed := range uint64(20) {
		o := Options{Procs: 4, DataLen: 100, Steps: 150}
		p, q := example(seed, o), example(seed, o)
		if p.String() != q.String() {
			t.Fatalf("seed %d gives\n%s\nand then\n%s", seed, p, q)
		}
	}
}

// Everything that a program can contain is generated.
func TestGenerateCovers(t *testing.T) {
	seen := map[string]int{}
	programs(t, 400, func(t *testing.T, seed uint64, p *Program) {
		for _, line := range strings.Split(p.String(), "\n") {
			words := strings.Fields(line)
			for i, w := range words {
				key, value, keyed := strings.Cut(w, "=")
				switch {
				case i == 0:
					seen[w]++
				case keyed && slices.Contains([]string{"mode", "type", "any", "by", "op", "call"}, key):
					seen[key+"="+value]++
				case keyed:
					seen[key]++
				}
			}
		}
		d := sizes[seed%uint64(len(sizes))].dataLen
		for _, m := range p.Messages {
			count(seen, "both wildcards", m.AnySource && m.AnyTag)
			count(seen, "truncated", m.Cap < m.Len)
			count(seen, "room left", m.Cap > m.Len)
			count(seen, "empty", m.Len == 0)
			count(seen, "self", m.From == m.To)
			count(seen, "one packet", m.Len*m.Kind.Size() == d)
			count(seen, "one packet and a byte", m.Len*m.Kind.Size() == d+1)
			count(seen, "several packets", m.Len*m.Kind.Size() > 2*d)
			count(seen, "ready in a communicator", m.Mode == Ready && m.Comm != World)
		}
		for _, s := range p.Steps {
			switch s := s.(type) {
			case Cancel:
				count(seen, "cancelled sends", s.Side == SendSide)
				count(seen, "cancelled receives", s.Side == RecvSide)
			case Split:
				count(seen, "undefined colors", slices.Contains(s.Colors, NoColor))
			case Exchange:
				count(seen, "rings", len(s.Msgs) > 2)
			}
		}
	})
	want := []string{
		"send", "isend", "recv", "irecv", "exchange", "replace", "cancel", "unmatched", "null", "pause", "attach", "detach", "dup", "split",
		"cart", "cartsub", "free", "cap", "sendslot", "recvslot", "gap", "inplace", "anysource", "anytag",
		"both wildcards", "truncated", "room left", "empty", "self", "one packet", "one packet and a byte", "several packets",
		"ready in a communicator", "cancelled sends", "cancelled receives", "undefined colors", "rings",
	}
	want = slices.Concat(want, callNames, howNames, prefixed("mode=", modeNames[1:]), prefixed("by=", byNames[1:]),
		prefixed("op=", opNames[1:]), prefixed("call=", nullNames[1:]))
	for _, k := range kinds {
		want = append(want, "type="+k.name)
	}
	for _, name := range want {
		if seen[name] < 3 {
			t.Errorf("%s comes up %d times", name, seen[name])
		}
	}
}

func count(seen map[string]int, what string, is bool) {
	if is {
		seen[what]++
	}
}

func prefixed(prefix string, names []string) (all []string) {
	for _, n := range names {
		all = append(all, prefix+n)
	}
	return all
}

func TestGenerateOptions(t *testing.T) {
	for seed := range uint64(50) {
		p := example(seed, Options{Procs: 3, DataLen: 8, Steps: 60, MaxBytes: 64, Weights: Weights{Messages: 1, Pauses: 1}})
		for _, m := range p.Messages {
			if m.Len*m.Kind.Size() > 64 {
				t.Errorf("message of %d bytes", m.Len*m.Kind.Size())
			}
		}
		for _, s := range p.Steps {
			switch s.(type) {
			case Start, Exchange, Wait, Pause:
			default:
				t.Errorf("there is %s", lineOf(s))
			}
		}
		if n := len(p.Steps); n > 400 {
			t.Errorf("%d steps", n)
		}
	}
	if p := example(1, Options{Procs: 1}); fmt.Sprint(Check(p)) != "<nil>" || len(p.Steps) < 2 {
		t.Errorf("%s", p)
	}
}
