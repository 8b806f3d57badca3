package main

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"syscall"

	"github.com/openimpi/impi/plugins/sdk/transports"
)

var errTaken = errors.New("another process listens there")

// claim is the right to the name of a listener's endpoint on this machine: libfabric's shm removes
// the memory of an endpoint that lives when another one asks for its name. It is a socket with that
// name, which goes with the process however that ends.
type claim struct {
	name string
	held net.PacketConn // nil: the name has the process's number
}

// claims are the names that this process has had.
var claims = struct {
	sync.Mutex
	had map[string]bool
}{had: map[string]bool{}}

// claimFor returns the claim of a listener. The name is the same for the same listener in each
// process, so that a plugin which is started again is where it was. In one process no name is used
// twice: see kin.
func claimFor(at transports.ListenSpec) (*claim, error) {
	sum := sha256.Sum256([]byte(filepath.Join(at.Dir, at.Name)))
	c := &claim{name: "impi-" + hex.EncodeToString(sum[:8])}
	claims.Lock()
	defer claims.Unlock()
	if claims.had[c.name] {
		c.name += "-" + strconv.Itoa(os.Getpid())
		return c, nil
	}
	held, err := net.ListenPacket("unixgram", c.socket())
	if errors.Is(err, syscall.EADDRINUSE) {
		err = errTaken
	}
	if err != nil {
		return nil, fmt.Errorf("the name %s: %w", c.socket(), err)
	}
	c.held, claims.had[c.name] = held, true
	return c, nil
}

// socket is the address that stands for the name: one that is in no folder, so that nothing is left
// behind.
func (c *claim) socket() string { return "@" + c.name }

// service returns the service to pass to libfabric's shm, which decides whether it adds a number to
// the endpoint's name.
func (c *claim) service() string {
	if c.held == nil {
		return ""
	}
	return "0"
}

func (c *claim) free() {
	if c != nil && c.held != nil {
		_ = c.held.Close()
	}
}
