package link_test

import (
	"bytes"
	"testing"

	"github.com/openimpi/impi/plugins/sdk/link"
)

func slices(texts ...string) (batch [][]byte) {
	for _, s := range texts {
		batch = append(batch, []byte(s))
	}
	return batch
}

func TestAdvanceAndFront(t *testing.T) {
	for _, texts := range [][]string{nil, {""}, {"abc"}, {"ab", "", "cde", ""}, {"", "a", "bc"}} {
		all := bytes.Join(slices(texts...), nil)
		if got := link.Len(slices(texts...)); got != len(all) {
			t.Errorf("Len(%q) is %d", texts, got)
		}
		for n := range len(all) + 1 {
			rest := link.Advance(slices(texts...), n)
			if got := bytes.Join(rest, nil); !bytes.Equal(got, all[n:]) {
				t.Errorf("Advance(%q, %d) leaves %q", texts, n, got)
			}
			if n == len(all) && len(rest) != 0 {
				t.Errorf("Advance(%q, %d) leaves %d empty slices", texts, n, len(rest))
			}
			whole := slices(texts...)
			if got := bytes.Join(link.Front(nil, whole, n), nil); !bytes.Equal(got, all[:n]) {
				t.Errorf("Front(%q, %d) is %q", texts, n, got)
			}
			if got := bytes.Join(whole, nil); !bytes.Equal(got, all) {
				t.Errorf("Front(%q, %d) has changed the batch to %q", texts, n, got)
			}
		}
		if got := bytes.Join(link.Front(nil, slices(texts...), 100), nil); !bytes.Equal(got, all) {
			t.Errorf("Front(%q, 100) is %q", texts, got)
		}
	}
}

func TestAdvanceTooFarPanics(t *testing.T) {
	defer func() {
		if recover() == nil {
			t.Error("more was dropped than there is")
		}
	}()
	link.Advance(slices("ab"), 3)
}
