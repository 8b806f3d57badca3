package examples

import (
	"os"
	"path/filepath"
	"testing"
)

const tasksDone = `tasks: 17984 primes below 200000, counted by [0-9]+ ranks in 400 blocks, as it must be`

func TestTasks(t *testing.T) {
	printed(t, runJob(t, "tasks"), tasksDone, `tasks: 400 blocks on the machine of rank 0`)
}

// The same between sites whose links are TCP.
func TestTasksOverTCP(t *testing.T) {
	job, err := os.ReadFile(filepath.Join("tasks", "job.hcl"))
	if err != nil {
		t.Fatal(err)
	}
	name := filepath.Join("examples", "tasks", "tcp.hcl")
	job = append(job, "\nroute \"*\" { prefer = [\"tcp\"] }\n"...)
	if err := os.WriteFile(filepath.Join(checkout, name), job, 0o600); err != nil {
		t.Fatal(err)
	}
	printed(t, succeed(t, "-config", name), tasksDone, `tasks: 400 blocks on the machine of rank 0`)
}

func TestTasksAlone(t *testing.T) {
	printed(t, succeed(t, "-n", "1", "--", "bin/tasks", "-limit", "1000", "-block", "100"), `tasks: 168 primes below 1000, counted by 1 ranks in 10 blocks, as it must be`)
}
