package main

import (
	"errors"
	"sync"
)

var errEnded = errors.New("the peer's endpoint was closed")

// kin are the endpoints of this process whose provider uses each other's memory as it is:
// libfabric's shm keeps a pointer to the peer's, and goes on to use it when the peer has unmapped
// it (SIGSEGV in fi_send or fi_close). So the others forget an endpoint before it is closed. It
// also keeps the names of all endpoints that the process has had, with where their memory was, and
// looks there first: so each has a name of its own, and one that is closed is told to nobody.
var kin = struct {
	sync.Mutex
	nodes map[*node]bool
}{nodes: map[*node]bool{}}

// names are those that the process has had, and whether they have an endpoint now.
var names = struct {
	sync.Mutex
	lives map[string]bool
}{lives: map[string]bool{}}

func (n *node) named(lives bool) {
	names.Lock()
	defer names.Unlock()
	names.lives[string(n.f.name)] = lives
}

// ended reports whether a name is that of an endpoint which this process has closed.
func ended(name string) bool {
	names.Lock()
	defer names.Unlock()
	lives, ours := names.lives[name]
	return ours && !lives
}

// known has others of this process forget the node's endpoint when it is closed.
func (n *node) known() {
	if n.f.shares() {
		kin.Lock()
		defer kin.Unlock()
		kin.nodes[n] = true
		n.named(true)
	}
}

// close closes the endpoint. Nobody else may use it any more.
func (n *node) close() {
	if n.f.shares() {
		kin.Lock()
		defer kin.Unlock()
		delete(kin.nodes, n)
		n.named(false)
		for o := range kin.nodes { // none of them can learn of it again before it is closed
			o.mu.Lock()
			defer o.mu.Unlock()
			o.forget(n.f.name)
		}
	}
	n.f.close()
	n.forgetMemory()
	n.claim.free()
}

// forget drops a peer in this process, and what the provider has noted of it by itself. A node that
// dials is not used for more: the provider would take what it has noted of one peer for the next in
// its place.
func (n *node) forget(blob []byte) {
	n.f.forget(blob)
	if n.arrived == nil {
		n.open = false
	}
	if p := n.peers[string(blob)]; p != nil {
		p.known = false
		p.fail(n, errEnded)
		delete(n.peers, p.blob)
	}
}
