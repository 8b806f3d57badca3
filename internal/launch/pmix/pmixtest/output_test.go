package pmixtest

import (
	"os/exec"
	"testing"
)

// TestStuck: a parent that never reaps its child is killed, one whose child runs is not.
func TestStuck(t *testing.T) {
	// What exec replaces the shell with does not know of its child.
	out, stuck, err := Output(exec.CommandContext(t.Context(), "sh", "-c", "echo begun; true & exec sleep 1000"))
	if out != "begun\n" || !stuck || err == nil {
		t.Errorf("%q, stuck %v, %v", out, stuck, err)
	}
	out, stuck, err = Output(exec.CommandContext(t.Context(), "sh", "-c", "echo begun; sleep 1"))
	if out != "begun\n" || stuck || err != nil {
		t.Errorf("%q, stuck %v, %v", out, stuck, err)
	}
}
