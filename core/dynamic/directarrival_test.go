package dynamic

import (
	"testing"
	"time"
)

// takes is a proc that takes links.
var takes = Receiver{Known: true, InMPI: true, Allowed: true}

func (r Receiver) with(f func(*Receiver)) Receiver {
	f(&r)
	return r
}

// TestDirectLinkReceiver: which procs take links, and by which transports.
func TestDirectLinkReceiver(t *testing.T) {
	for what, c := range map[string]struct {
		to   Receiver
		want Verdict
	}{
		"in MPI":              {takes, Accepted},
		"of another node":     {Receiver{InMPI: true, Allowed: true}, UnknownRank},
		"before MPI":          {takes.with(func(r *Receiver) { r.InMPI = false }), Leaving},
		"by a wrong route":    {takes.with(func(r *Receiver) { r.Allowed = false }), NotAllowed},
		"after MPI, no route": {Receiver{Known: true, Finished: true}, Leaving},
		"by a drained plugin": {takes.with(func(r *Receiver) { r.Leaves = true }), Accepted},
	} {
		var d DirectLinks[int]
		if v := d.Arrive(1, Hello{ResumableID: ResumableID{1}}, c.to, true); v != c.want {
			t.Errorf("%s: %v, want %v", what, v, c.want)
		}
		if entered := d.Resumable.Get(1) != nil || d.Pairs.Len() > 0; entered != (c.want == Accepted) {
			t.Errorf("%s: entered is %v", what, entered)
		}
	}
}

// TestDirectLinkArrivesAgain: which procs take a further connection of a link, and are told that it
// is lost at its other end.
func TestDirectLinkArrivesAgain(t *testing.T) {
	now := time.Unix(7, 0)
	id := ResumableID{1}
	again, told := Hello{ResumableID: id, Resumes: true}, Hello{ResumableID: id, Lost: true}
	leaves := takes.with(func(r *Receiver) { r.Leaves = true })
	for what, c := range map[string]struct {
		to    Receiver
		hello Hello
		order bool // that it leaves the plugin
		after time.Duration
		want  Verdict
	}{
		"in MPI":                    {takes, again, false, 0, Accepted},
		"of another node":           {takes.with(func(r *Receiver) { r.Known = false }), again, false, 0, UnknownRank},
		"by a wrong route":          {takes.with(func(r *Receiver) { r.Allowed = false }), again, false, 0, NotAllowed},
		"after MPI, by a wrong one": {Receiver{Known: true, Finished: true}, again, false, 0, Leaving},
		"another link":              {takes, Hello{ResumableID: ResumableID{2}, Resumes: true}, false, 0, UnknownLink},
		"its process has ended":     {takes.with(func(r *Receiver) { r.Ended = true }), again, false, 0, UnknownLink},
		"by the plugin it leaves":   {leaves, again, true, time.Second, NotAllowed},
		"some time later":           {leaves, again, true, moveTime, Accepted},
		"by another transport":      {takes, again, true, time.Second, Accepted},
		"not ordered":               {leaves, again, false, time.Second, Accepted},
		"the order itself":          {leaves, Hello{ResumableID: id, Lost: true}, true, time.Second, UnknownLink}, // it does not dial that one
		"another link, by it":       {leaves, Hello{ResumableID: ResumableID{2}, Resumes: true}, true, time.Second, NotAllowed},
	} {
		var d DirectLinks[int]
		s := d.Resumable.Add(1, id, false)
		if c.order {
			d.Moves.Ordered(now, s)
		}
		got, v := d.ArriveAgain(now.Add(c.after), 1, c.hello, c.to, time.Minute)
		if v != c.want || v == Accepted && got != s {
			t.Errorf("%s: %v, want %v", what, v, c.want)
		}
	}

	for what, c := range map[string]struct {
		epoch        uint64
		making, tell bool
		moves        bool
	}{
		"it is lost":         {3, false, true, false},
		"it has to leave":    {OrderedEpoch, false, true, true},
		"it has no link yet": {OrderedEpoch, true, false, false},
	} {
		var d DirectLinks[int]
		s := d.Resumable.Add(1, id, true)
		s.Making = c.making
		hello := told
		hello.Epoch = c.epoch
		if got, v := d.ArriveAgain(now, 1, hello, takes, time.Minute); v != Accepted || got != s {
			t.Errorf("%s: %v", what, v)
		}
		if tell := d.LostAtPeer(now, s, hello); tell != c.tell || d.Moves.Moves(s) != c.moves {
			t.Errorf("%s: told %v, moves %v", what, tell, d.Moves.Moves(s))
		}
	}
}

// TestRepaired: who dials tells its proc of each failure, and who has the other end dial only what
// that end's node has said.
func TestRepaired(t *testing.T) {
	for _, c := range []struct {
		what       Repair
		made       bool
		v          Verdict
		tell, over bool
	}{
		{Redial, true, Accepted, false, false},
		{Redial, false, Accepted, true, false},
		{Redial, false, UnknownLink, true, false},
		{Redial, false, Leaving, true, true},
		{TellPeer, true, Accepted, false, false},
		{TellPeer, false, Accepted, false, false},
		{TellPeer, false, UnknownLink, true, false},
		{TellPeer, false, Leaving, true, true},
	} {
		s := &ResumableLink{Busy: true}
		if tell, over := s.Repaired(c.what, c.made, c.v); tell != c.tell || over != c.over || s.Busy {
			t.Errorf("%+v: tell %v, over %v, busy %v", c, tell, over, s.Busy)
		}
	}
}

// TestBreak: the end that dials a link breaks it, and the other one asks it to.
func TestBreak(t *testing.T) {
	var m Moves
	if by := m.Break(&ResumableLink{Dialled: true}); by != BreakHere {
		t.Errorf("who dials: %v", by)
	}
	if by := m.Break(&ResumableLink{Busy: true}); by != Nobody {
		t.Errorf("a link that is lost: %v", by)
	}
	s := &ResumableLink{}
	if by := m.Break(s); by != AskPeer || !s.Busy {
		t.Errorf("who is dialled: %v, busy %v", by, s.Busy)
	}
}
