package names

import (
	"strings"
	"testing"
)

func TestHome(t *testing.T) {
	own, shared := DefaultScope{}, DefaultScope{Shared: true, Scope: "chem"}
	for _, c := range []struct {
		h      DefaultScope
		scope  string
		given  bool
		shared bool
		at     string
		err    error
	}{
		{h: own},
		{h: own, scope: "x", given: true, at: "x"},
		{h: own, scope: ScopeOfJob, given: true},
		{h: shared, shared: true, at: "chem"},
		{h: shared, given: true, shared: true},
		{h: shared, scope: "x", given: true, shared: true, at: "x"},
		{h: shared, scope: ScopeOfJob, given: true},
		{h: shared, scope: strings.Repeat("x", MaxScope+1), given: true, err: ErrScope},
	} {
		got, at, err := c.h.ScopeOf(c.scope, c.given)
		wants(t, c.scope, err, c.err)
		if got != c.shared || at != c.at {
			t.Errorf("%+v, scope %q, %v: shared %v, scope %q", c.h, c.scope, c.given, got, at)
		}
	}
}
