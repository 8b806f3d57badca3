package ntcopy_test

import (
	"bytes"
	"math/rand/v2"
	"testing"

	"github.com/openimpi/impi/plugins/sdk/support/ntcopy"
)

// TestCopy copies all alignments and lengths around those that matter, and nothing beside them.
func TestCopy(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	src := make([]byte, 5*ntcopy.Least)
	for i := range src {
		src[i] = byte(random.Uint32())
	}
	for _, n := range []int{0, 1, 63, 64, ntcopy.Least - 1, ntcopy.Least, ntcopy.Least + 1, ntcopy.Least + 63, ntcopy.Least + 64, 4 * ntcopy.Least} {
		for from := range 67 {
			to := from * 29 % 131
			dst := bytes.Repeat([]byte{0x5a}, 5*ntcopy.Least)
			want := bytes.Clone(dst)
			copy(want[to:to+n], src[from:])
			if got := ntcopy.Copy(dst[to:to+n], src[from:]); got != n || !bytes.Equal(dst, want) {
				t.Fatalf("%d bytes from %d to %d: %d, or something else", n, from, to, got)
			}
		}
	}
	if n := ntcopy.Copy(make([]byte, 2*ntcopy.Least), src[:ntcopy.Least+5]); n != ntcopy.Least+5 {
		t.Errorf("copied %d bytes of a shorter source", n)
	}
}

func TestCopyAllocatesNothing(t *testing.T) {
	dst, src := make([]byte, 3*ntcopy.Least), make([]byte, 3*ntcopy.Least)
	if n := testing.AllocsPerRun(100, func() { ntcopy.Copy(dst, src) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}
