// Command impiexec runs MPI programs with the options of mpiexec. It reads them
// and becomes impi-node. See docs/c-programs.md.
package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/openimpi/impi/internal/cmdline"
	"github.com/openimpi/impi/internal/mpiexec"
	"github.com/openimpi/impi/internal/version"
)

const statusUsage = 2

func main() { os.Exit(run(os.Args[1:])) }

func run(args []string) int {
	if cmdline.WantsInstall(args) && alone(args[:1]) {
		if err := mpiexec.Command().Install(args); err != nil {
			return complain(err)
		}
		return 0
	}
	r, err := mpiexec.Parse(args, mpiexec.ThisMachine())
	switch {
	case err != nil:
		return complain(fmt.Errorf("%w\nTry: impiexec -help", err))
	case r.Help, cmdline.WantsHelp(args) && alone(args):
		fmt.Print(mpiexec.Help())
		return 0
	case r.Version, cmdline.WantsVersion(args) && alone(args):
		fmt.Println("impiexec", version.String())
		return 0
	}
	node, err := findNode()
	if err != nil {
		return complain(err)
	}
	here(r.Programs)
	if err := r.UnderTool(mpiexec.ThisMachine()); err != nil {
		return complain(err)
	}
	words, err := r.Args()
	if err != nil {
		return complain(err)
	}
	hidden, environ := mpiexec.FlagsToEnviron(words)
	command := append([]string{"impi-node"}, hidden...)
	for _, note := range r.Notes {
		fmt.Fprintf(os.Stderr, "impiexec: %s\n", note)
	}
	if r.Verbose {
		fmt.Fprintf(os.Stderr, "impiexec: %s %s\n", node, strings.Join(words, " "))
	}
	return complain(fmt.Errorf("%s: %w", node, syscall.Exec(node, command, append(os.Environ(), environ...))))
}

// alone reports whether args is a single word that names no program.
func alone(args []string) bool {
	_, inPath := exec.LookPath(args[0])
	_, beside := exec.LookPath("./" + args[0])
	return len(args) == 1 && inPath != nil && beside != nil
}

// here looks in this folder for a name without a slash that is not in PATH, as other mpiexecs do.
func here(programs []mpiexec.Program) {
	for _, p := range programs {
		name := p.Command[0]
		if strings.Contains(name, "/") {
			continue
		}
		if _, err := exec.LookPath(name); err == nil {
			continue
		}
		if beside, err := exec.LookPath("./" + name); err == nil {
			p.Command[0] = beside
		}
	}
}

func complain(err error) int {
	fmt.Fprintf(os.Stderr, "impiexec: %v\n", err)
	return statusUsage
}

func findNode() (string, error) {
	self, err := os.Executable()
	if err == nil {
		beside := filepath.Join(filepath.Dir(self), "impi-node")
		if _, err := os.Stat(beside); err == nil {
			return beside, nil
		}
	}
	path, err := exec.LookPath("impi-node")
	if err != nil {
		return "", fmt.Errorf("impi-node is neither beside impiexec nor in PATH: %w", err)
	}
	return filepath.Abs(path)
}
