package names

import (
	"crypto/sha256"
	"crypto/subtle"
	"fmt"
)

// Limits are the maximum numbers of names in a table.
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

// Publisher is a connection. The names that were published on it end with it.
type Publisher uint64

// Table has the published names. Only one goroutine at a time may use it.
type Table struct {
	limits Limits
	names  map[Name]*entry
	scopes map[string]int                // number of names, by scope
	held   map[Publisher]map[*entry]bool // names of the connections that have entered and not left
}

type entry struct {
	name   Name
	port   string
	owner  [sha256.Size]byte // hash of the owner; only the owner may unpublish
	holder Publisher
}

// NewTable makes a table without names; zero limits mean their defaults.
func NewTable(l Limits) *Table {
	return &Table{
		limits: l.withDefaults(), names: make(map[Name]*entry), scopes: make(map[string]int),
		held: make(map[Publisher]map[*entry]bool),
	}
}

// Len returns the number of published names, in all scopes.
func (t *Table) Len() int { return len(t.names) }

// AddPublisher registers a connection, which may then publish.
func (t *Table) AddPublisher(by Publisher) { t.held[by] = make(map[*entry]bool) }

// Publish publishes a port until the connection by leaves. It fails with ErrPublished if
// the name is taken; renew takes it over from a connection of the same owner.
func (t *Table) Publish(by Publisher, o *Owner, n Name, port string, renew bool) error {
	if err := n.Check(port); err != nil {
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

// Lookup returns the port that is published under a name.
func (t *Table) Lookup(n Name) (port string, err error) {
	if e := t.names[n]; e != nil {
		return e.port, nil
	}
	return "", fmt.Errorf("%w: %v", ErrNotFound, n)
}

// RemovePublisher removes the names that a connection has published, and returns their number.
func (t *Table) RemovePublisher(by Publisher) int {
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
