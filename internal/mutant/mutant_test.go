package mutant

import (
	"bytes"
	"errors"
	"testing"
)

func TestParse(t *testing.T) {
	all, err := Parse("# about\n\n== one: breaks a\nx/y.go\n around\n-out\n+in\n+to\n\n== two: breaks b\nz.go\n-\tgone\n")
	if err != nil {
		t.Fatal(err)
	}
	want := []Mutant{
		{Name: "one", What: "breaks a", File: "x/y.go", Old: "around\nout\n", New: "around\nin\nto\n"},
		{Name: "two", What: "breaks b", File: "z.go", Old: "\tgone\n"},
	}
	if len(all) != len(want) {
		t.Fatalf("%d faults: %v", len(all), all)
	}
	for i := range want {
		if all[i] != want[i] {
			t.Errorf("got %+v, want %+v", all[i], want[i])
		}
	}
}

func TestParseRefuses(t *testing.T) {
	for name, text := range map[string]string{
		"lines before a head": "-a\n",
		"no words":            "== one\nf\n-a\n",
		"the same name":       "== one: a\nf\n-a\n\n== one: b\nf\n-b\n",
		"no file":             "== one: a\n\n-a\n",
		"no change":           "== one: a\nf\n same\n",
		"nothing to change":   "== one: a\nf\n+new\n",
		"no prefix":           "== one: a\nf\n-a\nb\n",
	} {
		if all, err := Parse(text); !errors.Is(err, ErrList) {
			t.Errorf("%s: %v, %v", name, all, err)
		}
	}
}

func TestApply(t *testing.T) {
	m := Mutant{Name: "m", File: "f", Old: "\tb\n", New: "\tB\n\tC\n"}
	got, err := m.Apply([]byte("\ta\n\tb\n\tbb\n\t\tb\n"))
	if want := "\ta\n\tB\n\tC\n\tbb\n\t\tb\n"; err != nil || string(got) != want {
		t.Errorf("got %q, %v, want %q", got, err, want)
	}
	first := []byte("\tb\n\ta\n")
	if got, err := m.Apply(first); err != nil || string(got) != "\tB\n\tC\n\ta\n" {
		t.Errorf("got %q, %v", got, err)
	}
	if !bytes.Equal(first, []byte("\tb\n\ta\n")) {
		t.Error("the source was changed")
	}
	for _, source := range []string{"", "\ta\n", "\tb\n\tb\n", "\ta\n\tb\n\ta\n\tb\n", "\tb\n\tb\n\tb\n"} {
		if got, err := m.Apply([]byte(source)); !errors.Is(err, ErrList) {
			t.Errorf("%q: %q, %v", source, got, err)
		}
	}
}
