package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/openimpi/impi/internal/conformance"
	"github.com/openimpi/impi/internal/conformance/protocol"
	"github.com/openimpi/impi/plugins/sdk"
	"github.com/openimpi/impi/plugins/sdk/transports/transporttest"
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
		{"judge", 2, `there is no command "judge"; known here: help, program, protocol, rules, transport`},
		{"transport", 2, "one plugin, not 0"},
		{"transport a b", 2, "one plugin, not 2"},
		{"transport -run [ x", 2, "-run"},
		{"transport -set x y", 2, "NAME=VALUE"},
		{"transport -run T -badge b.svg x", 2, "a badge is of all rules"},
		{"transport -frobnicate x", 2, "frobnicate"},
		{"transport ./nothing", 3, "no program"},
		{"transport -q -run P-CALL-02 builtin:tcp", 0, "PASS: 1 passed"},
		{"transport builtin:tcp -plane fd -run P-CALL-02|T-SIZE-02 -quick", 0, "ok    T-SIZE-02   fd"},
		{"transport -q -unconfined -run P-CALL-02 builtin:tcp", 0, "confine = false"},
		{"transport -q -unconfined -json -run P-CALL-02 builtin:tcp", 0, `"unconfined": true`},
		{"transport -q -json -run P-CALL-02 builtin:tcp", 0, `"unconfined": false`},
		{"transport -q -run zebra builtin:tcp", 3, "-run zebra chooses no rule"},
		{"transport -q -run P-CALL-02 -set colour=red builtin:tcp", 3, "colour"},
		{"transport -q -run P-CALL-02 -set nodelay=false -set send_buffer=65536 builtin:tcp", 0, "PASS"},
		{"rules", 0, "T-ORDER-03"},
		{"rules", 0, "P-LIFE-04"},
		{"help protocol", 0, "impi-conform protocol -list"},
		{"protocol -h", 0, "impi-conform protocol -list"},
		{"protocol", 2, "say what to test"},
		{"protocol -iut mpich", 2, "impi or lam"},
		{"protocol -iut impi -client x", 2, "-iut has its own commands"},
		{"protocol -client x", 2, "-program"},
		{"protocol -list a b", 2, "one pattern"},
		{"protocol -list -run a b", 2, "one pattern"},
		{"protocol -list [", 2, "-run"},
		{"protocol -list -level PERHAPS", 2, "MUST or SHOULD"},
		{"protocol -list -data ebcdic", 2, "external32 or native-le"},
		{"protocol -server x zebra", 2, "no case is chosen"},
		{"protocol -iut lam -prefix /nowhere", 3, "mpicc"},
		{"protocol -list AUTH-01", 0, "IMPI-2-AUTH-01"},
		{"protocol -q -patience 200ms -server false AUTH-11", 1, "FAIL: the IUT"},
		{"program", 0, "MPI_Init"},
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

// The page and the file for CI are written; the page does not say where things are kept.
func TestProtocolReports(t *testing.T) {
	dir := t.TempDir()
	junit, page := filepath.Join(dir, "report.xml"), filepath.Join(dir, "page.md")
	status, out, _ := conform("protocol", "-q", "-json", "-junit", junit, "-markdown", page, "-patience", "200ms", "-server", "false", "-prefix", dir, "AUTH-11")
	var r protocol.Report
	if err := json.Unmarshal([]byte(out), &r); err != nil || status != statusFail || r.Failed != 1 || len(r.Results[0].Trace) == 0 {
		t.Errorf("status %d, %v: %s", status, err, out)
	}
	for name, words := range map[string]string{junit: `<testcase classname="the IUT.startup" name="IMPI-2-AUTH-11 MUST"`, page: "`impi-conform protocol -patience 200ms -prefix DIR -server false AUTH-11`"} {
		if text, err := os.ReadFile(name); err != nil || !strings.Contains(string(text), words) {
			t.Errorf("%v: %s", err, text)
		}
	}
	if status, _, _ := conform("protocol", "-q", "-markdown", filepath.Join(page, "x"), "-patience", "200ms", "-server", "false", "AUTH-11"); status != statusNone {
		t.Errorf("a file that cannot be written: status %d", status)
	}
}

// A violated SHOULD alone is a failure to those who want it.
func TestStrict(t *testing.T) {
	only := &protocol.Report{Verdict: transporttest.Pass, Passed: 1, Failed: 1}
	for args, want := range map[string]int{"-iut impi": statusPass, "-iut impi -strict": statusFail} {
		c, r := newTrial()
		_, err := c.Parse(strings.Fields(args))
		if err != nil || r.status(only) != want {
			t.Errorf("%s: %v, not %d", args, err, want)
		}
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

// TestHelpTexts: they tell of all flags, and of none that there is not.
func TestHelpTexts(t *testing.T) {
	for _, fault := range newCommand().Faults() {
		t.Error(fault)
	}
}
