package wireup

import (
	"bufio"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

const claimVariable = "IMPI_TEST_CLAIM"

func init() {
	path := os.Getenv(claimVariable)
	if path == "" {
		return
	}
	f, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err == nil {
		err = Claim(f)
	}
	if err != nil {
		os.Exit(1)
	}
	_, _ = os.Stdout.WriteString("claimed\n")
	_, _ = bufio.NewReader(os.Stdin).ReadByte()
	os.Exit(0)
}

// TestClaim: a file is one process's until that ends.
func TestClaim(t *testing.T) {
	path := filepath.Join(t.TempDir(), "calls")
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	cmd := exec.CommandContext(t.Context(), os.Args[0])
	cmd.Env = append(os.Environ(), claimVariable+"="+path)
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if _, err := bufio.NewReader(out).ReadString('\n'); err != nil {
		t.Fatal(err)
	}
	for name, err := range map[string]error{"Claim": Claim(f), "Claimed": Claimed(path)} {
		if w, ok := errors.AsType[*WrittenFile](err); !ok || *w != (WrittenFile{path, cmd.Process.Pid}) {
			t.Errorf("%s: %v, want that process %d has it", name, err, cmd.Process.Pid)
		}
	}
	_ = in.Close()
	if err := cmd.Wait(); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(Claimed(path), Claim(f), Claimed(filepath.Join(t.TempDir(), "none"))); err != nil {
		t.Error(err)
	}
}
