package vendors

import (
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/openimpi/impi/internal/conformance"
	"github.com/openimpi/impi/plugins/sdk/transports"
	"github.com/openimpi/impi/plugins/sdk/transports/transporttest"
)

// Plugins in C of the version before, and of the one after as well, keep the rules about versions.
func TestCOfOtherAges(t *testing.T) {
	c, err := Find("c")
	if err != nil {
		t.Fatal(err)
	}
	built(t, c)
	for name, age := range map[string]struct {
		flags, skipped string
		spoken, newest int
	}{
		"older": {"-DIMPI_NEWEST=1", "P-CALL-12 P-START-10", 1, 1},
		"newer": {"-DIMPI_OLDEST=2 -DIMPI_NEWEST=3", "P-START-09", 2, 3},
	} {
		path := filepath.Join(t.TempDir(), "impi-transport-c")
		if err := BuildC(filepath.Join(root, "examples", "plugins", "c"), path, "CFLAGS=-O2 -Werror", "CPPFLAGS="+age.flags); err != nil {
			t.Fatal(err)
		}
		rules := regexp.MustCompile("P-START-02|P-START-05|P-START-07|P-START-09|P-START-10|P-CALL-12|T-ORDER-01")
		r, err := conformance.Run(t.Context(), conformance.Subject{Path: path},
			conformance.Options{Quick: true, Run: rules, Planes: []transports.DataPlane{transports.PlaneRing}})
		if err != nil {
			t.Fatal(err)
		}
		if r.Site.Protocol != age.spoken || r.Site.Newest != age.newest {
			t.Errorf("%s: version %d is spoken, %d its newest", name, r.Site.Protocol, r.Site.Newest)
		}
		for _, x := range r.Results {
			want := transporttest.Pass
			if strings.Contains(age.skipped, x.ID) {
				want = transporttest.Skip
			}
			if x.Verdict != want {
				t.Errorf("%s: %s is %s: %s", name, x.ID, x.Verdict, x.Reason)
			}
		}
	}
}

// inside builds the plugin of testdata/inside.c.
func inside(t *testing.T, flags ...string) (path string) {
	t.Helper()
	c, err := Find("c")
	if err != nil {
		t.Fatal(err)
	}
	built(t, c) // or says what is missing
	dir := t.TempDir()
	path = filepath.Join(dir, "impi-transport-inside")
	library := filepath.Join(root, "plugins", "c")
	for _, args := range [][]string{
		{"make", "-C", library, "OUT=" + dir, "CC=gcc", "CFLAGS=-O2 -Werror"},
		append([]string{"gcc", "-Wall", "-Wextra", "-Werror", "-O2", "-D_GNU_SOURCE", "-I" + library, "-o", path,
			filepath.Join("testdata", "inside.c"), filepath.Join(dir, "libimpi-plugin.a"), "-lnghttp2", "-lssl", "-lcrypto", "-pthread"}, flags...),
	} {
		if out, err := exec.Command(args[0], args[1:]...).CombinedOutput(); err != nil {
			t.Fatalf("%s: %v\n%s", args[0], err, out)
		}
	}
	return path
}

// A signal by which a process in C ends, without a word, is what is told, and not what the rule is
// usually violated by.
func TestCrashInC(t *testing.T) {
	r, err := conformance.Run(t.Context(), conformance.Subject{Path: inside(t, "-DCRASH")}, conformance.Options{Quick: true,
		Run: regexp.MustCompile("P-SPEED-01|T-LOAD-01|T-ORDER-01"), Planes: []transports.DataPlane{transports.PlaneRing}})
	if err != nil {
		t.Fatal(err)
	}
	if r.Failed != 3 || len(r.Results) != 3 {
		t.Errorf("%d of %d have failed", r.Failed, len(r.Results))
	}
	for _, x := range r.Results {
		if !strings.Contains(x.Reason, "signal 11") || !strings.Contains(x.Reason, x.Rule) || !strings.Contains(x.Remedy, "why the process has ended") {
			t.Errorf("%s: %s; %s", x.ID, x.Reason, x.Remedy)
		}
	}
}

// Connections that live in a process in C keep the rules about their bytes and their ends, too.
func TestCInsideTheProcess(t *testing.T) {
	path := inside(t)
	rules := regexp.MustCompile("P-LINK|P-LIFE|P-LEAK|T-CLOSE|T-ORDER|T-PRESS|T-SIZE-01")
	r, err := conformance.Run(t.Context(), conformance.Subject{Path: path},
		conformance.Options{Quick: true, Run: rules, Planes: []transports.DataPlane{transports.PlaneRing}})
	if err != nil {
		t.Fatal(err)
	}
	for _, x := range r.Results {
		if x.Verdict != transporttest.Pass {
			t.Errorf("%s is %s: %s", x.ID, x.Verdict, x.Reason)
		}
	}
}
