package config

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
)

func TestText(t *testing.T) {
	ds := Diagnostics{
		{Error, Pos{"job.hcl", 3, 3, 6}, "no good", "do better", "\t bad", false},
		{Warning, Pos{"job.hcl", 12, 2, 99}, "not nice", "", "äöü = 1", false},
		{Error, Pos{File: "job.hcl"}, "empty", "write something", "", false},
		{Error, Pos{}, "no place", "", "", true},
	}
	var plainText, colored strings.Builder
	if err := ds.WriteText(&plainText, false); err != nil {
		t.Fatal(err)
	}
	want := "job.hcl:3:3: error: no good\n" +
		"    3 | \t bad\n" +
		"      | \t ^^^\n" +
		"      = do better\n" +
		"\n" +
		"job.hcl:12:2: warning: not nice\n" +
		"   12 | äöü = 1\n" +
		"      |  ^^^^^^\n" +
		"\n" +
		"job.hcl: error: empty\n" +
		"  = write something\n" +
		"\n" +
		"error: no place\n"
	if plainText.String() != want {
		t.Errorf("got:\n%s\nwant:\n%s", &plainText, want)
	}
	if err := ds.WriteText(&colored, true); err != nil {
		t.Fatal(err)
	}
	stripped := strings.NewReplacer(red, "", yellow, "", bold, "", plain, "").Replace(colored.String())
	if stripped != want || !strings.Contains(colored.String(), yellow+"warning:"+plain) || !strings.Contains(colored.String(), red+"^^^"+plain) {
		t.Errorf("in colour:\n%s", &colored)
	}
}

func TestJSON(t *testing.T) {
	var out strings.Builder
	ds := Diagnostics{{Error, Pos{"job.hcl", 3, 2, 5}, "no good", "do better", " bad", false}}
	if err := ds.WriteJSON(&out); err != nil {
		t.Fatal(err)
	}
	var got []map[string]any
	if err := json.Unmarshal([]byte(out.String()), &got); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]any{
		"severity": "error", "file": "job.hcl", "line": 3.0, "column": 2.0, "end_column": 5.0,
		"problem": "no good", "remedy": "do better", "source": " bad",
	} {
		if got[0][name] != want {
			t.Errorf("%s is %v", name, got[0][name])
		}
	}
	out.Reset()
	if err := (Diagnostics(nil)).WriteJSON(&out); err != nil || out.String() != "[]\n" {
		t.Errorf("no faults are %q, %v", out.String(), err)
	}
}

// TestManyFaultsAndLongLines: the output has no more faults, and no longer lines, than somebody
// would read.
func TestManyFaultsAndLongLines(t *testing.T) {
	var ds Diagnostics
	for i := range 3000 {
		ds = append(ds, Diagnostic{Severity: Error, Problem: fmt.Sprint("fault ", i)})
	}
	var out strings.Builder
	if err := ds.WriteText(&out, false); err != nil {
		t.Fatal(err)
	}
	if got := out.String(); strings.Count(got, "error: ") != maxShown || !strings.Contains(got, "fault 49\n") || !strings.HasSuffix(got, "\n2950 more; correct these first, or see all with -json\n") {
		t.Errorf("%d bytes, which end with %q", len(got), got[max(0, len(got)-100):])
	}
	long := strings.Repeat("a", 5000) + "FAULT" + strings.Repeat("b", 5000)
	for _, c := range []struct {
		name, source string
		column, end  int
		line, carets string
	}{
		{"in the middle", long, 5001, 5006, "..." + strings.Repeat("a", 60) + "FAULT" + strings.Repeat("b", 95) + "...", strings.Repeat(" ", 63) + "^^^^^"},
		{"at the beginning", "FAULT" + long, 1, 6, "FAULT" + strings.Repeat("a", 155) + "...", "^^^^^"},
		{"at the end", long + "FAULT", 10006, 10011, "..." + strings.Repeat("b", 155) + "FAULT", strings.Repeat(" ", 158) + "^^^^^"},
		{"the whole line", long, 1, 10006, strings.Repeat("a", 160) + "...", strings.Repeat("^", 160)},
		{"behind the line", long, 10006, 10007, "..." + strings.Repeat("b", 160), strings.Repeat(" ", 163) + "^"},
	} {
		text := Diagnostic{Severity: Error, Pos: Pos{"f", 7, c.column, c.end}, Problem: "p", Source: c.source}.text(false)
		if want := "f:7:" + fmt.Sprint(c.column) + ": error: p\n    7 | " + c.line + "\n      | " + c.carets + "\n"; text != want {
			t.Errorf("%s: got\n%swant\n%s", c.name, text, want)
		}
	}
	out.Reset()
	if err := (Diagnostics{{Severity: Error, Source: long}}).WriteJSON(&out); err != nil || out.Len() > 1000 {
		t.Errorf("%d bytes of JSON, %v", out.Len(), err)
	}
}

func TestErr(t *testing.T) {
	ds := Diagnostics{{Severity: Warning, Problem: "w"}}
	if ds.Err() != nil || ds.HasErrors() {
		t.Error("a warning is an error")
	}
	ds = append(ds, Diagnostic{Severity: Error, Pos: Pos{"f", 1, 2, 3}, Problem: "a"}, Diagnostic{Severity: Error, Problem: "b"})
	if got := ds.Err().Error(); got != "f:1:2: a\nb" {
		t.Errorf("%q", got)
	}
}

// A fault that a transport's own schema finds looks like all others.
func TestTransportFault(t *testing.T) {
	j := mustLoad(t, "testdata/one-site.hcl")
	quic, _ := j.Sites[0].Transport("quic")
	tcp, _ := j.Sites[0].Transport("tcp")
	unix, _ := j.Sites[0].Transport("unix")
	for _, c := range []struct {
		name    string
		t       Transport
		setting string
		want    string
	}{
		{"at the setting", quic, "key", "testdata/one-site.hcl:15:37"},
		{"at the config block if the setting is missing", quic, "alpn", "testdata/one-site.hcl:15:3"},
		{"at the transport block without a config block", tcp, "nodelay", "testdata/one-site.hcl:11:1"},
		{"nowhere without a transport block", unix, "dir", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			d := j.TransportFault(c.t, c.setting, "is wrong", "write it right")
			if d.Pos.String() != c.want || d.Remedy != "write it right" ||
				d.Problem != "transport "+quote(c.t.Name)+": "+c.setting+": is wrong" || (d.Source == "") != (c.want == "") {
				t.Errorf("%+v", d)
			}
		})
	}
}

// TestOfMachine: errors that are all about the machine, and are some.
func TestOfMachine(t *testing.T) {
	ofFile, ofMachine, warning := Diagnostic{Severity: Error}, Diagnostic{Severity: Error, Machine: true}, Diagnostic{Severity: Warning}
	for _, c := range []struct {
		ds   Diagnostics
		want bool
	}{{nil, false}, {Diagnostics{warning}, false}, {Diagnostics{ofMachine}, true}, {Diagnostics{warning, ofMachine}, true}, {Diagnostics{ofMachine, ofFile}, false}} {
		if got := c.ds.OfMachine(); got != c.want {
			t.Errorf("%+v: %t", c.ds, got)
		}
	}
}
