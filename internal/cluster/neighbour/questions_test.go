package neighbour_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/openimpi/impi/core/membership"
	"github.com/openimpi/impi/internal/cluster/neighbour"
	"github.com/openimpi/impi/internal/rpc/proto"
)

// TestQuestion has host 3 ask host 4 by way of the head, and host 1 pass what is not for it.
func TestQuestion(t *testing.T) {
	head, between, asker, asked := &neighbour.Questions{}, &neighbour.Questions{Self: 1}, &neighbour.Questions{Self: 3}, &neighbour.Questions{Self: 4}
	var got *proto.Message
	_, up, down := asker.Ask(4, []byte("how many?"), time.Second, func(a *proto.Message) { got = a })
	if down != nil || up.GetAsks().GetTo() != 4 || up.GetAsks().GetMessage().GetHost() != 3 {
		t.Fatalf("%v, %v", up, down)
	}
	q := up.GetAsks().GetMessage()
	_, up, down = head.Ask(4, q.GetData(), time.Second, func(a *proto.Message) { down = neighbour.ForwardAnswer(q, a.GetData(), neighbour.ErrorOf(a)) })
	if up != nil {
		t.Fatalf("the head has no parent: %v", up)
	}
	for _, below := range []*neighbour.Questions{between, asked} {
		m, to, pass := below.FromParent(down)
		if to != 4 || pass != (below == between) || (m == nil) != pass {
			t.Fatalf("host %d: %v for host %d, passed on: %v", below.Self, m, to, pass)
		}
		if !pass {
			head.Answer(neighbour.Reply(m, []byte("two"), nil).GetAnswer())
		}
	}
	if m, to, pass := between.FromParent(down); m != nil || to != 3 || !pass {
		t.Fatalf("the answer at host 1: %v, %d, %v", m, to, pass)
	}
	if m, _, pass := asker.FromParent(down); m != nil || pass || string(got.GetData()) != "two" {
		t.Fatalf("the answer at host 3: %v, %v, %v", m, pass, got)
	}
	if n := head.Waiting() + asker.Waiting(); n != 0 {
		t.Errorf("%d answers are waited for", n)
	}
}

func TestNobodyWaits(t *testing.T) {
	q := &neighbour.Questions{Self: 1}
	calls := 0
	id, up, _ := q.Ask(0, nil, time.Second, func(*proto.Message) { calls++ })
	a := neighbour.ForwardAnswer(up.GetAsks().GetMessage(), nil, nil)
	q.Drop(id)
	q.FromParent(a)
	id, up, _ = q.Ask(0, nil, time.Second, func(*proto.Message) { calls++ })
	if a = neighbour.ForwardAnswer(up.GetAsks().GetMessage(), nil, nil); a.GetAnswer().GetId() != id {
		t.Error("the answer is to another question")
	}
	q.FromParent(a)
	if q.FromParent(a); calls != 1 {
		t.Errorf("%d answers are heard of one that was dropped and one that came twice", calls)
	}
}

func TestErrorsOfAnswers(t *testing.T) {
	other := errors.New("no such world")
	for _, err := range []error{nil, neighbour.ErrAbsent, context.DeadlineExceeded, other} {
		a := neighbour.Reply(&proto.Message{Host: 2}, []byte("x"), err).GetAnswer()
		if got := neighbour.ErrorOf(a); err != nil && got.Error() != err.Error() || (err == nil) != (string(a.GetData()) == "x") || err != other && !errors.Is(got, err) {
			t.Errorf("%v becomes %v with %q", err, got, a.GetData())
		}
	}
	if a := neighbour.Reply(&proto.Message{}, make([]byte, neighbour.MaxAnswer+1), nil).GetAnswer(); a.GetError() == "" || len(a.GetData()) > 0 {
		t.Error("an answer that is too large is sent")
	}
}

func TestParentOf(t *testing.T) {
	tree := membership.Tree{Hosts: 7, Fan: 2}
	listens := map[int]string{1: "10.0.0.1:7"}
	if p := neighbour.ParentOf(tree, 2, listens); p == nil || p.GetHost() != 0 || p.GetAddress() != "" {
		t.Errorf("of host 2: %v", p)
	}
	if p := neighbour.ParentOf(tree, 3, listens); p.GetHost() != 1 || p.GetAddress() != listens[1] {
		t.Errorf("of host 3: %v", p)
	}
	if p := neighbour.ParentOf(tree, 5, listens); p != nil {
		t.Errorf("of host 5, whose parent is not there: %v", p)
	}
}
