package routes

import (
	"slices"
	"sync"
)

// Drained are the transports that no new link of a node uses, because their plugins are to be replaced.
// The nodes of spawned worlds have that of their site's node. Nil: there are none.
type Drained struct {
	mu    sync.Mutex
	names []string
}

// Has reports whether new links do without a transport.
func (d *Drained) Has(transport string) bool {
	if d == nil {
		return false
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.Contains(d.names, transport)
}

// Set has new links do without a transport, or use it again.
func (d *Drained) Set(transport string, without bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.names = slices.DeleteFunc(d.names, func(name string) bool { return name == transport })
	if without {
		d.names = append(d.names, transport)
	}
}
