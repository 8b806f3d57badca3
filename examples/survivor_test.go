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

func TestSurvivorReplaces(t *testing.T) {
	job, err := os.ReadFile(filepath.Join("survivor", "job.hcl"))
	if err != nil {
		t.Fatal(err)
	}
	text := strings.Replace(string(job), `bin/survivor"`, `bin/survivor", "-replace"`, 1)
	name := filepath.Join("examples", "survivor", "replace.hcl")
	if err := os.WriteFile(filepath.Join(checkout, name), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	survived(t, "6", name)
}

// TestSurvivorReplacesAtASpareSite: delta has the two new procs, and nothing before.
func TestSurvivorReplacesAtASpareSite(t *testing.T) {
	out, problems, status := node(t, "-config", filepath.Join("examples", "survivor", "spare.hcl"))
	if status != 3 || !strings.Contains(problems, "this spare site was taken: site=delta most_procs=2") {
		t.Errorf("exit status %d\n%s%s", status, out, problems)
	}
	printed(t, out, `survivor: 4 of 6 procs are left: .*`, `survivor: 3000 steps on 960 cells, the last ones by 6 procs, as it must be`)
}
