package routes

import (
	"slices"
	"sync"
)

// Drained is the set of transports that no new link of a node uses, because their plugins are to be
// replaced. The nodes of spawned worlds share that of their site's node. Nil is an empty set.
type Drained struct {
	mu    sync.Mutex
	names []string
}

// Has reports whether new links avoid a transport.
func (d *Drained) Has(transport string) bool {
	if d == nil {
		return false
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.Contains(d.names, transport)
}

// Set makes new links avoid a transport, or use it again.
func (d *Drained) Set(transport string, without bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.names = slices.DeleteFunc(d.names, func(name string) bool { return name == transport })
	if without {
		d.names = append(d.names, transport)
	}
}
