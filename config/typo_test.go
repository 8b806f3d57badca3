package config

import (
	"os"
	"strings"
	"testing"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
)

// typos returns misspellings of name.
func typos(name string) []string {
	if len(name) < 4 {
		return []string{name + "x", strings.ToUpper(name[:1]) + name[1:]}
	}
	return []string{name + "x", name[:1] + name[2:]} // boardx, bard
}

// A misspelt name of an attribute or a block is one fault, which says what was meant, even if
// other parts of the file need what has that name.
func TestOneTypoIsOneFault(t *testing.T) {
	privateKeys(t)
	opt := testOptions()
	opt.Environ = append(opt.Environ, "HOME=/root")
	for _, file := range []string{"testdata/full.hcl", "testdata/one-site.hcl", "testdata/two-sites.hcl"} {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		src := newSource(text)
		parsed, diags := hclsyntax.ParseConfig(src.text, file, hcl.InitialPos)
		if diags.HasErrors() {
			t.Fatal(diags)
		}
		names := 0
		eachName(parsed.Body.(*hclsyntax.Body), fileSpec, func(at hcl.Range, spec *blockSpec) {
			name := string(at.SliceBytes(src.text))
			names++
			for _, typo := range typos(name) {
				wrong := string(src.text[:at.Start.Byte]) + typo + string(src.text[at.End.Byte:])
				_, found := load(&faults{file: file}, []byte(wrong), absolute(mustGetwd(t), "testdata"), opt)
				if len(found) != 1 || !strings.Contains(found[0].Remedy, `did you mean "`+name+`"?`) {
					t.Errorf("%s:%d: %s for %s in %s: %d faults:\n%v", file, at.Start.Line, typo, name, spec.name, len(found), found.Err())
				}
			}
		})
		if names < 10 {
			t.Errorf("%s has %d names", file, names)
		}
	}
}

// A misspelt label that must be one of a few words is one fault too.
func TestOneTypoInALabelIsOneFault(t *testing.T) {
	privateKeys(t)
	opt := testOptions()
	opt.Environ = append(opt.Environ, "HOME=/root")
	text, err := os.ReadFile("testdata/full.hcl")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ from, to, meant string }{
		{`transport "quic" {`, `transport "qiuc" {`, `"quic"`},
		{`transport "tcp" {`, `transport "tpc" {`, `"tcp"`},
		{`route "alpha" {`, `route "alpa" {`, `"alpha"`},
		{`route "lam" {`, `route "lan" {`, `"lam"`},
		{`auth "key" { file = "job.key" } # only`, `auth "kye" { file = "job.key" } # only`, `"key"`},
		{`    auth "none" {}` + "\n", `    auth "nome" {}` + "\n", `"none"`},
		{`["unix", "x", "tcp"]`, `["unix", "x", "tpc"]`, `"tcp"`},
		{`level  = "info"`, `level  = "ifno"`, `"info"`},
	} {
		if !strings.Contains(string(text), c.from) {
			t.Errorf("there is no %s", c.from)
		}
		_, found := load(&faults{file: "testdata/full.hcl"}, []byte(strings.Replace(string(text), c.from, c.to, 1)), absolute(mustGetwd(t), "testdata"), opt)
		if len(found) != 1 || !strings.Contains(found[0].Remedy, "did you mean "+c.meant) {
			t.Errorf("%s: %d faults\n%v", c.to, len(found), found.Err())
		}
	}
}

// eachName calls f for each name of an attribute or a block in a file, with the block that it is
// in, except inside blocks whose content config does not know.
func eachName(body *hclsyntax.Body, spec *blockSpec, f func(hcl.Range, *blockSpec)) {
	if spec.open {
		return
	}
	for _, a := range attributes(body) {
		f(a.NameRange, spec)
	}
	for _, in := range body.Blocks {
		f(in.TypeRange, spec)
		eachName(in.Body, spec.block(in.Type), f)
	}
}

func mustGetwd(t *testing.T) string {
	t.Helper()
	dir, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	return dir
}
