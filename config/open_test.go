package config

import (
	"os"
	"strings"
	"testing"
)

// TestOpen: what a report may show of a job file.
func TestOpen(t *testing.T) {
	src := `# password hunter1
job {
  embedded_server { listen = "127.0.0.1:0" } // hunter2
}
program {
  command = ["./heat", "--password=hunter3"] /* hunter4 */
  env = { "TOKEN" = "hunter5", OTHER = "hunter6" }
}
transport "ucx" {
  plugin = "./ucx"
  config {
    server = "user:hunter7@host"
    pin    = 4711
    nested = { path = ["hunter8"] }
  }
}
auth "key" { env = "hunter9" }
unheard_of = <<EOT
hunter10
EOT
site "alpha" {
  client = 0
  hosts  = ["10.0.0.1"]
}
`
	got := (&Job{source: splitLines([]byte(src))}).Open()
	if strings.Contains(got, "hunter") || strings.Contains(got, "4711") {
		t.Errorf("secrets in\n%s", got)
	}
	for _, want := range []string{`listen = "127.0.0.1:0"`, `command = ["./heat", "…"]`, `"TOKEN" = "…"`, `transport "ucx"`, `plugin = "./ucx"`, `hosts  = ["10.0.0.1"]`, `site "alpha" {`} {
		if !strings.Contains(got, want) {
			t.Errorf("there is no %s in\n%s", want, got)
		}
	}
}

// TestOpenFull: a file that has everything stays a job file.
func TestOpenFull(t *testing.T) {
	src, err := os.ReadFile("testdata/full.hcl")
	if err != nil {
		t.Fatal(err)
	}
	j := &Job{source: splitLines(src)}
	got := j.Open()
	if strings.Contains(got, "#") || strings.Count(got, "{") != strings.Count(got, "}") || len(got) < 500 {
		t.Errorf("%s", got)
	}
	if again := (&Job{source: strings.Split(got, "\n")}).Open(); again != got {
		t.Errorf("once more:\n%s\nbefore:\n%s", again, got)
	}
}

func TestReportName(t *testing.T) {
	for _, c := range []struct {
		path, job, site string
		sites           int
		want            string
	}{
		{"job-%j.html", "heat", "alpha", 1, "job-heat.html"},
		{"job-%j.html", "heat", "alpha", 2, "job-heat-alpha.html"},
		{"%s/%j", "a/../b\n", "../x", 2, ".._x/a_.._b_"},
		{"100%%", "heat", "alpha", 1, "100%"},
	} {
		if got := (&Report{Path: c.path}).Name(c.job, c.site, c.sites); got != c.want {
			t.Errorf("%+v: %s", c, got)
		}
	}
}
