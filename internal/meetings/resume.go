package meetings

import (
	"time"

	"github.com/openimpi/impi/core/dynamic"
	"github.com/openimpi/impi/core/ending"
	"github.com/openimpi/impi/internal/wireup"
)

// resumeLimit returns the maximum time that a link may be without a connection; 0: links do not
// resume.
func (n *Node[P, C, L]) resumeLimit() time.Duration {
	if n.Resume == nil {
		return 0
	}
	return n.Resume()
}

// resumeWith is resumeLimit for a link to a proc with a business card.
func (n *Node[P, C, L]) resumeWith(theirs *dynamic.BusinessCard) time.Duration {
	if !theirs.Has(dynamic.ResumeWorldsFeature) {
		return 0
	}
	return n.resumeLimit()
}

// repair decides what is done about a link of a proc that has lost its connection, or that the proc
// has given up. A link that the node does not know is one that the other proc has given up as well,
// by a word that this proc may not have read: it is told at once, and need not wait.
func (n *Node[P, C, L]) repair(p P, m wireup.Message) {
	x, r := m.Meeting, m.Resumable
	s := Step[P, C]{Action: RepairLink, Proc: p, Pair: n.pair(p, m.Peer), Epoch: r.Epoch, Message: m}
	secret, ok := keyIn(x.Secret)
	card, err := dynamic.ParseBusinessCard([]byte(x.Card))
	if !worldIn(x.World, &s.Pair.Peer.World) || !ok || err != nil || len(r.Session) != dynamic.ResumableIDSize {
		return // the proc has said the same when it asked for the link
	}
	s.Token, s.Card = secret, card
	s.Link = n.Links.Resumable.Get(s.Pair)
	s.Repair = n.Links.Resumable.Repair(s.Pair, r.Session, r.Epoch, r.Over)
	switch {
	case s.Repair == dynamic.NoSuchLink && r.Over:
	case s.Repair == dynamic.NoSuchLink:
		m := furtherOf(s.Pair, dynamic.ResumableID(r.Session))
		m.Reason = "its node has forgotten the link, which it or the other proc has closed"
		n.do(Step[P, C]{Action: Answer, Proc: p, Message: m, Pair: s.Pair})
	case s.Repair == dynamic.Redial, s.Repair == dynamic.TellPeer:
		n.do(s)
	}
}

// Repaired records the end of a RepairLink. made is true if the proc gets a connection, or the other
// end's node has answered that its proc will dial; otherwise v is the verdict of that node, Accepted
// if it has sent none, and why the reason.
func (n *Node[P, C, L]) Repaired(s Step[P, C], made bool, v dynamic.Verdict, why string) {
	tell, over := s.Link.Repaired(s.Repair, made, v)
	if n.Links.Resumable.Get(s.Pair) != s.Link {
		over, why = false, "its node has forgotten the link"
		tell = !made
	}
	if tell {
		m := furtherOf(s.Pair, s.Link.ID)
		m.Reason, m.Resumable.Over = why, over
		n.do(Step[P, C]{Action: Answer, Proc: s.Proc, Message: m, Pair: s.Pair})
	}
	if n.Links.Resumable.Get(s.Pair) == s.Link { // else nobody wants it any more
		if s.Repair, s.Epoch = s.Link.Next(); s.Repair != dynamic.NoRepair {
			n.do(s)
		}
	}
}

// Further returns the message with which a proc gets a further connection of a link, and counts it.
func (n *Node[P, C, L]) Further(x dynamic.WorldPair, l *dynamic.ResumableLink) wireup.Message {
	l.Resumes++
	return furtherOf(x, l.ID)
}

func furtherOf(x dynamic.WorldPair, id dynamic.ResumableID) wireup.Message {
	m := about(x)
	m.Resumable = &wireup.Resumable{Session: id[:], Again: true}
	return m
}

// ArriveAgain decides about a further connection that another world's node has made for a link, or
// about its message that its proc has lost the last one. If a proc of ours has to ask for another
// connection, tell is what it is told before the answer.
func (n *Node[P, C, L]) ArriveAgain(now time.Time, x dynamic.WorldPair, h dynamic.Hello, to Receiver) (l *dynamic.ResumableLink, v dynamic.Verdict, tell *wireup.Message) {
	l, v = n.Links.ArriveAgain(now, x, h, dynamic.Receiver{
		Known: to.Known && x.Peer.World != n.World, Finished: to.State == ending.Finished, Ended: to.Ended, Allowed: to.Allowed,
	}, n.resumeLimit())
	if v == dynamic.Accepted && h.Lost && n.Links.LostAtPeer(now, l, h) {
		m := furtherOf(x, l.ID)
		m.Resumable.Lost, m.Resumable.Epoch = true, h.Epoch
		tell = &m
	}
	return l, v, tell
}
