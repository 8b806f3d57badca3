// Package nameservice is a model of the name service, made from docs/dynamic.md, that knows nothing
// of core: what becomes of requests that are made one after the other.
package nameservice

import (
	"cmp"
	"maps"
	"slices"

	"github.com/openimpi/impi/core/mpi"
	"github.com/openimpi/impi/core/mpierr"
)

// Requester identifies who makes a request: a job, together with the jobs that it has spawned, and
// the node of the proc.
type Requester struct{ Job, Node int }

// Name is a service in a scope, at the server of one job or, if Job is -1, at the server that all
// jobs share.
type Name struct {
	Job            int
	Scope, Service string
}

// order is that in which a node publishes names again.
func order(a, b Name) int {
	return cmp.Or(cmp.Compare(a.Job, b.Job), cmp.Compare(a.Scope, b.Scope), cmp.Compare(a.Service, b.Service))
}

// Model is the state of all servers and nodes. The zero value has no names, and room for any
// number.
type Model struct {
	Room  int // names in one scope of a server; twice as many in all scopes; 0: any number
	names map[Name]entry
	nodes map[int]*node
}

type entry struct {
	by   Requester
	port string
}

type node struct {
	Requester
	mine map[Name]string // ports that the node has published
	cut  bool            // the node is not connected and cannot be
}

func (m *Model) node(by Requester) *node {
	if m.nodes == nil {
		m.nodes, m.names = map[int]*node{}, map[Name]entry{}
	}
	n := m.nodes[by.Node]
	if n == nil {
		n = &node{Requester: by, mine: map[Name]string{}}
		m.nodes[by.Node] = n
	}
	return n
}

// Publish returns the class of the request to publish a port. If lost is set the answer is lost,
// and the request is made again on another connection.
func (m *Model) Publish(by Requester, name Name, port string, lost bool) mpi.Class {
	n := m.node(by)
	if n.cut {
		return mpierr.Other
	}
	class := m.enter(n, name, port, false)
	if lost {
		m.reconnect(n, name.Job)
		_, mine := n.mine[name]
		class = m.enter(n, name, port, !mine)
	}
	if class == mpierr.Success {
		n.mine[name] = port
	}
	return class
}

// enter is what a server does. again: what the same job has published is replaced.
func (m *Model) enter(n *node, name Name, port string, again bool) mpi.Class {
	e, taken := m.names[name]
	if taken && !(again && e.by.Job == n.Job) || !taken && m.full(name) {
		return mpierr.Service
	}
	m.names[name] = entry{n.Requester, port}
	return mpierr.Success
}

func (m *Model) full(name Name) bool {
	scope, total := 0, 0
	for x := range m.names {
		if x.Job == name.Job {
			total++
			if x.Scope == name.Scope {
				scope++
			}
		}
	}
	return m.Room > 0 && (scope >= m.Room || total >= 2*m.Room)
}

// reconnect has a node connect to a server again, and publish again the names that it had there.
// server is the job whose server it is, or -1 for the server that all jobs share.
func (m *Model) reconnect(n *node, server int) {
	for _, name := range slices.SortedFunc(maps.Keys(n.mine), order) {
		if name.Job == server && m.enter(n, name, n.mine[name], true) != mpierr.Success {
			delete(n.mine, name)
		}
	}
}

// Unpublish returns the class of the request to remove a name.
func (m *Model) Unpublish(by Requester, name Name, lost bool) mpi.Class {
	n := m.node(by)
	if n.cut {
		return mpierr.Other
	}
	class := m.remove(n, name)
	if lost {
		m.reconnect(n, name.Job)
		class = m.remove(n, name)
	}
	if class == mpierr.Success {
		delete(n.mine, name)
	}
	return class
}

func (m *Model) remove(n *node, name Name) mpi.Class {
	if e, published := m.names[name]; !published || e.by.Job != n.Job {
		return mpierr.Service
	}
	delete(m.names, name)
	return mpierr.Success
}

// Lookup returns the port of a name, or the class of the error that the program must get. lost says
// that the connection breaks before the answer.
func (m *Model) Lookup(by Requester, name Name, lost bool) (port string, class mpi.Class) {
	n := m.node(by)
	if n.cut {
		return "", mpierr.Other
	}
	if lost {
		m.reconnect(n, name.Job)
	}
	e, published := m.names[name]
	if !published {
		return "", mpierr.Name
	}
	return e.port, mpierr.Success
}

// Sever breaks the connections of a node for a while. Its names end with them, unless the servers
// notice only late.
func (m *Model) Sever(by Requester, late bool) {
	n := m.node(by)
	if n.cut {
		return
	}
	n.cut = true
	maps.DeleteFunc(m.names, func(_ Name, e entry) bool { return !late && e.by == n.Requester })
}

// Rejoin lets the node connect again.
func (m *Model) Rejoin(by Requester) {
	if n := m.node(by); n.cut {
		n.cut = false
		m.reconnect(n, n.Job)
		m.reconnect(n, -1)
	}
}
