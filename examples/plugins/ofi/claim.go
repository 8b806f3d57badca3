package main

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"syscall"

	"github.com/openimpi/impi/plugins/sdk/transports"
)

// errTaken is why an endpoint cannot have its name.
var errTaken = errors.New("another process listens there")

// claim is the right to the name of a listener's endpoint on this machine. It is a locked file, which the
// kernel frees when the process dies: libfabric's shm removes the memory of an endpoint that lives when
// another one asks for its name.
type claim struct {
	name string
	file *os.File // nil: the name has the process's number
}

// claims are the names that this process has had.
var claims = struct {
	sync.Mutex
	had map[string]bool
}{had: map[string]bool{}}

// claimFor returns the claim of a listener. The name is the same for the same listener in each process, so
// that a plugin which is started again is where it was. In one process no name is used twice: see kin.
func claimFor(at transports.ListenSpec) (*claim, error) {
	sum := sha256.Sum256([]byte(filepath.Join(at.Dir, at.Name)))
	c := &claim{name: "impi-" + hex.EncodeToString(sum[:8])}
	claims.Lock()
	defer claims.Unlock()
	if claims.had[c.name] {
		c.name += "-" + strconv.Itoa(os.Getpid())
		return c, nil
	}
	f, err := os.OpenFile(filepath.Join(at.Dir, c.name+".lock"), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fmt.Errorf("a place for the endpoint: %w", err)
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		f.Close()
		if errors.Is(err, syscall.EWOULDBLOCK) {
			err = errTaken
		}
		return nil, fmt.Errorf("%s: %w", f.Name(), err)
	}
	c.file, claims.had[c.name] = f, true
	return c, nil
}

// service is what libfabric's shm has to be told so that it numbers the endpoint, or does not.
func (c *claim) service() string {
	if c.file == nil {
		return ""
	}
	return "0"
}

// free gives the name back to other processes.
func (c *claim) free() {
	if c != nil && c.file != nil {
		_ = c.file.Close() // which unlocks it
	}
}
