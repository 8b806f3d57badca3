package names

import (
	"crypto/sha256"
	"crypto/subtle"
	"fmt"
	"strings"
)

// Limits of what is published, in bytes.
const (
	MaxScope   = 64
	MaxService = 255
	MaxPort    = 1023 // MPI_MAX_PORT_NAME, without C's terminator
)

// Name is the key under which a port is published. Names of different scopes are
// independent.
type Name struct{ Scope, Service string }

// check returns an error for a name or a port that cannot be published.
func (n Name) check(port string) error {
	switch {
	case len(n.Scope) > MaxScope:
		return fmt.Errorf("%w: a scope of %d bytes, at most %d", ErrName, len(n.Scope), MaxScope)
	case n.Service == "" || len(n.Service) > MaxService:
		return fmt.Errorf("%w: a service's name of %d bytes, 1 to %d are possible", ErrName, len(n.Service), MaxService)
	case len(port) > MaxPort:
		return fmt.Errorf("%w: a port's name of %d bytes, at most %d", ErrName, len(port), MaxPort)
	case strings.ContainsRune(n.Scope+n.Service+port, 0):
		return fmt.Errorf("%w: a zero byte in a name", ErrName)
	}
	return nil
}

// String quotes the name, with its scope if it has one.
func (n Name) String() string {
	if n.Scope == "" {
		return fmt.Sprintf("%q", n.Service)
	}
	return fmt.Sprintf("%q in scope %q", n.Service, n.Scope)
}

// Owner proves from which job a request comes. All sites of a job have the same, and no
// other job knows it.
type Owner [32]byte

// Limits bound a table, in names.
type Limits struct {
	Scope int // in one scope; 0: 4096
	Total int // 0: 16384
}

func (l Limits) withDefaults() Limits {
	if l.Scope <= 0 {
		l.Scope = 4096
	}
	if l.Total <= 0 {
		l.Total = 16384
	}
	return l
}

// Holder is a connection. The names that were published on it end with it.
type Holder uint64

// Table has the published names. Only one goroutine at a time may use it.
type Table struct {
	limits Limits
	names  map[Name]*entry
	scopes map[string]int             // number of names, by scope
	held   map[Holder]map[*entry]bool // names of the connections that have entered and not left
}

type entry struct {
	name   Name
	port   string
	owner  [sha256.Size]byte // hash of the owner, which alone may unpublish
	holder Holder
}

// NewTable makes an empty table.
func NewTable(l Limits) *Table {
	return &Table{
		limits: l.withDefaults(), names: make(map[Name]*entry), scopes: make(map[string]int),
		held: make(map[Holder]map[*entry]bool),
	}
}

// Len is how many names are published, in all scopes.
func (t *Table) Len() int { return len(t.names) }

// Enter registers a connection, which may then publish.
func (t *Table) Enter(by Holder) { t.held[by] = make(map[*entry]bool) }

// Publish publishes a port until the connection by leaves. It fails with ErrPublished if
// the name is taken; renew takes it over from a connection of the same owner.
func (t *Table) Publish(by Holder, o *Owner, n Name, port string, renew bool) error {
	if err := n.check(port); err != nil {
		return err
	}
	if t.held[by] == nil {
		return fmt.Errorf("%w: the connection has ended", ErrUnknown)
	}
	if e := t.names[n]; e != nil {
		if !renew || !e.isOf(o) {
			return fmt.Errorf("%w: %v", ErrPublished, n)
		}
		t.remove(e)
	}
	switch {
	case t.scopes[n.Scope] >= t.limits.Scope:
		return fmt.Errorf("%w: %d names are published in scope %q, which is the most", ErrFull, t.scopes[n.Scope], n.Scope)
	case len(t.names) >= t.limits.Total:
		return fmt.Errorf("%w: %d names are published, which is the most", ErrFull, len(t.names))
	}
	e := &entry{n, port, sha256.Sum256(o[:]), by}
	t.names[n], t.held[by][e] = e, true
	t.scopes[n.Scope]++
	return nil
}

// Unpublish removes a name. Any connection of its owner may do that.
func (t *Table) Unpublish(o *Owner, n Name) error {
	switch e := t.names[n]; {
	case e == nil:
		return fmt.Errorf("%w: %v is not published", ErrUnknown, n)
	case !e.isOf(o):
		return fmt.Errorf("%w: %v was published by another job, which alone can unpublish it", ErrUnknown, n)
	default:
		t.remove(e)
	}
	return nil
}

// Lookup returns the port that a name stands for.
func (t *Table) Lookup(n Name) (port string, err error) {
	if e := t.names[n]; e != nil {
		return e.port, nil
	}
	return "", fmt.Errorf("%w: %v", ErrNotFound, n)
}

// Leave removes the names that a connection has published, and returns how many there were.
func (t *Table) Leave(by Holder) int {
	n := len(t.held[by])
	for e := range t.held[by] {
		t.remove(e)
	}
	delete(t.held, by)
	return n
}

func (t *Table) remove(e *entry) {
	delete(t.names, e.name)
	delete(t.held[e.holder], e)
	if t.scopes[e.name.Scope]--; t.scopes[e.name.Scope] == 0 {
		delete(t.scopes, e.name.Scope)
	}
}

// isOf compares the owner in constant time.
func (e *entry) isOf(o *Owner) bool {
	sum := sha256.Sum256(o[:])
	return subtle.ConstantTimeCompare(sum[:], e.owner[:]) == 1
}
