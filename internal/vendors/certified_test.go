package vendors

import (
	"encoding/xml"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// The complete examples in C are certified as the guide says: the whole run of the command, on all
// their data planes, with a badge for their README and a report for CI.
func TestCIsCertified(t *testing.T) {
	for _, name := range []string{"c", "pretend-c"} {
		t.Run(name, func(t *testing.T) { certified(t, name) })
	}
}

func certified(t *testing.T, name string) {
	c, err := Find(name)
	if err != nil {
		t.Fatal(err)
	}
	path, dir := built(t, c), t.TempDir()
	badge, junit := filepath.Join(dir, "badge.svg"), filepath.Join(dir, "report.xml")
	out, err := exec.Command(filepath.Join(programs(t), "impi-conform"), "transport", "-badge", badge, "-junit", junit, path).CombinedOutput()
	for _, words := range []string{"correct  yes", "robust   yes"} {
		if !strings.Contains(string(out), words) {
			t.Errorf("%q is not in what it says", words)
		}
	}
	if err != nil || t.Failed() {
		t.Fatalf("%v\n%s", err, out)
	}
	svg, err := os.ReadFile(badge)
	if err != nil || !strings.Contains(string(svg), "impi-conform transport: "+name+" ") || strings.Contains(string(svg), "quick") {
		t.Errorf("%v: the badge is %s", err, svg)
	}
	text, err := os.ReadFile(junit)
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range c.Planes {
		if !strings.Contains(string(text), "."+string(p)+`"`) {
			t.Errorf("it was not judged on %s", p)
		}
	}
	var report struct {
		Tests    int `xml:"tests,attr"`
		Failures int `xml:"failures,attr"`
	}
	if err := xml.Unmarshal(text, &report); err != nil || report.Failures > 0 || report.Tests < 60 {
		t.Errorf("%v: of %d rules %d are violated", err, report.Tests, report.Failures)
	}
}
