package play

import (
	"bytes"
	"fmt"
	"math"
	"slices"
	"testing"
)

// seen is the group as number v of m sees it.
func seen(v, m, maxlinear int) *group {
	return &group{job: &job{server: server{terms: terms{maxlinear: int32(maxlinear)}}}, masters: make([]*proc, m), self: v}
}

// Whoever has a child is that child's parent, and all hear from the root.
func TestTreesHangTogether(t *testing.T) {
	for m := 1; m <= 33; m++ {
		for _, maxlinear := range []int{1, 4, 40} {
			for root := range m {
				name := fmt.Sprintf("%d masters, %d linear, root %d", m, maxlinear, root)
				heard, told := 0, 0
				for v := range m {
					g := seen(v, m, maxlinear)
					up, below := g.bcastTree(root)
					if (up < 0) != (v == root) {
						t.Fatalf("%s: number %d hears from %d", name, v, up)
					}
					for _, c := range below {
						if p, _ := seen(c, m, maxlinear).bcastTree(root); p != v {
							t.Fatalf("%s: %d tells %d, which hears from %d", name, v, c, p)
						}
					}
					heard += len(below)
					below, to := g.reduceTree(root)
					for _, c := range below {
						if _, p := seen(c, m, maxlinear).reduceTree(root); p != v {
							t.Fatalf("%s: %d waits for %d, which tells %d", name, v, c, p)
						}
					}
					if (to < 0) != (v == root) {
						t.Fatalf("%s: number %d reduces to %d", name, v, to)
					}
					told += len(below)
				}
				if heard != m-1 || told != m-1 {
					t.Fatalf("%s: %d hear the broadcast, %d tell their values", name, heard, told)
				}
			}
		}
	}
}

// The trees of the text's example, six masters.
func TestTreeOfSix(t *testing.T) {
	if _, below := seen(0, 6, 4).bcastTree(0); !slices.Equal(below, []int{1, 2, 4}) {
		t.Errorf("0 tells %v", below)
	}
	if _, below := seen(1, 6, 4).bcastTree(0); !slices.Equal(below, []int{3, 5}) {
		t.Errorf("1 tells %v", below)
	}
	if below, to := seen(4, 6, 4).reduceTree(0); !slices.Equal(below, []int{5}) || to != 0 {
		t.Errorf("4 hears from %v and tells %d", below, to)
	}
}

func TestKinds(t *testing.T) {
	for name, want := range map[string][]byte{
		"byte": {250, 1}, "short": {0x7f, 0xfa, 0, 1}, "int": {0xff, 0xff, 0xff, 0xfa, 0, 0, 0, 1},
		"long":  {0xff, 0xff, 0xff, 0xfa, 0, 0, 0, 1},
		"llong": {0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xfa, 0, 0, 0, 0, 0, 0, 0, 1},
	} {
		if got := kindOf(name).pattern(-6, 2); !bytes.Equal(got, want) {
			t.Errorf("%s: %x, not %x", name, got, want)
		}
	}
	double := kindOf("double").pattern(1, 1)
	if bits := uint8s(double)[0]; math.Float64frombits(bits) != 1 {
		t.Errorf("double: %x", double)
	}
	if hashOf(nil) != "cbf29ce484222325" || hashOf([]int64{1}) == hashOf([]int64{2}) {
		t.Error("hashes")
	}
}
