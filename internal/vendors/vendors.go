// Package vendors builds the plugins in examples/plugins as their vendors would: each
// with its own module or language, outside of this repository's. What it makes is in
// the user's cache, never in the tree. Tests and the matrix ask for them.
package vendors

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/openimpi/impi/plugins/host"
	"github.com/openimpi/impi/plugins/sdk/transports"
)

// A MissingError is wrapped when this machine lacks something that a plugin is built or run with.
// The error reports what to install.
type MissingError struct{ What, Remedy string }

func (e *MissingError) Error() string { return "cannot be built here: " + e.What + "; " + e.Remedy }

// Plugin is a plugin of examples/plugins: how to build it, and what it can do.
type Plugin struct {
	Name   string // name of the transport, and of its folder
	NoMTLS bool   // it comes without AutoMTLS
	Planes []transports.DataPlane
	Others string // why the plugin has no other data planes
	Few    bool   // the matrix has only some of its cells: what they show of the node, others show
	build  func(source, target string) error
}

// All lists the plugins.
var All = []Plugin{
	{Name: "websocket", build: buildGo,
		Planes: []transports.DataPlane{transports.PlaneRing, transports.PlaneStream, transports.PlaneGRPC},
		Others: "a WebSocket lives in the plugin: what is in its socket are frames, maybe encrypted ones, and no bytes that a proc could read (fd, peer-shm)"},
	{Name: "ofi", build: buildWithLibfabric,
		Planes: []transports.DataPlane{transports.PlaneRing, transports.PlaneStream, transports.PlaneGRPC},
		Others: "an endpoint of libfabric lives in the plugin, and has no descriptor with the bytes of one link",
		Few:    true},
	{Name: "pretend", build: buildGo,
		Planes: []transports.DataPlane{transports.PlaneRDMA, transports.PlaneRing},
		Others: "it stands for hardware that reads remote memory, which has no descriptor with the bytes of one link; ring is for nodes that do not know rdma",
		Few:    true},
	{Name: "python", NoMTLS: true, build: buildPython,
		Planes: []transports.DataPlane{transports.PlaneStream},
		Others: "the example shows what any language can do: Python has no atomic loads and stores for ring and peer-shm; fd is possible, and is what keeps a plugin out of the bytes' way; grpc is slower than stream, and for where there are no descriptors"},
	{Name: "c", build: buildC,
		Planes: []transports.DataPlane{transports.PlaneFD, transports.PlaneRing, transports.PlaneStream},
		Others: "its links are sockets of TCP, without memory that two procs could share (peer-shm); libimpi-plugin leaves grpc out, which is for where there are no descriptors",
		Few:    true},
	{Name: "pretend-c", build: buildC,
		Planes: []transports.DataPlane{transports.PlaneRDMA},
		Others: "it stands for hardware that reads remote memory, as pretend does; libimpi-plugin has no ring for such links, which is for nodes that do not know rdma",
		Few:    true},
}

// Find returns the plugin of the transport with that name, or an error that names it.
func Find(name string) (Plugin, error) {
	for _, g := range All {
		if g.Name == name {
			return g, nil
		}
	}
	return Plugin{}, fmt.Errorf("there is no plugin for %q in examples/plugins", name)
}

var building sync.Mutex

// Build builds the plugin of the checkout in root and returns the path of its file, which has the
// name that a node expects, in a folder that a node trusts.
func (g Plugin) Build(root string) (string, error) {
	building.Lock()
	defer building.Unlock()
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Errorf("a place for the %s plugin: %w", g.Name, err)
	}
	dir := filepath.Join(cache, "impi-vendors", g.Name)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", fmt.Errorf("a place for the %s plugin: %w", g.Name, err)
	}
	source, err := filepath.Abs(filepath.Join(root, "examples", "plugins", g.Name))
	if err != nil {
		return "", err
	}
	fresh, err := os.MkdirTemp(dir, "new-")
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(fresh)
	target := filepath.Join(fresh, host.Prefix+g.Name)
	if err := g.build(source, target); err != nil {
		return "", fmt.Errorf("the %s plugin: %w", g.Name, err)
	}
	if err := os.Chmod(target, 0o755); err != nil {
		return "", err
	}
	return keep(dir, target)
}

// keep moves a file into a folder that is named after its content. A file that is already there
// stays: somebody may be running it, and interpreters open their file more than once.
func keep(dir, file string) (string, error) {
	sum, err := host.Digest(file)
	if err != nil {
		return "", err
	}
	folder := filepath.Join(dir, sum[:16])
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return "", err
	}
	target := filepath.Join(folder, filepath.Base(file))
	switch _, err := os.Stat(target); {
	case errors.Is(err, os.ErrNotExist):
		err = os.Rename(file, target)
		if err != nil {
			return "", err
		}
	case err != nil:
		return "", err
	}
	now := time.Now()
	return target, errors.Join(os.Chtimes(folder, now, now), prune(dir, now.Add(-unused)))
}

// unused is how long a plugin is kept without anybody asking for it.
const unused = 48 * time.Hour

func prune(dir string, since time.Time) error {
	list, err := os.ReadDir(dir)
	for _, d := range list {
		if info, gone := d.Info(); gone == nil && info.ModTime().Before(since) {
			err = errors.Join(err, os.RemoveAll(filepath.Join(dir, d.Name())))
		}
	}
	return err
}

func tool(name, remedy string) (string, error) {
	path, err := exec.LookPath(name)
	if err != nil {
		return "", &MissingError{"there is no " + name, remedy}
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
	for _, args := range [][]string{{"mod", "download"}, {"build", "-trimpath", "-buildvcs=false", "-o", target, "."}} {
		cmd := exec.Command(path, args...)
		cmd.Dir = source
		cmd.Env = append(os.Environ(), "GOFLAGS=-mod=readonly", "GOWORK=off")
		out, err := cmd.CombinedOutput()
		if err != nil && args[0] == "mod" {
			return &MissingError{"its modules cannot be had: " + brief(out), "let go reach its module proxy"}
		}
		if err != nil {
			return fmt.Errorf("go %s: %w: %s", strings.Join(args, " "), err, brief(out))
		}
	}
	return nil
}

func buildWithLibfabric(source, target string) error {
	remedy := "apt-get install gcc libc6-dev pkg-config libfabric-dev"
	for _, name := range []string{"gcc", "pkg-config"} {
		if _, err := tool(name, remedy); err != nil {
			return err
		}
	}
	if err := exec.Command("pkg-config", "--atleast-version=1.17", "libfabric").Run(); err != nil {
		return &MissingError{"there is no libfabric of version 1.17 or later", remedy}
	}
	return buildGo(source, target)
}

func buildC(source, target string) error { return BuildC(source, target, "CFLAGS=-O2 -Werror") }

// BuildC builds source to target with variables of make: tests build plugins of older and newer
// protocols, and with sanitizers.
func BuildC(source, target string, variables ...string) error {
	remedy := "apt-get install gcc libc6-dev make pkg-config libnghttp2-dev libssl-dev"
	for _, name := range []string{"gcc", "make", "pkg-config"} {
		if _, err := tool(name, remedy); err != nil {
			return err
		}
	}
	if err := exec.Command("pkg-config", "--exists", "libnghttp2", "openssl >= 3").Run(); err != nil {
		return &MissingError{"there is no libnghttp2 or OpenSSL 3 to compile against", remedy}
	}
	work, err := os.MkdirTemp(filepath.Dir(target), "c-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(work)
	cmd := exec.Command("make", append([]string{"-C", source, "OUT=" + work, "CC=gcc"}, variables...)...)
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("make: %w: %s", err, brief(out))
	}
	return os.Rename(filepath.Join(work, "plugins", filepath.Base(target)), target)
}

// Python returns the path of the interpreter that has grpcio: the system's before others.
func Python() (string, error) {
	for _, name := range []string{"/usr/bin/python3", "python3"} {
		path, err := exec.LookPath(name)
		if err == nil && exec.Command(path, "-c", "import grpc, google.protobuf").Run() == nil {
			return path, nil
		}
	}
	return "", &MissingError{"there is no Python with grpcio", "apt-get install python3-grpcio python3-protobuf"}
}

// packed is the time of all files in a packed plugin, so that the same files make the same archive.
var packed = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

func buildPython(source, target string) error {
	path, err := Python()
	if err != nil {
		return err
	}
	// Build from a copy: neither tests nor caches of Python belong into the file.
	work, err := os.MkdirTemp("", "impi-vendor-")
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
		name := filepath.Join(work, filepath.Base(f))
		if err := os.WriteFile(name, text, 0o600); err != nil {
			return err
		}
		if err := os.Chtimes(name, packed, packed); err != nil {
			return err
		}
	}
	if out, err := exec.Command(path, "-m", "zipapp", work, "-o", target, "-p", path).CombinedOutput(); err != nil {
		return fmt.Errorf("zipapp: %w: %s", err, brief(out))
	}
	return nil
}

func brief(out []byte) string {
	text := strings.TrimSpace(string(out))
	return text[max(0, len(text)-2000):]
}
