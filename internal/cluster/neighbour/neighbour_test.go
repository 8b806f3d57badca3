package neighbour_test

import (
	"errors"
	"testing"
	"time"

	"github.com/openimpi/impi/core/membership"
	"github.com/openimpi/impi/internal/cluster/neighbour"
	"github.com/openimpi/impi/internal/rpc/proto"
)

var now = time.Unix(1, 0)

// member is host 1 of seven: its parent is host 0, its children are hosts 3 and 4, and nobody is
// below those.
func member(t *testing.T) *membership.Member {
	t.Helper()
	m, err := membership.New(membership.Config{
		Tree: membership.Tree{Hosts: 7, Fan: 2}, Self: 1, Beat: time.Second, Silence: 3 * time.Second, Deadline: now.Add(time.Hour),
	}, now)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// TestUp has a parent take what a child's steps are as messages.
func TestUp(t *testing.T) {
	m := member(t)
	for _, child := range []int{3, 4} {
		if err := m.Attach(child, now); err != nil {
			t.Fatal(err)
		}
		for _, s := range []membership.Step{
			{Kind: membership.Wait},
			{Kind: membership.Report, Parts: []membership.Part{{Host: child, Data: []byte{byte(child)}}}},
			{Kind: membership.Finished},
		} {
			if forHead, err := neighbour.FromChild(m, child, neighbour.ToParent(s), now); forHead || err != nil {
				t.Fatalf("step %d of host %d: for the head %v, %v", s.Kind, child, forHead, err)
			}
		}
	}
	m.Submit([]byte{1}, now)
	m.Finish(now)
	var report membership.Step
	finished := false
	for s, ok := m.Next(); ok; s, ok = m.Next() {
		switch s.Kind {
		case membership.Report:
			report = s
		case membership.Finished:
			finished = true
		}
	}
	parts := neighbour.ToParent(report).GetParts().GetPart()
	if !finished || len(parts) != 3 {
		t.Fatalf("finished %v, and %d parts of 3", finished, len(parts))
	}
	for i, host := range []int32{1, 3, 4} {
		if p := parts[i]; p.GetHost() != host || len(p.GetData()) != 1 || p.GetData()[0] != byte(host) {
			t.Errorf("part %d is %v, want that of host %d", i, p, host)
		}
	}
	if w := neighbour.ToParent(membership.Step{Kind: membership.Lost, Hosts: []int{3}}); w != nil {
		t.Errorf("the parent is told %v of a loss", w)
	}
}

// TestForHead passes on what is for the head, if its sender may say it.
func TestForHead(t *testing.T) {
	of := func(host int32) *proto.Message { return &proto.Message{Host: host} }
	for _, c := range []struct {
		what    string
		w       *proto.Up
		forHead bool
		err     error
	}{
		{"a beat", neighbour.BeatUp, false, nil},
		{"leaving", &proto.Up{Word: &proto.Up_Bye{Bye: &proto.Nothing{}}}, false, nil},
		{"staying", &proto.Up{Word: &proto.Up_Stays{Stays: &proto.Nothing{}}}, true, nil},
		{"its own failure", &proto.Up{Word: &proto.Up_Fails{Fails: of(3)}}, true, nil},
		{"the failure of another", &proto.Up{Word: &proto.Up_Fails{Fails: of(4)}}, true, membership.ErrPart},
		{"the failure of no host", &proto.Up{Word: &proto.Up_Fails{Fails: of(-1)}}, true, membership.ErrPart},
		{"an answer of another", &proto.Up{Word: &proto.Up_Answer{Answer: of(1)}}, true, membership.ErrPart},
		{"a question of another", &proto.Up{Word: &proto.Up_Asks{Asks: &proto.HostQuestion{Message: of(7)}}}, true, membership.ErrPart},
		{"a question of nobody", &proto.Up{Word: &proto.Up_Asks{}}, true, membership.ErrPart},
		{"the address of another", &proto.Up{Word: &proto.Up_Listens{Listens: &proto.Listens{Host: 6}}}, true, membership.ErrPart},
		{"the part of another", &proto.Up{Word: &proto.Up_Parts{Parts: &proto.Parts{Part: []*proto.Part{{Host: 4}}}}}, false, membership.ErrPart},
		{"nothing", &proto.Up{}, false, neighbour.ErrUnknown},
	} {
		m := member(t)
		if err := m.Attach(3, now); err != nil {
			t.Fatal(err)
		}
		if forHead, err := neighbour.FromChild(m, 3, c.w, now); forHead != c.forHead || !errors.Is(err, c.err) {
			t.Errorf("%s: for the head %v, %v; want %v, %v", c.what, forHead, err, c.forHead, c.err)
		}
	}
}

// TestForBelow hands down what is for all hosts, and loses nobody once the job is over.
func TestForBelow(t *testing.T) {
	for _, c := range []struct {
		w        *proto.Down
		forBelow bool
	}{
		{neighbour.BeatDown, false},
		{&proto.Down{Word: &proto.Down_Asks{Asks: &proto.Message{Host: 3}}}, false},
		{&proto.Down{Word: &proto.Down_Job{Job: []byte("job")}}, true},
		{&proto.Down{Word: &proto.Down_Signal{Signal: 15}}, true},
		{&proto.Down{Word: &proto.Down_Stop{Stop: &proto.Nothing{}}}, true},
		{&proto.Down{Word: &proto.Down_Over{}}, true},
	} {
		m := member(t)
		m.Join(now)
		if got := neighbour.FromParent(m, 0, c.w, now); got != c.forBelow {
			t.Errorf("%v: for all below %v, want %v", c.w, got, c.forBelow)
		}
		m.Disconnected(0, errors.New("gone"), now)
		_, over := c.w.GetWord().(*proto.Down_Over)
		if s, lost := m.Next(); lost == over || lost && s.Kind != membership.Lost {
			t.Errorf("%v: the parent is lost: %v (%v)", c.w, lost, s)
		}
	}
}

// TestGrandchild passes on what a child says for a host below it.
func TestGrandchild(t *testing.T) {
	m, err := membership.New(membership.Config{
		Tree: membership.Tree{Hosts: 7, Fan: 2}, Beat: time.Second, Silence: 3 * time.Second, Deadline: now.Add(time.Hour),
	}, now)
	if err != nil {
		t.Fatal(err)
	}
	for host, want := range map[int32]error{1: nil, 3: nil, 4: nil, 0: membership.ErrPart, 2: membership.ErrPart, 5: membership.ErrPart} {
		forHead, err := neighbour.FromChild(m, 1, &proto.Up{Word: &proto.Up_Fails{Fails: &proto.Message{Host: host}}}, now)
		if !forHead || !errors.Is(err, want) {
			t.Errorf("host 1 for host %d: for the head %v, %v; want %v", host, forHead, err, want)
		}
	}
}
