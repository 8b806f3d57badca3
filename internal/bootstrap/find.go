package bootstrap

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// NodeVariable names the impi-node to be started.
const NodeVariable = "IMPI_NODE"

const nodeName = "impi-node"

// findNode returns the impi-node to start. The error names a variable that asks for one.
func findNode() (string, error) {
	path, err := lookForNode()
	if name := needsNode(); err != nil && name != "" {
		err = fmt.Errorf("%s is set: %w", name, err)
	}
	return path, err
}

// needsNode returns a variable that is set and of which nothing comes without a node, for a rank
// that is alone and can do without one otherwise.
func needsNode() string {
	for _, name := range []string{"IMPI_METRICS", "IMPI_REPORT", "IMPI_TRACE_CALLS", "IMPI_OTLP"} {
		if os.Getenv(name) != "" {
			return name
		}
	}
	return ""
}

// lookForNode looks for impi-node: what the variable names, beside the program, in bin beside the
// folder of the C library, or in PATH.
func lookForNode() (string, error) {
	if path := os.Getenv(NodeVariable); path != "" {
		if err := executable(path); err != nil {
			return "", fmt.Errorf("%s=%s: %w", NodeVariable, path, err)
		}
		return path, nil
	}
	var folders []string
	if self, err := os.Executable(); err == nil {
		folders = append(folders, filepath.Dir(self))
	}
	if maps, err := os.ReadFile("/proc/self/maps"); err == nil {
		if lib := libraryFolder(string(maps)); lib != "" {
			folders = append(folders, filepath.Join(lib, "..", "bin"), lib)
		}
	}
	for _, dir := range folders {
		if path := filepath.Join(dir, nodeName); executable(path) == nil {
			return path, nil
		}
	}
	path, err := exec.LookPath(nodeName)
	if err != nil {
		return "", fmt.Errorf("%s, which runs the job of processes that a process manager has started, is neither beside the program nor in PATH: put its folder in PATH on all machines, or set %s to its path", nodeName, NodeVariable)
	}
	return filepath.Abs(path)
}

func executable(path string) error {
	info, err := os.Stat(path)
	switch {
	case err != nil:
		return err
	case !info.Mode().IsRegular() || info.Mode()&0o111 == 0:
		return errors.New("it is no program")
	}
	return nil
}

// libraryFolder finds the folder of the C library in /proc/self/maps; empty: the program has none.
func libraryFolder(maps string) string {
	for l := range strings.Lines(maps) {
		at := strings.IndexByte(l, '/')
		if at < 0 {
			continue
		}
		path := strings.TrimSpace(l[at:])
		if strings.HasPrefix(filepath.Base(path), "libmpi_abi.so") {
			return filepath.Dir(path)
		}
	}
	return ""
}
