package netns

import (
	"errors"
	"strings"
	"testing"
)

// TestOutside: what was made is removed, in reverse order and all of it, if the rest cannot be made; and
// a fault in the program is not taken for that.
func TestOutside(t *testing.T) {
	did := ""
	remove, err := Outside(func(t TB) {
		t.Cleanup(func() { did += "first" })
		t.Cleanup(func() { t.Fatalf("it is in use") })
		t.Skip("no right")
	})
	if remove != nil || err == nil || !strings.Contains(err.Error(), "no right") || did != "first" {
		t.Errorf("%v, removed %q", err, did)
	}
	did = ""
	if remove, err = Outside(func(t TB) { t.Cleanup(func() { did += "all" }) }); err != nil || did != "" {
		t.Fatalf("%v, removed %q", err, did)
	}
	if remove(); did != "all" {
		t.Errorf("removed %q", did)
	}
	fault := errors.New("a fault")
	defer func() {
		if r := recover(); r != fault { //nolint:errorlint // it is that very value
			t.Errorf("the program goes on with %v", r)
		}
	}()
	_, _ = Outside(func(TB) { panic(fault) })
	t.Error("a fault was not noticed")
}
