package mutant

import (
	"errors"
	"io/fs"
	"strings"
	"testing"
)

const source = `package p

// T has methods.
type T struct{ n int }

// Add adds.
func (t *T) Add(n int, more ...int) (sum int) {
	t.n += n
	return t.n
}

func plain(a, b int) { println(a) }

func nameless(int) {}

var v = 1
`

func woven(list ...Mutant) (map[string][]byte, error) {
	for i := range list {
		list[i].File = "a/p.go"
	}
	return InsertMutants(list, func(name string) ([]byte, error) {
		if name != "a/p.go" {
			return nil, fs.ErrNotExist
		}
		return []byte(source), nil
	})
}

func TestWeave(t *testing.T) {
	files, err := woven(
		Mutant{Name: "less", Old: "\tt.n += n\n", New: "\tt.n -= n\n"},
		Mutant{Name: "other", Old: "func plain(a, b int) { println(a) }\n", New: "func plain(a, b int) { println(b) }\n"},
		Mutant{Name: "none", Old: "\treturn t.n\n", New: "\treturn 0\n"},
	)
	if err != nil {
		t.Fatal(err)
	}
	want := strings.NewReplacer(
		"(sum int) {\n", "(sum int) { if mutantSwitch == 1 { return t.AddMutant1(n, more...) }; if mutantSwitch == 3 { return t.AddMutant3(n, more...) };\n",
		"b int) {", "b int) { if mutantSwitch == 2 { plainMutant2(a, b); return };",
	).Replace(source) + `
//line less:1
func (t *T) AddMutant1(n int, more ...int) (sum int) {
	t.n -= n
	return t.n
}

//line other:1
func plainMutant2(a, b int) { println(b) }

//line none:1
func (t *T) AddMutant3(n int, more ...int) (sum int) {
	t.n += n
	return 0
}
`
	if got := string(files["a/p.go"]); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	for _, part := range []string{"package p\n", `"` + Switch + `"`} {
		if got := string(files["a/mutant_switch.go"]); !strings.Contains(got, part) {
			t.Errorf("got\n%s\nwithout %s", got, part)
		}
	}
	if len(files) != 2 {
		t.Errorf("%d files", len(files))
	}
}

func TestWeaveRefuses(t *testing.T) {
	for name, m := range map[string]Mutant{
		"no place":         {Old: "\tnot there\n"},
		"no Go":            {Old: "\treturn t.n\n", New: "\treturn }\n"},
		"not a function":   {Old: "var v = 1\n", New: "var v = 2\n"},
		"a function more":  {Old: "var v = 1\n", New: "var v = 1\n\nfunc f() {}\n"},
		"a comment":        {Old: "// Add adds.\n", New: "// Add subtracts.\n"},
		"two functions":    {Old: "\treturn t.n\n}\n\nfunc plain(a, b int) { println(a) }\n", New: "\treturn 1\n}\n\nfunc plain(a, b int) { println(b) }\n"},
		"another name":     {Old: "func plain(a, b int) { println(a) }\n", New: "func ornate(a, b int) { println(a) }\n"},
		"without the name": {Old: "func nameless(int) {}\n", New: "func nameless(int) { println() }\n"},
	} {
		m.Name = "m"
		if files, err := woven(m); !errors.Is(err, ErrList) {
			t.Errorf("%s: %d files, %v", name, len(files), err)
		}
	}
	if _, err := InsertMutants([]Mutant{{File: "b.go"}}, func(string) ([]byte, error) { return nil, fs.ErrNotExist }); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("got %v", err)
	}
}
