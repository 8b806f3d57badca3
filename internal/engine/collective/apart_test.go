package collective

import "testing"

func TestApart(t *testing.T) {
	b := make([]byte, 10)
	for _, x := range []struct {
		a, b []byte
		want bool
	}{{b[:5], b[5:], true}, {b[5:], b[:5], true}, {b[:6], b[5:], false}, {b[5:], b[:6], false}, {b, b, false}, {b[2:3], b, false}, {b, nil, true}} {
		if got := disjoint(x.a, x.b); got != x.want {
			t.Errorf("%d and %d bytes: %v", len(x.a), len(x.b), got)
		}
	}
}
