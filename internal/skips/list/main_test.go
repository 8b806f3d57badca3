package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/openimpi/impi/internal/soak"
)

// A skip that the file does not allow is a failure, and only where that is asked for.
func TestStrict(t *testing.T) {
	t.Setenv(soak.Variable, "")
	dir := t.TempDir()
	file := func(name, text string) string {
		name = filepath.Join(dir, name)
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return name
	}
	events := file("events", `{"Action":"output","Package":"p","Test":"TestX","Output":"    x_test.go:1: NOT RUN: no gcc: apt-get install gcc\n"}
{"Action":"skip","Package":"p","Test":"TestX"}
`)
	allows, forbids := file("allows", "p.TestX NOT RUN: no gcc"), file("forbids", "p.TestY NOT RUN: no gcc")
	for _, c := range []struct {
		args   string
		status int
		says   string
	}{
		{events, 0, "    to run it: apt-get install gcc\n      p.TestX\n"},
		{"-strict " + allows + " " + events, 0, "p.TestX"},
		{"-strict " + forbids + " " + events, 1, "FAIL: these tests should have run"},
		{"-strict " + events + " " + events, 1, "line 2"},
		{filepath.Join(dir, "none"), 1, "no such file"},
		{"", 2, "usage"},
	} {
		var out strings.Builder
		if status := run(strings.Fields(c.args), &out, &out); status != c.status || !strings.Contains(out.String(), c.says) {
			t.Errorf("%s: status %d\n%s", c.args, status, out.String())
		}
	}
}
