package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/openimpi/impi/internal/conformance"
	"github.com/openimpi/impi/plugins/sdk"
)

// The test binary is also the plugin that is judged.
func TestMain(m *testing.M) {
	if sdk.IsPlugin() {
		main()
	}
	os.Exit(m.Run())
}

func conform(args ...string) (status int, out, err string) {
	var o, e bytes.Buffer
	status = run(args, &o, &e)
	return status, o.String(), e.String()
}

func TestStatuses(t *testing.T) {
	for _, c := range []struct {
		args   string
		status int
		words  string
	}{
		{"", 2, "Usage:"},
		{"help", 0, "Usage:"},
		{"transport -h", 0, "Usage:"},
		{"judge", 2, `there is no "judge"`},
		{"transport", 2, "one plugin, not 0"},
		{"transport a b", 2, "one plugin, not 2"},
		{"transport -run [ x", 2, "-run"},
		{"transport -set x y", 2, "NAME=VALUE"},
		{"transport -frobnicate x", 2, "frobnicate"},
		{"transport ./nothing", 3, "no program"},
		{"transport -q -run P-CALL-02 builtin:tcp", 0, "PASS: 1 passed"},
		{"transport builtin:tcp -plane fd -run P-CALL-02|T-SIZE-02 -quick", 0, "ok    T-SIZE-02   fd"},
		{"transport -q -run zebra builtin:tcp", 1, "FAIL: 0 passed"},
		{"transport -q -run P-CALL-02 -set colour=red builtin:tcp", 3, "colour"},
		{"transport -q -run P-CALL-02 -set nodelay=false -set send_buffer=65536 builtin:tcp", 0, "PASS"},
		{"rules", 0, "T-ORDER-03"},
		{"rules", 0, "P-LIFE-04"},
	} {
		status, out, err := conform(strings.Fields(c.args)...)
		if status != c.status || !strings.Contains(out+err, c.words) {
			t.Errorf("%s: status %d, want %d and %q:\n%s%s", c.args, status, c.status, c.words, out, err)
		}
	}
}

func TestReportsForPrograms(t *testing.T) {
	file := filepath.Join(t.TempDir(), "report.xml")
	status, out, table := conform("transport", "-json", "-junit", file, "-run", "P-CALL-0[12]", "builtin:tcp")
	var r conformance.Report
	if err := json.Unmarshal([]byte(out), &r); err != nil || status != 0 || r.Passed != 2 || r.Site.Name != "tcp" {
		t.Errorf("status %d, %v: %s", status, err, out)
	}
	if !strings.Contains(table, "P-CALL-01") {
		t.Errorf("the progress is not on the standard error output: %q", table)
	}
	xml, err := os.ReadFile(file)
	if err != nil || !strings.Contains(string(xml), `<testcase classname="tcp" name="P-CALL-01 introduction"`) {
		t.Errorf("%v: %s", err, xml)
	}
	if status, _, _ := conform("transport", "-q", "-junit", filepath.Join(file, "x"), "-run", "P-CALL-01", "builtin:tcp"); status != statusUsage {
		t.Errorf("a file that cannot be written: status %d", status)
	}
}

func TestValueOf(t *testing.T) {
	for text, want := range map[string]any{"7": 7.0, "1.5": 1.5, "true": true, "f": false, "abc": "abc", "": ""} {
		if got := valueOf(text); got != want {
			t.Errorf("%q is %v", text, got)
		}
	}
	if got, ok := valueOf("[a,b]").([]string); !ok || len(got) != 2 || got[1] != "b" {
		t.Errorf("%v", got)
	}
}
