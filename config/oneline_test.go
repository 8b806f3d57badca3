package config

import (
	"testing"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"

	"github.com/openimpi/impi/internal/watchdog"
)

func TestStatementsOnOneLine(t *testing.T) {
	for in, want := range map[string]string{
		`a { x = 1  y = 2 }`: "a { \nx = 1  \ny = 2 \n}",
		`a{x=1 y=2}`:         "a{\nx=1 \ny=2\n}",
		`a { b {} }`:         "a { \nb {} \n}",
		`a { b {} c {} }`:    "a { \nb {} \nc {} \n}",
		`a "l" { x = ["p", "q"] y = { z = 1, w = 2 } v = "${env.A}b" u = (1 + 2) }`: "a \"l\" { \nx = [\"p\", \"q\"] \ny = { z = 1, w = 2 } \nv = \"${env.A}b\" \nu = (1 + 2) \n}",
		"a {\n  x = 1\n}\n":                "a {\n  x = 1\n}\n",
		"a { # why\n  x = 1 # so\n}":       "a { # why\n  x = 1 # so\n}",
		"x = 1 y = 2":                      "x = 1 \ny = 2",
		"x = c ? a : b y = d.e z = -f":     "x = c ? a : b \ny = d.e \nz = -f",
		"x = <<E\ny = 1 z = 2\nE\n":        "x = <<E\ny = 1 z = 2\nE\n",
		"a { x = 1 } b { y = 1 }":          "a { \nx = 1 \n} \nb { \ny = 1 \n}",
		"a { x = [ # one\n 1\n ]  y = 2 }": "a { \nx = [ # one\n 1\n ]  \ny = 2 \n}",
		"a { } }":                          "a { } }", // not HCL: as it is
		"a = = { b c }":                    "a = = { b c }",
		"{ x = 1  y = 2 }":                 "{ x = 1  y = 2 }",
	} {
		if got := string(newSource([]byte(in)).text); got != want {
			t.Errorf("%q\n got %q\nwant %q", in, got, want)
		}
	}
}

func TestPlacesAreThoseOfTheFile(t *testing.T) {
	_, diags := loadText(t, "# ä\nsite \"a\" { client = 0  server = 1  host { address = \"127.0.0.1\"  procs = true } }\n")
	want := []Pos{
		{"testdata/job.hcl", 2, 1, 9},   // no program
		{"testdata/job.hcl", 2, 1, 9},   // no auth
		{"testdata/job.hcl", 2, 33, 34}, // server
		{"testdata/job.hcl", 2, 74, 78}, // procs
	}
	if len(diags) != len(want) {
		t.Fatal(diags)
	}
	for i, d := range diags {
		if d.Pos != want[i] {
			t.Errorf("%v is at %+v", d, d.Pos)
		}
	}
}

// What the HCL parser accepts as it is, it accepts with the added line breaks too, and positions
// still are those in the file.
func FuzzOneLine(f *testing.F) {
	f.Add("a { x = 1 }")
	f.Add("a { x = 1  y = 2 }\n")
	f.Add("x = <<-E\n  ${a}\nE\ny = [for k, v in m : k if v]")
	f.Add("x = \"%{ if a }b%{ endif }\" /* c */ y = 1 // d")
	f.Fuzz(func(t *testing.T, text string) {
		defer watchdog.Start()()
		_, diags := hclsyntax.ParseConfig([]byte(text), "", hcl.InitialPos)
		s := newSource([]byte(text))
		file, after := hclsyntax.ParseConfig(s.text, "", hcl.InitialPos)
		if !diags.HasErrors() && after.HasErrors() {
			t.Fatalf("%q became %q: %v", text, s.text, after)
		}
		if file == nil || file.Body == nil {
			return
		}
		for _, a := range attributes(file.Body.(*hclsyntax.Body)) {
			r := a.NameRange
			if got := text[s.offset(r.Start.Byte):s.offset(r.End.Byte)]; got != a.Name {
				t.Errorf("%s is at %q", a.Name, got)
			}
		}
	})
}
