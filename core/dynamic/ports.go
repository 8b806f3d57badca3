package dynamic

import (
	"bytes"
	"errors"
	"maps"
	"slices"
	"time"
)

// Bounds of ports.
const (
	DefaultBacklog = 256     // waiting connections at a port whose owner sets no number
	MaxBacklog     = 4096    // maximum backlog, even if the owner asks for more
	MaxPorts       = 1024    // maximum ports of one owner
	MaxAccepts     = 1 << 16 // maximum accepts that wait at a port
)

// Reasons why a port cannot be opened, or why an accept ends without a connection.
var (
	ErrPortOpen      = errors.New("the port is open already")
	ErrTooManyPorts  = errors.New("the proc has too many ports")
	ErrPortNotOpen   = errors.New("the port is not open")
	ErrPortClosed    = errors.New("the port was closed")
	ErrPortExpired   = errors.New("the lifetime of the port is over")
	ErrAcceptDropped = errors.New("given up")
	ErrTooManyWait   = errors.New("too many wait for connections to the port")
)

// Ports are the open ports of a node's procs (MPI-4.1, 11.9.2). Each has connections of other
// worlds that wait, or accepts of its owner that wait for one, but never both. The node does the
// greeting and keeps the connection, so that a connect is answered while the port's owner computes.
//
// O names a proc, and C is a connection that has greeted. What is to be done comes from
// [Ports.Next]. The node passes the time, and calls [Ports.Tick] when [Ports.Deadline] has come.
// The zero value is ready.
type Ports[O comparable, C any] struct {
	// ConnClosed reports whether a connection that waits has been closed by its other end. nil means
	// that none ever is.
	ConnClosed func(C) bool

	open  map[WorldID]*openPort[O, C]
	steps []PortStep[O, C]
}

type openPort[O comparable, C any] struct {
	owner   O
	key     Token
	backlog int
	held    int // places reserved by Reserve for connections that are greeting
	waiting []C
	accepts []uint64 // numbers of the owner's requests, in order of arrival
	until   time.Time
	broken  error // reason why no process will connect, set by Break; or nil
}

// PortStep is an action for a node: pass Conn to the owner's accept with the number Request; if Err
// is set, answer that accept with the error; if Drop is set, close Conn.
type PortStep[O comparable, C any] struct {
	Owner   O
	Request uint64
	Conn    C
	Drop    bool
	Err     error
	Broken  bool // Err comes from Break
}

// Next returns the next action; ok is false if there is none.
func (p *Ports[O, C]) Next() (s PortStep[O, C], ok bool) {
	if len(p.steps) == 0 {
		return s, false
	}
	s, p.steps = p.steps[0], p.steps[1:]
	return s, true
}

// Len returns the number of open ports.
func (p *Ports[O, C]) Len() int { return len(p.open) }

// Key returns the key that a connection to the port must prove; open is false if there is no such
// port.
func (p *Ports[O, C]) Key(name WorldID) (key Token, open bool) {
	if x := p.open[name]; x != nil {
		return x.key, true
	}
	return key, false
}

// Owner returns the proc that has opened the port; open is false if there is no such port.
func (p *Ports[O, C]) Owner(name WorldID) (owner O, open bool) {
	if x := p.open[name]; x != nil {
		return x.owner, true
	}
	return owner, false
}

// Open opens a port. A backlog that is not positive means DefaultBacklog; a lifetime that is not
// positive has no end. The error is ErrPortOpen or ErrTooManyPorts.
func (p *Ports[O, C]) Open(now time.Time, owner O, key Token, backlog int, lifetime time.Duration) error {
	mine := 0
	for _, x := range p.open {
		if x.owner == owner {
			mine++
		}
	}
	switch {
	case p.open[key.World()] != nil:
		return ErrPortOpen
	case mine >= MaxPorts:
		return ErrTooManyPorts
	}
	if backlog <= 0 {
		backlog = DefaultBacklog
	}
	x := &openPort[O, C]{owner: owner, key: key, backlog: min(backlog, MaxBacklog)}
	if lifetime > 0 {
		x.until = now.Add(lifetime)
	}
	if p.open == nil {
		p.open = make(map[WorldID]*openPort[O, C])
	}
	p.open[key.World()] = x
	return nil
}

// Reserve reserves a place for a connection that is greeting, until Admit or Release. The verdict
// is Accepted, ClosedPort or PortFull.
func (p *Ports[O, C]) Reserve(name WorldID) Verdict {
	x := p.open[name]
	if x == nil {
		return ClosedPort
	}
	if len(x.waiting)+x.held >= x.backlog {
		p.sweep(x)
	}
	if len(x.waiting)+x.held >= x.backlog {
		return PortFull
	}
	x.held++
	return Accepted
}

// Release frees the place of a connection whose greeting failed.
func (p *Ports[O, C]) Release(name WorldID) {
	if x := p.open[name]; x != nil {
		x.held--
	}
}

// Admit admits a connection for which Reserve has reserved a place: it goes to an accept, or waits
// for one, or is dropped because the port was closed in the meantime; Next returns which. taken is
// true if an accept gets it.
func (p *Ports[O, C]) Admit(name WorldID, c C) (taken bool) {
	x := p.open[name]
	if x == nil {
		p.steps = append(p.steps, PortStep[O, C]{Conn: c, Drop: true})
		return false
	}
	x.held--
	if len(x.accepts) == 0 {
		x.waiting = append(x.waiting, c)
		return false
	}
	p.steps = append(p.steps, PortStep[O, C]{Owner: x.owner, Request: x.accepts[0], Conn: c})
	x.accepts = x.accepts[1:]
	return true
}

// Accept passes to the owner's request the next connection that is still open, now or when one
// arrives (MPI_Comm_accept; MPI-4.1, 11.9.2).
func (p *Ports[O, C]) Accept(owner O, key Token, request uint64) {
	x := p.of(owner, key)
	switch {
	case x == nil:
		p.refuse(owner, request, ErrPortNotOpen)
		return
	case x.broken != nil:
		p.steps = append(p.steps, PortStep[O, C]{Owner: owner, Request: request, Err: x.broken, Broken: true})
		return
	}
	for len(x.waiting) > 0 {
		c := x.waiting[0]
		x.waiting = x.waiting[1:]
		if !p.gone(c) {
			p.steps = append(p.steps, PortStep[O, C]{Owner: owner, Request: request, Conn: c})
			return
		}
		p.steps = append(p.steps, PortStep[O, C]{Conn: c, Drop: true})
	}
	if len(x.accepts) >= MaxAccepts {
		p.refuse(owner, request, ErrTooManyWait)
		return
	}
	x.accepts = append(x.accepts, request)
}

// Cancel ends a request that waits with ErrAcceptDropped.
func (p *Ports[O, C]) Cancel(owner O, key Token, request uint64) {
	x := p.of(owner, key)
	if x == nil {
		return
	}
	if i := slices.Index(x.accepts, request); i >= 0 {
		x.accepts = slices.Delete(x.accepts, i, i+1)
		p.refuse(owner, request, ErrAcceptDropped)
	}
}

// Close closes a port (MPI_Close_port; MPI-4.1, 11.9.2): connections that wait there are dropped,
// accepts end with ErrPortClosed. It returns false if the owner has no such port.
func (p *Ports[O, C]) Close(owner O, key Token) bool {
	x := p.of(owner, key)
	if x == nil {
		return false
	}
	p.end(x, ErrPortClosed)
	return true
}

// CloseAllOf closes all ports of a proc that has ended. Its accepts are not answered.
func (p *Ports[O, C]) CloseAllOf(owner O) {
	for _, name := range p.names() {
		if x := p.open[name]; x.owner == owner {
			p.end(x, nil)
		}
	}
}

// Break records that no process will connect to the port, and why. Accepts that wait end with that
// error, and so do later ones.
func (p *Ports[O, C]) Break(owner O, name WorldID, why error) {
	x := p.open[name]
	if x == nil || x.owner != owner {
		return
	}
	x.broken = why
	for _, request := range x.accepts {
		p.steps = append(p.steps, PortStep[O, C]{Owner: owner, Request: request, Err: why, Broken: true})
	}
	x.accepts = nil
}

// Deadline returns when the next lifetime of a port ends; ok is false if none ends.
func (p *Ports[O, C]) Deadline() (at time.Time, ok bool) {
	for _, x := range p.open {
		if !x.until.IsZero() && (!ok || x.until.Before(at)) {
			at, ok = x.until, true
		}
	}
	return at, ok
}

// Tick ends the ports whose lifetime is over, with ErrPortExpired.
func (p *Ports[O, C]) Tick(now time.Time) {
	for _, name := range p.names() {
		if x := p.open[name]; !x.until.IsZero() && !now.Before(x.until) {
			p.end(x, ErrPortExpired)
		}
	}
}

// names returns the names of the open ports in order, so that equal inputs give equal steps.
func (p *Ports[O, C]) names() []WorldID {
	return slices.SortedFunc(maps.Keys(p.open), func(v, w WorldID) int { return bytes.Compare(v[:], w[:]) })
}

func (p *Ports[O, C]) of(owner O, key Token) *openPort[O, C] {
	if x := p.open[key.World()]; x != nil && x.owner == owner {
		return x
	}
	return nil
}

// end closes a port. The owner's accepts end with the error why, or are not answered if that is
// nil.
func (p *Ports[O, C]) end(x *openPort[O, C], why error) {
	delete(p.open, x.key.World())
	for _, c := range x.waiting {
		p.steps = append(p.steps, PortStep[O, C]{Conn: c, Drop: true})
	}
	if why == nil {
		return
	}
	for _, request := range x.accepts {
		p.refuse(x.owner, request, why)
	}
}

func (p *Ports[O, C]) refuse(owner O, request uint64, why error) {
	p.steps = append(p.steps, PortStep[O, C]{Owner: owner, Request: request, Err: why})
}

func (p *Ports[O, C]) gone(c C) bool { return p.ConnClosed != nil && p.ConnClosed(c) }

func (p *Ports[O, C]) sweep(x *openPort[O, C]) {
	x.waiting = slices.DeleteFunc(x.waiting, func(c C) bool {
		gone := p.gone(c)
		if gone {
			p.steps = append(p.steps, PortStep[O, C]{Conn: c, Drop: true})
		}
		return gone
	})
}
