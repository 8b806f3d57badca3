package examples

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// survived wants a job to come to its end without the last site, whose procs have exited with 3.
func survived(t *testing.T, procs, job string) {
	t.Helper()
	out, problems, status := node(t, "-config", job)
	if status != 3 || !strings.Contains(problems, "2 procs are lost in all; the job went on without them") {
		t.Errorf("exit status %d\n%s%s", status, out, problems)
	}
	printed(t, out, `survivor: 4 of 6 procs are left: .*`, `survivor: 3000 steps on 960 cells, the last ones by `+procs+` procs, as it must be`)
}

func TestSurvivor(t *testing.T) { survived(t, "4", filepath.Join("examples", "survivor", "job.hcl")) }

// replaces writes the job with more flags of its program.
func replaces(t *testing.T, name, flags string) (file string) {
	t.Helper()
	job, err := os.ReadFile(filepath.Join("survivor", "job.hcl"))
	if err != nil {
		t.Fatal(err)
	}
	text := strings.Replace(string(job), `bin/survivor"`, `bin/survivor", `+flags, 1)
	file = filepath.Join("examples", "survivor", name)
	if err := os.WriteFile(filepath.Join(checkout, file), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

func TestSurvivorReplaces(t *testing.T) { survived(t, "6", replaces(t, "replace.hcl", `"-replace"`)) }

// TestSurvivorInTheLastStep: who has all of the result waits for those that go on without the lost.
func TestSurvivorInTheLastStep(t *testing.T) {
	survived(t, "4", replaces(t, "last.hcl", `"-at", "2999"`))
}

// TestSurvivorReplacesTwice: one of those that were spawned is lost, too; those that are left, of
// both worlds, spawn another one.
func TestSurvivorReplacesTwice(t *testing.T) {
	out, problems, status := node(t, "-config", replaces(t, "twice.hcl", `"-replace", "-twice"`))
	if status != 3 {
		t.Errorf("exit status %d\n%s%s", status, out, problems)
	}
	printed(t, out, `survivor: 4 of 6 procs are left: .*`, `survivor: 5 of 6 procs are left: .*`,
		`survivor: 3000 steps on 960 cells, the last ones by 6 procs, as it must be`)
}

// TestSurvivorReplacesAtASpareSite: delta has the two new procs, and nothing before.
func TestSurvivorReplacesAtASpareSite(t *testing.T) {
	out, problems, status := node(t, "-config", filepath.Join("examples", "survivor", "spare.hcl"))
	if status != 3 || !strings.Contains(problems, "this spare site was taken: site=delta most_procs=2") {
		t.Errorf("exit status %d\n%s%s", status, out, problems)
	}
	printed(t, out, `survivor: 4 of 6 procs are left: .*`, `survivor: 3000 steps on 960 cells, the last ones by 6 procs, as it must be`)
}
