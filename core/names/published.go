package names

import (
	"maps"
	"slices"
)

// Request asks a server to publish a port.
type Request struct {
	Name  Name
	Port  string
	Renew bool // it replaces an entry of the same owner
}

// Published is the set of names that a node has published at a server. The server forgets them when
// the connection ends: then all of them are published again on the next one. The zero value is
// empty.
type Published struct{ ports map[Name]string }

// Len returns the number of names that are published again on the next connection.
func (p *Published) Len() int { return len(p.ports) }

// Request returns the request that publishes port. again is true if the request was sent before, on
// a connection that broke before the answer: the server may have carried it out.
func (p *Published) Request(n Name, port string, again bool) Request {
	_, mine := p.ports[n]
	return Request{n, port, again && !mine}
}

// All returns the requests to be made on a new connection, before any other.
func (p *Published) All() []Request {
	var all []Request
	for _, n := range slices.SortedFunc(maps.Keys(p.ports), Compare) {
		all = append(all, Request{n, p.ports[n], true})
	}
	return all
}

// TakeAnswer records the server's answer to a request. It reports whether a name is lost that the
// node had published: another job has taken it in the meantime, or there is no room for it any
// more.
func (p *Published) TakeAnswer(r Request, err error) (lost bool) {
	if err == nil {
		if p.ports == nil {
			p.ports = make(map[Name]string)
		}
		p.ports[r.Name] = r.Port
		return false
	}
	if _, lost = p.ports[r.Name]; !lost || !r.Renew {
		return false
	}
	delete(p.ports, r.Name)
	return true
}

// Unpublished removes a name that the server has removed.
func (p *Published) Unpublished(n Name) { delete(p.ports, n) }
