package names

import (
	"slices"
	"testing"
)

// script goes through an exchange: it answers each step by what the word for it says, and returns
// the steps. "ok" is an answer, "no" none, "final" none that makes trying again useless.
func script(t *testing.T, e *PendingRequest, words ...string) (did []Action) {
	t.Helper()
	for _, word := range words {
		s := e.Next()
		did = append(did, s.Action)
		switch {
		case s.Action == Ask && s.Resent != slices.Contains(did[:len(did)-1], Ask):
			t.Errorf("%v: the last step says that it was made before: %v", did, s.Resent)
		case word != "ok":
			e.Unanswered(word == "final")
		case s.Action == Connect:
			e.Connected()
		default:
			e.TakeAnswer()
		}
	}
	return append(did, e.Next().Action)
}

func TestClient(t *testing.T) {
	n := Name{Service: "a"}
	for _, x := range []struct {
		what        string
		open, names bool
		words       []string
		want        []Action
	}{
		{"first", false, false, []string{"ok", "ok"}, []Action{Connect, Ask, Finished}},
		{"connected", true, false, []string{"ok"}, []Action{Ask, Finished}},
		{"nobody is there", false, false, []string{"no"}, []Action{Connect, Finished}},
		{"a new connection gives no answer", false, false, []string{"ok", "no"}, []Action{Connect, Ask, Finished}},
		{"an old connection has broken", true, true, []string{"no", "ok", "ok", "ok"}, []Action{Ask, Connect, Renew, Ask, Finished}},
		{"twice", true, true, []string{"no", "ok", "no"}, []Action{Ask, Connect, Renew, Finished}},
		{"the time is over", true, false, []string{"final"}, []Action{Ask, Finished}},
	} {
		t.Run(x.what, func(t *testing.T) {
			var c Client
			if x.open {
				script(t, c.Begin(), "ok", "ok")
			}
			if x.names {
				c.TakeAnswer(c.Request(n, "port", false), nil)
			}
			if got := script(t, c.Begin(), x.words...); !slices.Equal(got, x.want) {
				t.Errorf("%v, want %v", got, x.want)
			}
		})
	}
}

// TestClientLooks has a client keep a connection for its names, and hang up when it has none.
func TestClientLooks(t *testing.T) {
	var c Client
	if hangUp, e := c.Tick(); hangUp || e != nil || c.NeedsTick() {
		t.Error("there is nothing to look after")
	}
	script(t, c.Begin(), "ok", "ok")
	for _, want := range []bool{false, true, false} { // it was used; not since; it is gone
		if hangUp, e := c.Tick(); hangUp != want || e != nil {
			t.Errorf("hangs up: %v, want %v; %v", hangUp, want, e)
		}
	}
	n := Name{Service: "a"}
	c.TakeAnswer(c.Request(n, "port", false), nil)
	_, e := c.Tick()
	if e == nil || !slices.Equal(script(t, e, "ok", "ok"), []Action{Connect, Renew, Finished}) {
		t.Error("the name is not published again")
	}
	if hangUp, e := c.Tick(); hangUp || e != nil || !c.NeedsTick() {
		t.Error("a connection with a name is not kept")
	}
	c.ConnectionLost()
	if _, e = c.Tick(); e == nil || !slices.Equal(script(t, e, "no"), []Action{Connect, Finished}) {
		t.Error("one try of each look")
	}
}
