package mutant

import (
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/openimpi/impi/internal/mutant"
	"github.com/openimpi/impi/internal/skips"
)

// root is where the files of the list are, seen from here.
const root = "../../.."

// TestFit keeps the list from rotting: each fault has its place in a function of
// the sources as they are, and what comes out is still Go.
func TestFit(t *testing.T) {
	all, err := All()
	if err != nil {
		t.Fatal(err)
	}
	for i := range all {
		if _, err := mutant.InsertMutants(all[i:i+1], readSource); err != nil {
			t.Error(err)
		}
	}
	files, err := mutant.InsertMutants(all, readSource)
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range files {
		if _, err := parser.ParseFile(token.NewFileSet(), name, text, parser.SkipObjectResolution); err != nil {
			t.Error(err)
		}
	}
}

// TestTypes: the sources compile with all faults. What does not compile shows nothing about tests.
func TestTypes(t *testing.T) {
	skips.Program(t, "go")
	all, err := All()
	if err != nil {
		t.Fatal(err)
	}
	dir, err := filepath.Abs(root)
	if err != nil {
		t.Fatal(err)
	}
	if err := mutant.Check(t.Context(), dir, all); err != nil {
		t.Error(err)
	}
}

func readSource(name string) ([]byte, error) {
	return os.ReadFile(filepath.Join(root, filepath.FromSlash(name)))
}

// TestReach wants enough faults, and some in each part of core and in the engine.
func TestReach(t *testing.T) {
	all, err := All()
	if err != nil {
		t.Fatal(err)
	}
	if len(all) < 35 {
		t.Errorf("%d faults are few", len(all))
	}
	for _, dir := range []string{"core/startup", "core/agent", "core/flow", "core/match", "core/message", "core/coll", "core/comm", "core/spawn", "core/names", "core/resume", "core/route", "internal/engine"} {
		n := 0
		for _, m := range all {
			if strings.HasPrefix(m.File, dir+"/") {
				n++
			}
		}
		if n < 3 {
			t.Errorf("%s has %d faults", dir, n)
		}
	}
}
