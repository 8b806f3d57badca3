package peers

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// ErrMissing is wrapped if a peer was not built, or a program not fetched.
var ErrMissing = errors.New("not there; run make peers")

// DirVariable is the environment variable that names the folder of the peers.
const DirVariable = "IMPI_PEERS"

// Dir returns the folder of all peers: that of DirVariable, or one in the user's cache. Root's
// folder is outside its home, which the user that runs a peer cannot enter.
func Dir() (string, error) {
	if dir := os.Getenv(DirVariable); dir != "" {
		return filepath.Abs(dir)
	}
	if os.Geteuid() == 0 {
		return "/var/cache/impi/peers", nil
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Errorf("peers: no folder for them: %w; set %s", err, DirVariable)
	}
	return filepath.Join(cache, "impi", "peers"), nil
}

// Install is where an implementation is installed, and what it was built from.
type Install struct {
	Prefix string `json:"prefix"`
	Recipe string `json:"recipe"` // what it was built from, and how
}

// Bin returns the path of one of the programs of the installation.
func (in *Install) Bin(name string) string { return filepath.Join(in.Prefix, "bin", name) }

// Find returns the LAM/MPI that Build has built. The error wraps ErrMissing if there
// is none, or one that was built in another way.
func Find() (*Install, error) { return lam.find() }

func (p product) find() (*Install, error) {
	dir, err := Dir()
	if err != nil {
		return nil, err
	}
	in := &Install{}
	b, err := os.ReadFile(filepath.Join(p.prefix(dir), stamp))
	if err == nil {
		err = json.Unmarshal(b, in)
	}
	switch {
	case err != nil:
		return nil, fmt.Errorf("%v: %w (looked in %s)", p, ErrMissing, dir)
	case in.Recipe != p.recipe() || in.Prefix != p.prefix(dir):
		return nil, fmt.Errorf("%v: %w (the one in %s was built in another way)", p, ErrMissing, dir)
	}
	if _, err := os.Stat(in.Bin(p.program)); err != nil {
		return nil, fmt.Errorf("%v: %w (%w)", p, ErrMissing, err)
	}
	return in, nil
}

func (p product) prefix(dir string) string { return filepath.Join(dir, p.source+"-"+p.version) }

// stamp is the file that marks a complete build.
const stamp = "impi-peer.json"

func (in *Install) write() error {
	b, err := json.MarshalIndent(in, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(in.Prefix, stamp), append(b, '\n'), 0o644)
}

// lock keeps other builders out of dir until unlock. It calls wait if it has to wait for
// one.
func lock(ctx context.Context, dir string, wait func()) (unlock func(), err error) {
	f, err := os.OpenFile(filepath.Join(dir, "lock"), os.O_CREATE|os.O_RDWR|unix.O_CLOEXEC, 0o644)
	if err != nil {
		return nil, err
	}
	err = unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
	if errors.Is(err, unix.EWOULDBLOCK) {
		wait()
		got := make(chan error, 1)
		go func() { got <- unix.Flock(int(f.Fd()), unix.LOCK_EX) }()
		select {
		case err = <-got:
		case <-ctx.Done():
			// The goroutine keeps the file until the other builder is done; the command
			// is about to end.
			return nil, context.Cause(ctx)
		}
	}
	if err != nil {
		_ = f.Close()
		return nil, fmt.Errorf("lock %s: %w", f.Name(), err)
	}
	return func() { _ = f.Close() }, nil
}
