package skips_test

import (
	"strings"
	"testing"

	"github.com/openimpi/impi/internal/skips"
)

// fake keeps the words of a skip.
type fake struct{ said string }

func (*fake) Helper()            {}
func (f *fake) Skip(args ...any) { f.said = args[0].(string) }

// events is what go test -json writes for one test that says words and is skipped.
func events(name, words string) string {
	return `{"Action":"run","Package":"github.com/openimpi/impi/a/b","Test":"` + name + `"}
{"Action":"output","Package":"github.com/openimpi/impi/a/b","Test":"` + name + `","Output":"    x_test.go:12: ` + words + `\n"}
{"Action":"output","Package":"github.com/openimpi/impi/a/b","Test":"` + name + `","Output":"--- SKIP: ` + name + ` (0.00s)\n"}
{"Action":"skip","Package":"github.com/openimpi/impi/a/b","Test":"` + name + `","Elapsed":0}
`
}

// What tests say comes out again, grouped by what is missing, and last.
func TestList(t *testing.T) {
	var fortran, soaks fake
	skips.NotRun(&fortran, "there is\nno gfortran: not in PATH", "apt-get install gfortran")
	skips.Soak(&soaks, "it takes an hour")
	text := "# a/b\nsome compiler's words\n" + events("TestTwo/sub", fortran.said) + events("TestOne", fortran.said) +
		events("TestNo", "the links have no handle") + events("TestHour", soaks.said) +
		`{"Action":"output","Package":"p","Test":"TestGood","Output":"    x_test.go:1: NOT RUN: some: log\n"}
{"Action":"pass","Package":"p","Test":"TestGood"}
{"Action":"skip","Package":"github.com/openimpi/impi/none"}
`
	list, err := skips.Read(strings.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	skips.Print(&out, list)
	const want = `1 test is left for make soak.
1 test does not apply to this machine or to what is tested.
NOT RUN:
  there is no gfortran: not in PATH
    to run it: apt-get install gfortran
      a/b.TestOne
      a/b.TestTwo/sub
`
	if out.String() != want {
		t.Errorf("%s", out.String())
	}
}

func TestNothingIsSkipped(t *testing.T) {
	list, err := skips.Read(strings.NewReader(`{"Action":"pass","Package":"p","Test":"TestGood"}`))
	var out strings.Builder
	skips.Print(&out, list)
	if err != nil || out.String() != "NOT RUN: nothing.\n" {
		t.Errorf("%v\n%s", err, out.String())
	}
	if _, err := skips.Read(strings.NewReader("{\"Action\":")); err == nil {
		t.Error("what is cut is read")
	}
}

// Where nothing should be missing, every skip is a fault that the file does not allow.
func TestAllowed(t *testing.T) {
	allowed, err := skips.ReadAllowed(strings.NewReader("# why\n\na/b\\.TestNo(/.*)?   the links have no handle\n"))
	if err != nil {
		t.Fatal(err)
	}
	list := []skips.Skip{
		{"a/b.TestNo/x", "the links have no handle"}, {"a/b.TestNo", "NOT RUN: x: y"}, {"a/b.TestNot", "the links have no handle"},
		{"a/b.TestHour", "SOAK: long"},
	}
	for soaking, want := range map[bool]int{false: 2, true: 3} {
		if faults := allowed.Faults(list, soaking); len(faults) != want || faults[0] != list[1] || faults[1] != list[2] {
			t.Errorf("soaking %v: %v", soaking, faults)
		}
	}
	for _, bad := range []string{"TestAll", "( x", "x ("} {
		if _, err := skips.ReadAllowed(strings.NewReader(bad)); err == nil || !strings.Contains(err.Error(), "line 1") {
			t.Errorf("%q: %v", bad, err)
		}
	}
}
