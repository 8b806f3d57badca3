package calls

import (
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/openimpi/impi/internal/skips"
)

// TestInlined: what comes between the end of a receive and the message that answers it, and what
// each call does if nobody wants to know of calls, is put into the caller by the compiler.
func TestInlined(t *testing.T) {
	skips.Programs(t, "go")
	out, err := exec.Command("go", "build", "-gcflags=-m", "-o", os.DevNull, ".").CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for _, name := range []string{"Begin", "BeginUntimed", "SinceNow", "(*MeasuredRecv).TryEnd", "(*MeasuredRecv).Counted", "(*Run).Count", "End"} {
		if !strings.Contains(string(out), ": can inline "+name+"\n") {
			t.Errorf("%s is called", name)
		}
	}
}
