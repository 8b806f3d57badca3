package names

import (
	"errors"
	"fmt"
	"strings"
	"testing"
)

func wants(t *testing.T, what string, err, want error) {
	t.Helper()
	if !errors.Is(err, want) || want == nil && err != nil {
		t.Errorf("%s: %v, want %v", what, err, want)
	}
}

// dialogue is a table and its connections.
type dialogue struct {
	t     *testing.T
	table *Table
}

// publishes and the other methods make a request for an owner on a connection, and check
// its result.
func (d dialogue) publishes(by Publisher, owner byte, scope, service, port string, want error) {
	d.t.Helper()
	wants(d.t, "publish "+service, d.table.Publish(by, &Owner{owner}, Name{scope, service}, port, false), want)
}

func (d dialogue) renews(by Publisher, owner byte, scope, service, port string, want error) {
	d.t.Helper()
	wants(d.t, "renew "+service, d.table.Publish(by, &Owner{owner}, Name{scope, service}, port, true), want)
}

func (d dialogue) unpublishes(owner byte, scope, service string, want error) {
	d.t.Helper()
	wants(d.t, "unpublish "+service, d.table.Unpublish(&Owner{owner}, Name{scope, service}), want)
}

func (d dialogue) looksUp(scope, service, port string, want error) {
	d.t.Helper()
	got, err := d.table.Lookup(Name{scope, service})
	if wants(d.t, "look up "+service, err, want); got != port {
		d.t.Errorf("%s is %q, want %q", service, got, port)
	}
}

// newDialogue has connections 1 to 3.
func newDialogue(t *testing.T, l Limits) dialogue {
	d := dialogue{t, NewTable(l)}
	for by := range Publisher(3) {
		d.table.AddPublisher(by + 1)
	}
	return d
}

func TestPublishLookupUnpublish(t *testing.T) {
	d := newDialogue(t, Limits{})
	d.looksUp("", "heat", "", ErrNotFound)
	d.publishes(1, 1, "", "heat", "a port\nof any text", nil)
	d.looksUp("", "heat", "a port\nof any text", nil)
	d.publishes(2, 2, "", "heat", "b", ErrPublished)
	d.publishes(1, 1, "", "heat", "a", ErrPublished) // nor who has done so
	d.unpublishes(2, "", "heat", ErrUnknown)
	d.unpublishes(2, "", "cold", ErrUnknown)
	d.unpublishes(1, "", "heat", nil) // another site of the job
	d.looksUp("", "heat", "", ErrNotFound)
	d.unpublishes(1, "", "heat", ErrUnknown)
	if d.table.Len() != 0 {
		t.Errorf("%d names are left", d.table.Len())
	}
}

func TestScopesAreSeparate(t *testing.T) {
	d := newDialogue(t, Limits{})
	d.publishes(1, 1, "chem", "heat", "a", nil)
	d.publishes(1, 1, "", "heat", "b", nil)
	d.looksUp("chem", "heat", "a", nil)
	d.looksUp("", "heat", "b", nil)
	d.looksUp("phys", "heat", "", ErrNotFound)
	d.unpublishes(1, "chem", "heat", nil)
	d.looksUp("", "heat", "b", nil)
}

// TestNamesEndWithTheirConnection: those of another connection of the same job do not.
func TestNamesEndWithTheirConnection(t *testing.T) {
	d := newDialogue(t, Limits{})
	d.publishes(1, 1, "", "a", "a", nil)
	d.publishes(2, 1, "", "b", "b", nil)
	if n := d.table.RemovePublisher(1); n != 1 {
		t.Errorf("%d names ended", n)
	}
	d.looksUp("", "a", "", ErrNotFound)
	d.looksUp("", "b", "b", nil)
	d.publishes(3, 3, "", "a", "c", nil)
	d.publishes(1, 1, "", "late", "p", ErrUnknown) // a request that was under way at the end
}

// TestRenewTakesTheNameOver: after that the old connection's end is none of the name.
func TestRenewTakesTheNameOver(t *testing.T) {
	d := newDialogue(t, Limits{})
	d.publishes(1, 1, "", "a", "old", nil)
	d.renews(2, 2, "", "a", "stolen", ErrPublished)
	d.renews(3, 1, "", "a", "new", nil)
	d.table.RemovePublisher(1)
	d.looksUp("", "a", "new", nil)
	d.renews(3, 1, "", "b", "new", nil) // of what a server has forgotten
	if d.table.RemovePublisher(3) != 2 || d.table.Len()+len(d.table.scopes) != 0 || len(d.table.held) != 1 {
		t.Errorf("%d names are left, of %d connections", d.table.Len(), len(d.table.held))
	}
}

func TestTablesAreBounded(t *testing.T) {
	d := newDialogue(t, Limits{Scope: 2, Total: 3})
	for i := range 2 {
		d.publishes(1, 1, "x", fmt.Sprint(i), "p", nil)
	}
	d.publishes(1, 1, "x", "2", "p", ErrFull)
	d.publishes(1, 1, "y", "0", "p", nil)
	d.publishes(1, 1, "z", "0", "p", ErrFull)
	d.renews(1, 1, "y", "0", "q", nil) // takes no room
	d.unpublishes(1, "x", "0", nil)
	d.publishes(1, 1, "z", "0", "p", nil)
}

func TestNamesThatAreNone(t *testing.T) {
	long := strings.Repeat("s", MaxPort+1)
	d := newDialogue(t, Limits{})
	d.publishes(1, 1, long[:MaxScope], long[:MaxService], long[:MaxPort], nil)
	for what, x := range map[string]struct{ scope, service, port string }{
		"no service":     {"", "", "p"},
		"long service":   {"", long[:MaxService+1], "p"},
		"long scope":     {long[:MaxScope+1], "s", "p"},
		"long port":      {"", "s", long},
		"zero in a name": {"", "a\x00b", "p"},
		"zero in a port": {"", "a", "b\x00"},
	} {
		t.Run(what, func(*testing.T) { d.publishes(1, 1, x.scope, x.service, x.port, ErrName) })
	}
}
