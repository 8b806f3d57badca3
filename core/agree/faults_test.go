package agree

import (
	_ "embed"
	"os"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/openimpi/impi/internal/mutant"
	"github.com/openimpi/impi/internal/soak"
)

//go:embed testdata/faults.txt
var faults string

// TestFaultsFit wants that each fault of testdata/faults.txt can be put in.
func TestFaultsFit(t *testing.T) {
	list, err := mutant.Parse(faults)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := mutant.InsertMutants(list, func(name string) ([]byte, error) { return os.ReadFile(filepath.Base(name)) }); err != nil {
		t.Error(err)
	}
}

// TestModelFindsFaults wants TestModel to fail with each fault of testdata/faults.txt, and not
// without.
func TestModelFindsFaults(t *testing.T) {
	soak.SkipUnlessSoak(t, "TestFaultsFit, as it builds these tests with all faults")
	list, err := mutant.Parse(faults)
	if err != nil {
		t.Fatal(err)
	}
	b := mutant.Harness{Faults: list, Tests: "./core/agree", Workers: 2, Report: t.Output()}
	done, err := b.Build(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer done()
	run := func(number int) error {
		cmd := b.Command(t.Context(), number, "tests", "-test.run=^TestModel$")
		cmd.Env = append(cmd.Env, soak.Variable+"=")
		return cmd.Run()
	}
	if err := run(0); err != nil {
		t.Fatalf("without any fault: %v", err)
	}
	b.Each(t.Context(), b.Choose(regexp.MustCompile("")), func(number int) string {
		if run(number) == nil {
			t.Errorf("nothing finds the fault %s", list[number-1].Name)
			return "not found"
		}
		return "found"
	})
}
