package names

import (
	"fmt"
	"testing"
)

// dialogue is a table and who talks to it.
type dialogue struct {
	t     *testing.T
	table *Table
}

// asks wants a request of an owner's by a connection to end with a code and, where
// that is good, a port.
func (d dialogue) asks(by Holder, owner byte, op Op, scope, service, port string, want Code) {
	d.t.Helper()
	r := Request{Op: op, Owner: Owner{owner}, Scope: scope, Service: service}
	if op == OpPublish || op == OpRenew {
		r.Port = port
	}
	a := d.table.Do(by, &r)
	if a.Code != want || op == OpLookup && want == CodeOK && a.Text != port {
		d.t.Errorf("%v by %d of %d: %v %q, want code %d", r, by, owner, a, a.Text, want)
	}
	if want != CodeOK && a.Text == "" {
		d.t.Errorf("%v: there is no reason", r)
	}
}

func TestPublishLookupUnpublish(t *testing.T) {
	d := dialogue{t, NewTable(Limits{})}
	d.asks(1, 1, OpLookup, "", "heat", "", CodeNotFound)
	d.asks(1, 1, OpPublish, "", "heat", "a port\nof any text", CodeOK)
	d.asks(2, 2, OpLookup, "", "heat", "a port\nof any text", CodeOK)
	d.asks(2, 2, OpPublish, "", "heat", "b", CodePublished)
	d.asks(1, 1, OpPublish, "", "heat", "a", CodePublished) // nor who has done so
	d.asks(2, 2, OpUnpublish, "", "heat", "", CodeUnknown)
	d.asks(2, 2, OpUnpublish, "", "cold", "", CodeUnknown)
	d.asks(3, 1, OpUnpublish, "", "heat", "", CodeOK) // another site of the job
	d.asks(2, 2, OpLookup, "", "heat", "", CodeNotFound)
	d.asks(1, 1, OpUnpublish, "", "heat", "", CodeUnknown)
	if d.table.Len() != 0 {
		t.Errorf("%d names are left", d.table.Len())
	}
}

func TestScopesAreSeparate(t *testing.T) {
	d := dialogue{t, NewTable(Limits{})}
	d.asks(1, 1, OpPublish, "chem", "heat", "a", CodeOK)
	d.asks(1, 1, OpPublish, "", "heat", "b", CodeOK)
	d.asks(1, 1, OpLookup, "chem", "heat", "a", CodeOK)
	d.asks(1, 1, OpLookup, "", "heat", "b", CodeOK)
	d.asks(1, 1, OpLookup, "phys", "heat", "", CodeNotFound)
	d.asks(1, 1, OpUnpublish, "chem", "heat", "", CodeOK)
	d.asks(1, 1, OpLookup, "", "heat", "b", CodeOK)
}

// TestNamesEndWithTheirConnection: those of another connection of the same job do not.
func TestNamesEndWithTheirConnection(t *testing.T) {
	d := dialogue{t, NewTable(Limits{})}
	d.asks(1, 1, OpPublish, "", "a", "a", CodeOK)
	d.asks(2, 1, OpPublish, "", "b", "b", CodeOK)
	if n := d.table.Leave(1); n != 1 {
		t.Errorf("%d names ended", n)
	}
	d.asks(3, 3, OpLookup, "", "a", "", CodeNotFound)
	d.asks(3, 3, OpLookup, "", "b", "b", CodeOK)
	d.asks(3, 3, OpPublish, "", "a", "c", CodeOK)
}

// TestRenewTakesTheNameOver: after that the old connection's end is none of the name.
func TestRenewTakesTheNameOver(t *testing.T) {
	d := dialogue{t, NewTable(Limits{})}
	d.asks(1, 1, OpPublish, "", "a", "old", CodeOK)
	d.asks(2, 2, OpRenew, "", "a", "stolen", CodePublished)
	d.asks(3, 1, OpRenew, "", "a", "new", CodeOK)
	d.table.Leave(1)
	d.asks(2, 2, OpLookup, "", "a", "new", CodeOK)
	d.asks(3, 1, OpRenew, "", "b", "new", CodeOK) // of what a server has forgotten
	if d.table.Leave(3) != 2 || d.table.Len() != 0 {
		t.Errorf("%d names are left", d.table.Len())
	}
}

func TestTablesAreBounded(t *testing.T) {
	d := dialogue{t, NewTable(Limits{Scope: 2, Total: 3})}
	for i := range 2 {
		d.asks(1, 1, OpPublish, "x", fmt.Sprint(i), "p", CodeOK)
	}
	d.asks(1, 1, OpPublish, "x", "2", "p", CodeFull)
	d.asks(1, 1, OpPublish, "y", "0", "p", CodeOK)
	d.asks(1, 1, OpPublish, "z", "0", "p", CodeFull)
	d.asks(1, 1, OpRenew, "y", "0", "q", CodeOK) // takes no room
	d.asks(1, 1, OpUnpublish, "x", "0", "", CodeOK)
	d.asks(1, 1, OpPublish, "z", "0", "p", CodeOK)
}
