package names

import (
	"reflect"
	"testing"
)

// TestPublishedAgain follows what a node has published over lost connections.
func TestPublishedAgain(t *testing.T) {
	var p Published
	a, b := Name{Service: "a"}, Name{Scope: "x", Service: "b"}
	for _, n := range []Name{b, a} {
		r := p.Request(n, "port", false)
		if r.Renew || p.TakeAnswer(r, nil) {
			t.Errorf("%v is published for the first time: %+v", n, r)
		}
	}
	if want := []Request{{a, "port", true}, {b, "port", true}}; !reflect.DeepEqual(p.All(), want) {
		t.Errorf("on a new connection: %+v", p.All())
	}
	if p.TakeAnswer(p.Request(a, "other", false), ErrPublished) || p.Len() != 2 {
		t.Error("a second request has taken the name away")
	}
	if r := p.Request(a, "other", true); r.Renew {
		t.Error("a request that was lost replaces what the node has published itself")
	}
	if !p.TakeAnswer(p.All()[0], ErrPublished) || p.Len() != 1 {
		t.Error("the name that another job has taken is not lost")
	}
	if r := p.Request(a, "other", true); !r.Renew || p.TakeAnswer(r, ErrPublished) {
		t.Errorf("a request whose answer was lost: %+v", r)
	}
	if p.Unpublished(b); p.Len() != 0 || p.All() != nil {
		t.Errorf("%+v is left", p.All())
	}
}
