// Package guests builds the plugins in examples/plugins as their vendors would: each
// with its own module or language, outside of this repository's. What it makes is in
// the user's cache, never in the tree. Tests and the matrix ask for them.
package guests

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"

	"github.com/openimpi/impi/plugins/host"
)

// ErrMissing is wrapped when this machine has not what a plugin is built or run with.
// The error says what to install.
var ErrMissing = errors.New("cannot be built here")

// Guest is a plugin of examples/plugins.
type Guest struct {
	Name   string // of the transport, and of its folder
	NoMTLS bool   // it comes without AutoMTLS
	build  func(source, target string) error
}

// All are the plugins that there are.
var All = []Guest{
	{Name: "websocket", build: buildGo},
	{Name: "python", NoMTLS: true, build: buildPython},
}

// Find gives the plugin for a transport.
func Find(name string) (Guest, error) {
	for _, g := range All {
		if g.Name == name {
			return g, nil
		}
	}
	return Guest{}, fmt.Errorf("there is no plugin for %q in examples/plugins", name)
}

var building sync.Mutex

// Build makes the plugin of the checkout in root and gives the path of its file, which
// is called as a node wants it, in a folder that a node trusts.
func (g Guest) Build(root string) (string, error) {
	building.Lock()
	defer building.Unlock()
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Errorf("a place for the %s plugin: %w", g.Name, err)
	}
	dir := filepath.Join(cache, "impi-guests", g.Name)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", fmt.Errorf("a place for the %s plugin: %w", g.Name, err)
	}
	source, err := filepath.Abs(filepath.Join(root, "examples", "plugins", g.Name))
	if err != nil {
		return "", err
	}
	target := filepath.Join(dir, host.Prefix+g.Name)
	// Beside it first: somebody may be running the one that is there.
	fresh := fmt.Sprintf("%s.%d", target, os.Getpid())
	if err := g.build(source, fresh); err != nil {
		return "", errors.Join(fmt.Errorf("the %s plugin: %w", g.Name, err), remove(fresh))
	}
	if err := os.Chmod(fresh, 0o755); err != nil {
		return "", err
	}
	return target, os.Rename(fresh, target)
}

func remove(path string) error {
	if err := os.Remove(path); !errors.Is(err, os.ErrNotExist) {
		return err
	}
	return nil
}

// tool finds a program.
func tool(name, remedy string) (string, error) {
	path, err := exec.LookPath(name)
	if err != nil {
		return "", fmt.Errorf("%w: there is no %s; %s", ErrMissing, name, remedy)
	}
	return path, nil
}

// buildGo builds a module with what it requires. Modules that are not on this machine
// come through the Go proxy.
func buildGo(source, target string) error {
	path, err := tool("go", "install Go")
	if err != nil {
		return err
	}
	for _, args := range [][]string{{"mod", "download"}, {"build", "-o", target, "."}} {
		cmd := exec.Command(path, args...)
		cmd.Dir = source
		cmd.Env = append(os.Environ(), "GOFLAGS=-mod=readonly", "GOWORK=off")
		out, err := cmd.CombinedOutput()
		if err != nil && args[0] == "mod" {
			return fmt.Errorf("%w: its modules cannot be had: %s", ErrMissing, brief(out))
		}
		if err != nil {
			return fmt.Errorf("go %s: %w: %s", strings.Join(args, " "), err, brief(out))
		}
	}
	return nil
}

// Python is the interpreter that has grpcio: that of the system before others.
func Python() (string, error) {
	for _, name := range []string{"/usr/bin/python3", "python3"} {
		path, err := exec.LookPath(name)
		if err == nil && exec.Command(path, "-c", "import grpc, google.protobuf").Run() == nil {
			return path, nil
		}
	}
	return "", fmt.Errorf("%w: there is no Python with grpcio; apt-get install python3-grpcio", ErrMissing)
}

// buildPython packs the plugin into one file.
func buildPython(source, target string) error {
	path, err := Python()
	if err != nil {
		return err
	}
	// From a copy: neither tests nor caches of Python belong into the file.
	work, err := os.MkdirTemp("", "impi-guest-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(work)
	files, err := filepath.Glob(filepath.Join(source, "src", "*.py"))
	if err != nil {
		return err
	}
	for _, f := range files {
		text, err := os.ReadFile(f)
		if err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(work, filepath.Base(f)), text, 0o600); err != nil {
			return err
		}
	}
	if out, err := exec.Command(path, "-m", "zipapp", work, "-o", target, "-p", path).CombinedOutput(); err != nil {
		return fmt.Errorf("zipapp: %w: %s", err, brief(out))
	}
	return nil
}

// brief is the end of what a tool has said.
func brief(out []byte) string {
	text := strings.TrimSpace(string(out))
	return text[max(0, len(text)-2000):]
}
