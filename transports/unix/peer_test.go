package unix

import (
	"strings"
	"testing"

	"github.com/openimpi/impi/internal/watchdog"
)

func TestAdmit(t *testing.T) {
	for _, c := range []struct {
		uid, ours int
		ok        bool
	}{
		{1000, 1000, true}, {0, 1000, true}, {0, 0, true}, {1000, 0, false}, {1001, 1000, false}, {65534, 1000, false},
	} {
		err := admit(c.uid, c.ours, 77)
		if (err == nil) != c.ok {
			t.Errorf("user %d to user %d: %v", c.uid, c.ours, err)
		}
		if err != nil && !strings.Contains(err.Error(), "process 77") {
			t.Errorf("%v does not name the process", err)
		}
	}
}

// parsePlace reads what String writes, and a config file can hold it.
func TestPlaceRoundTrip(t *testing.T) {
	for _, p := range []place{
		{path: "/run/impi/a.sock"}, {path: "/a b/%41/ü\n\x7f"}, {abstract: "impi-x"}, {abstract: "a b@/%"},
	} {
		text := p.String()
		if strings.ContainsFunc(text, func(r rune) bool { return r <= ' ' || r > '~' }) {
			t.Errorf("%+v is written %q", p, text)
		}
		if got, err := parsePlace(text); got != p || err != nil {
			t.Errorf("%q is read as %+v, %v; want %+v", text, got, err, p)
		}
	}
}

func FuzzParsePlace(f *testing.F) {
	f.Add("/run/impi/a.sock")
	f.Add("@impi-x")
	f.Add("/%zz/../..//")
	f.Fuzz(func(t *testing.T, text string) {
		defer watchdog.Start()()
		p, err := parsePlace(text)
		if err != nil {
			return
		}
		if again, err := parsePlace(p.String()); err != nil || again != p {
			t.Errorf("%q is %+v, written %q, read as %+v, %v", text, p, p, again, err)
		}
	})
}
