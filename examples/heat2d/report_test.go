package main

import (
	"errors"
	"slices"
	"strings"
	"testing"
)

func TestProgressOncePerTenth(t *testing.T) {
	var out strings.Builder
	p := progressLine{out: &out, steps: 1000}
	for step := 10; step <= 1000; step += 10 {
		p.show(step, 0.5)
	}
	p.close()
	lines := strings.Split(strings.TrimSuffix(out.String(), "\n"), "\n")
	if len(lines) != 10 {
		t.Fatalf("%d lines:\n%s", len(lines), out.String())
	}
	if lines[2] != "heat2d: step  300 of 1000   30 %  change 5.00e-01" {
		t.Errorf("%q", lines[2])
	}
}

func TestProgressRewritesOnATerminal(t *testing.T) {
	var out strings.Builder
	p := progressLine{out: &out, rewrite: true, steps: 100}
	p.show(1, 0.5)
	p.show(2, 0.5)
	p.close()
	if got := out.String(); strings.Count(got, "\r") != 2 || strings.Count(got, "\n") != 1 || !strings.HasSuffix(got, "\n") {
		t.Errorf("%q", got)
	}
}

func TestFramesAreSpread(t *testing.T) {
	due := func(steps, frames int) (at []int) {
		next := 1
		for step := 1; step <= steps; step++ {
			switch n := frameAt(step, steps, frames); n {
			case 0:
			case next:
				at, next = append(at, step), next+1
			default:
				t.Errorf("%d of %d: frame %d at step %d", frames, steps, n, step)
			}
		}
		return at
	}
	if at := due(100, 3); !slices.Equal(at, []int{25, 50, 75}) {
		t.Errorf("3 of 100 at %v", at)
	}
	if at := due(10, 2); len(at) != 2 {
		t.Errorf("2 of 10 at %v", at)
	}
	if at := due(100, 0); at != nil {
		t.Errorf("none of 100 at %v", at)
	}
}

func TestVerifyFindsAnyDifference(t *testing.T) {
	f, r := testField(8, 8), rules{steps: 30, check: 10}
	result, _ := solveAlone(f, r)
	if err := verify(f, result, r); err != nil {
		t.Fatal(err)
	}
	result.t[9] += 1e-16
	result.t[10] *= 1 + 1e-15
	if err := verify(f, result, r); !errors.Is(err, errDiffers) {
		t.Errorf("got %v", err)
	}
}

func TestFlags(t *testing.T) {
	o, err := parse([]string{"-steps", "7", "-out", "x", "-verify"})
	if err != nil || o.steps != 7 || o.out != "x" || !o.verify || o.check != 100 {
		t.Errorf("%+v, %v", o, err)
	}
	for _, bad := range [][]string{{"-steps", "-1"}, {"-check", "0"}, {"-scale", "0"}, {"-scale", "17"}, {"-frames", "-1"}, {"x.png"}} {
		if _, err := parse(bad); err == nil {
			t.Errorf("%v is taken", bad)
		}
	}
}
