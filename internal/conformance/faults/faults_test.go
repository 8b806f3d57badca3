package faults

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/openimpi/impi/internal/conformance/play"
	"github.com/openimpi/impi/internal/mutant"
	"github.com/openimpi/impi/internal/skips"
)

// TestFit keeps the list from rotting: each fault has its place in a function of the
// sources as they are.
func TestFit(t *testing.T) {
	all := load(t)
	read := func(name string) ([]byte, error) {
		return os.ReadFile(filepath.Join("../../..", filepath.FromSlash(name)))
	}
	for i, m := range Mutants(all) {
		if _, err := mutant.InsertMutants([]mutant.Mutant{m}, read); err != nil {
			t.Error(err)
		}
		if strings.Contains(all[i].What, "[") {
			t.Errorf("%s: its cases cannot be read: %q", m.Name, all[i].What)
		}
	}
}

// TestTypes: the sources compile with all faults. What does not compile shows nothing about tests.
func TestTypes(t *testing.T) {
	skips.Program(t, "go")
	dir, err := filepath.Abs("../../..")
	if err != nil {
		t.Fatal(err)
	}
	if err := mutant.Check(t.Context(), dir, Mutants(load(t))); err != nil {
		t.Error(err)
	}
}

// TestEveryCaseHasAFault wants a fault for each case, whatever its level, and no fault
// for a case that is none.
func TestEveryCaseHasAFault(t *testing.T) {
	named := map[string]bool{}
	for _, f := range load(t) {
		for _, id := range f.Cases {
			named[id] = true
		}
	}
	cases := play.Cases()
	for _, c := range cases {
		if !named[c.ID] {
			t.Errorf("no fault is there to show that %s (%s) can fail: %s", c.ID, c.Level, c.Expect)
		}
		delete(named, c.ID)
	}
	for id := range named {
		t.Errorf("there is no case %s", id)
	}
	if len(cases) < 250 {
		t.Errorf("%d cases are few: are all of them registered?", len(cases))
	}
}

func load(t *testing.T) []Fault {
	t.Helper()
	all, err := All()
	if err != nil {
		t.Fatal(err)
	}
	return all
}
