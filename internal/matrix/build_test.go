package matrix

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

// built is the folder of the programs that cells run. All tests share it.
var built = struct {
	sync.Once
	dir string
	err error
}{}

func TestMain(m *testing.M) {
	code := m.Run()
	_ = os.RemoveAll(built.dir)
	os.Exit(code)
}

// build gives bin the programs that cells run, by links that a test can replace.
func build(t *testing.T, bin string) {
	t.Helper()
	built.Do(func() { built.dir, built.err = buildAll() })
	if built.err != nil {
		t.Fatal(built.err)
	}
	list, err := os.ReadDir(built.dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range list {
		if err := os.Symlink(filepath.Join(built.dir, f.Name()), filepath.Join(bin, f.Name())); err != nil {
			t.Fatal(err)
		}
	}
}

// replace puts a script where bin has a program.
func replace(t *testing.T, bin, name, script string) {
	t.Helper()
	path := filepath.Join(bin, name)
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(script), 0o700); err != nil {
		t.Fatal(err)
	}
}

func buildAll() (dir string, err error) {
	if dir, err = os.MkdirTemp("", "impi-matrix-bin-"); err != nil {
		return "", err
	}
	for _, args := range [][]string{
		{"build", "-o", dir + "/", "../../cmd/impi-node", "../../examples/ring", "../../examples/heat2d", "../../examples/wordcount"},
		{"build", "-o", filepath.Join(dir, "matrix-check"), "./check"},
	} {
		if out, err := exec.Command("go", args...).CombinedOutput(); err != nil {
			return dir, fmt.Errorf("go %s: %w\n%s", strings.Join(args, " "), err, out)
		}
	}
	return dir, nil
}
