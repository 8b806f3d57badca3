package ending

import (
	"fmt"
	"testing"
)

func TestWithoutMPI(t *testing.T) {
	for _, x := range []struct {
		without []bool
		done    bool
		text    string
	}{
		{[]bool{false}, false, ""},
		{[]bool{false, false, false}, false, ""},
		{[]bool{true}, true, ""},
		{[]bool{true, true}, true, ""},
		{[]bool{true, false, true}, false, "site a: the procs of [0 2] exited with status 0 before they called MPI Init, which others have called"},
		{[]bool{false, true}, false, "site a: the procs of [1] exited with status 0 before they called MPI Init, which others have called"},
	} {
		done, f := WithoutMPI("a", x.without, func(hosts []int) string { return fmt.Sprint(hosts) })
		text := ""
		if f != nil {
			text = f.Text
			if f.Status != 1 || f.Precedence != Decided {
				t.Errorf("%v: status %d, precedence %d", x.without, f.Status, f.Precedence)
			}
		}
		if done != x.done || text != x.text {
			t.Errorf("%v: done %t, failure %q", x.without, done, text)
		}
	}
}
