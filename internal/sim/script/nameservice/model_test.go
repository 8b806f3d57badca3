package nameservice

import (
	"testing"

	"github.com/openimpi/impi/core/mpi"
	"github.com/openimpi/impi/core/mpierr"
)

// TestModel goes through what docs/dynamic.md says of names.
func TestModel(t *testing.T) {
	m := &Model{Room: 2}
	a, site, b := Requester{0, 0}, Requester{0, 1}, Requester{1, 2} // two nodes of a job, and another job
	heat, cold, own := Name{-1, "", "heat"}, Name{-1, "", "cold"}, Name{0, "", "heat"}
	is := func(what string, got, want mpi.Class) {
		t.Helper()
		if got != want {
			t.Errorf("%s: %v, want %v", what, got, want)
		}
	}
	finds := func(what string, n Name, want string) {
		t.Helper()
		if port, _ := m.Lookup(b, n, false); port != want {
			t.Errorf("%s: %q, want %q", what, port, want)
		}
	}
	is("publish", m.Publish(a, heat, "1", false), mpierr.Success)
	is("publish at one's own server", m.Publish(a, own, "2", false), mpierr.Success)
	is("publish again", m.Publish(a, heat, "3", true), mpierr.Service)
	is("another job's", m.Unpublish(b, heat, false), mpierr.Service)
	is("publish twice, as the answer is lost", m.Publish(b, cold, "4", true), mpierr.Success)
	is("no room", m.Publish(b, Name{-1, "", "mild"}, "5", false), mpierr.Service)
	m.Sever(a, false)
	finds("of a lost connection", heat, "")
	is("without a connection", m.Publish(a, heat, "1", false), mpierr.Other)
	m.Rejoin(a)
	finds("published again", heat, "1")
	m.Sever(a, true)
	finds("of a connection whose end is not noticed", heat, "1")
	m.Rejoin(a)
	is("unpublished by another node of the job", m.Unpublish(site, heat, false), mpierr.Success)
	is("removed at one's own server, as the answer is lost", m.Unpublish(a, own, true), mpierr.Success)
	finds("not published again, as that was another server", heat, "")
	is("and taken by another job", m.Publish(b, heat, "6", false), mpierr.Success)
	m.Sever(a, false)
	m.Rejoin(a)
	finds("what is another's now", heat, "6")
	is("removed twice", m.Unpublish(b, heat, true), mpierr.Success)
	finds("removed", heat, "")
}
