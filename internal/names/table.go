package names

import (
	"crypto/sha256"
	"crypto/subtle"
	"fmt"
)

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

// Holder is a connection: the names that were published by it end with it.
type Holder uint64

// Table is what is published. It is used by one goroutine at a time.
type Table struct {
	limits Limits
	scopes map[string]map[string]*entry
	held   map[Holder]map[*entry]bool
	total  int
}

type entry struct {
	scope, service, port string
	owner                [sha256.Size]byte // of the owner, who alone may unpublish
	holder               Holder
}

// NewTable makes an empty table.
func NewTable(l Limits) *Table {
	return &Table{limits: l.withDefaults(), scopes: make(map[string]map[string]*entry), held: make(map[Holder]map[*entry]bool)}
}

// Len is how many names are published, in all scopes.
func (t *Table) Len() int { return t.total }

// Do carries a request out that came by a connection.
func (t *Table) Do(by Holder, r *Request) Answer {
	if err := r.Check(); err != nil {
		return Answer{CodeBad, err.Error()}
	}
	switch r.Op {
	case OpPublish, OpRenew:
		return t.publish(by, r)
	case OpUnpublish:
		e := t.scopes[r.Scope][r.Service]
		switch {
		case e == nil:
			return Answer{CodeUnknown, fmt.Sprintf("%q is not published%s", r.Service, inScope(r.Scope))}
		case !e.isOf(&r.Owner):
			return Answer{CodeUnknown, fmt.Sprintf("%q was published by another job, which alone can unpublish it", r.Service)}
		}
		t.remove(e)
	case OpLookup:
		e := t.scopes[r.Scope][r.Service]
		if e == nil {
			return Answer{CodeNotFound, fmt.Sprintf("%q is not published%s", r.Service, inScope(r.Scope))}
		}
		return Answer{CodeOK, e.port}
	default: // a ping
	}
	return Answer{}
}

func (t *Table) publish(by Holder, r *Request) Answer {
	scope := t.scopes[r.Scope]
	if e := scope[r.Service]; e != nil {
		if r.Op != OpRenew || !e.isOf(&r.Owner) {
			return Answer{CodePublished, fmt.Sprintf("%q is published already%s", r.Service, inScope(r.Scope))}
		}
		t.remove(e)
		scope = t.scopes[r.Scope]
	}
	switch {
	case len(scope) >= t.limits.Scope:
		return Answer{CodeFull, fmt.Sprintf("%d names are published%s, which is the most", len(scope), inScope(r.Scope))}
	case t.total >= t.limits.Total:
		return Answer{CodeFull, fmt.Sprintf("%d names are published, which is the most", t.total)}
	}
	e := &entry{scope: r.Scope, service: r.Service, port: r.Port, owner: sha256.Sum256(r.Owner[:]), holder: by}
	if scope == nil {
		scope = make(map[string]*entry)
		t.scopes[r.Scope] = scope
	}
	scope[r.Service] = e
	if t.held[by] == nil {
		t.held[by] = make(map[*entry]bool)
	}
	t.held[by][e] = true
	t.total++
	return Answer{}
}

// Leave ends the names that a connection published, and tells how many they were.
func (t *Table) Leave(by Holder) int {
	n := len(t.held[by])
	for e := range t.held[by] {
		t.remove(e)
	}
	return n
}

func (t *Table) remove(e *entry) {
	delete(t.scopes[e.scope], e.service)
	if len(t.scopes[e.scope]) == 0 {
		delete(t.scopes, e.scope)
	}
	delete(t.held[e.holder], e)
	if len(t.held[e.holder]) == 0 {
		delete(t.held, e.holder)
	}
	t.total--
}

// isOf compares in constant time.
func (e *entry) isOf(o *Owner) bool {
	sum := sha256.Sum256(o[:])
	return subtle.ConstantTimeCompare(sum[:], e.owner[:]) == 1
}

func inScope(scope string) string {
	if scope == "" {
		return ""
	}
	return fmt.Sprintf(" in scope %q", scope)
}
