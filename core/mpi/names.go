package mpi

import "sync"

// MaxObjectName is the most bytes of an object's name: MPI_MAX_OBJECT_NAME, less
// C's terminator.
const MaxObjectName = 127

// objectName is the name that a program has given an object. It is not for other
// procs to see.
type objectName struct {
	mu   sync.Mutex
	name string
}

func (n *objectName) get() string {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.name
}

// set keeps as much of the name as objects have.
func (n *objectName) set(name string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.name = name[:min(len(name), MaxObjectName)]
}

// Name is the name that was last set; empty if none was. That of nil is
// MPI_COMM_NULL.
func (c *Comm) Name() string {
	if c == nil {
		return "MPI_COMM_NULL"
	}
	return c.name.get()
}

// SetName names c, for people. MaxObjectName bytes are kept. Other members do not
// see it, and communicators made of c do not inherit it.
func (c *Comm) SetName(name string) error {
	if err := c.check(); err != nil {
		return c.failed("SetName", err)
	}
	c.name.set(name)
	return nil
}
