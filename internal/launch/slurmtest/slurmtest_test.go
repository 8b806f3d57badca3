package slurmtest

import (
	"strings"
	"testing"
)

func TestStepsRunOnAllNodes(t *testing.T) {
	c := Start(t, 3)
	out := c.Run("srun", "-N3", "--label", "sh", "-c", "echo $SLURMD_NODENAME")
	for _, want := range []string{"0: n1\n", "1: n2\n", "2: n3\n"} {
		if !strings.Contains(out, want) {
			t.Errorf("%q is not in what the step printed:\n%s", want, out)
		}
	}
	if out := c.Run("scontrol", "--oneliner", "show", "node", "n2"); !strings.Contains(out, "NodeAddr=127.0.0.12 ") {
		t.Errorf("the address of n2 is not 127.0.0.12:\n%s", out)
	}
}
