package config

import (
	"strings"
	"testing"

	"github.com/openimpi/impi/internal/watchdog"
)

// FuzzLoad: loading any file ends with a job, or with faults that have a place in it.
func FuzzLoad(f *testing.F) {
	f.Add(`site "a" { client = 0  embedded_server {}  host { address = "127.0.0.1"  procs = 1 }  program { command = ["./bin/prog"] } }`)
	f.Add(`job { server = "[::1]:80" }` + "\n" + `site "" {}` + "\n" + `transport "tcp" { config { a = [] } }`)
	f.Add(`protocol { datalen = 1e400 ackmark = null }` + "\n" + `log { trace = "${env.PORT}" }`)
	f.Add("site \"a\" {\r\n client = [for x in env : x]\r\n}")
	f.Add(`site "a${env.PORT}${{a="}"}.a}" { client = env.FOUR  procs = "${env.BIG}"  hosts = "127.0.0.[2-5]" } site "${`)
	f.Fuzz(func(t *testing.T, text string) {
		defer watchdog.Start()()
		j, diags := loadText(t, text)
		if (j == nil) != diags.HasErrors() {
			t.Fatalf("job %v with %v", j, diags)
		}
		for _, d := range diags {
			if d.Pos.Line > 1+strings.Count(text, "\n") || d.Pos.Column > len(text)+1 {
				t.Errorf("outside of the file: %v", d)
			}
			_ = d.text(true)
		}
	})
}

func TestSuggestions(t *testing.T) {
	known := []string{"address", "procs", "port", "tcp"}
	for word, want := range map[string]string{
		"adress": "address", "port": "port", "prot": "port", "tpc": "tcp", "Tcp": "tcp",
		"x": "", "furniture": "", "": "",
	} {
		if got := nearest(word, known); got != want {
			t.Errorf("%q: %q", word, got)
		}
	}
}

func TestEveryNameHasAHome(t *testing.T) {
	if got := home("port"); len(got) != 1 || got[0] != "host" {
		t.Errorf("port: %v", got)
	}
	if got := home("host"); len(got) != 2 || got[0] != "" || got[1] != "site" {
		t.Errorf("host: %v", got)
	}
}
