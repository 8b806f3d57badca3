package meetings

import (
	"fmt"
	"slices"

	"github.com/openimpi/impi/core/dynamic"
	"github.com/openimpi/impi/internal/wireup"
)

// MaxQuestions is the maximum number of links that are dialled at once to one node by which procs
// ask whether procs of that node live, and on which it has not answered yet.
const MaxQuestions = 32

// questions are the links by which procs ask whether a proc of another world lives, to which their
// link has broken (wireup.OtherWorld.LifeCheck). If a site is lost, each proc of each other one
// asks about each proc of that site. So of those that are to one node one is dialled first, and the
// others wait: if it reaches nobody, they have the same answer. With each answer of the node one
// more is dialled at once, up to MaxQuestions.
type questions[P Proc, C any] struct {
	last QuestionID
	of   map[string]*questioning[P, C] // by the business card of the node
	all  map[QuestionID]string         // those that are dialled and not answered, with the card
}

// QuestionID identifies a question that is dialled; 0 is a link that a proc needs for its messages.
type QuestionID uint64

type questioning[P Proc, C any] struct {
	dialled map[QuestionID]dynamic.WorldPair // and not answered yet
	waiting []question[P, C]
	covered int // number of those in waiting that have the answer of the dial that is under way
	answers int // of the node, since it was not reached; at most MaxQuestions-1
}

type question[P Proc, C any] struct {
	dial Step[P, C]
	x    *wireup.OtherWorld
}

func (q *questioning[P, C]) room() bool { return len(q.dialled) <= q.answers }

// ask has a question be dialled now or later.
func (n *Node[P, C, L]) ask(x question[P, C]) {
	qs, card := &n.questions, x.x.Card
	if qs.of == nil {
		qs.of, qs.all = make(map[string]*questioning[P, C]), make(map[QuestionID]string)
	}
	if qs.of[card] == nil {
		qs.of[card] = &questioning[P, C]{dialled: make(map[QuestionID]dynamic.WorldPair)}
	}
	q, pair := qs.of[card], x.dial.Pair
	switch state := n.Links.Pairs.State(pair); {
	case state == dynamic.Dialling || state == dynamic.Yielding:
		n.Links.Ask(pair, x.x) // it is dialled, though perhaps for messages
	case !slices.ContainsFunc(q.waiting, func(y question[P, C]) bool { return y.dial.Pair == pair }):
		q.waiting = append(q.waiting, x)
	}
	n.dialQuestions(card)
}

func (n *Node[P, C, L]) dialQuestions(card string) {
	qs := &n.questions
	q := qs.of[card]
	for len(q.waiting) > 0 && q.room() {
		x := q.waiting[0]
		q.waiting, q.covered = q.waiting[1:], max(q.covered-1, 0)
		if !n.Links.Ask(x.dial.Pair, x.x) {
			continue // there is a link, or one is being made
		}
		qs.last++
		x.dial.Question = qs.last
		q.dialled[qs.last], qs.all[qs.last] = x.dial.Pair, card
		n.do(x.dial)
	}
	if len(q.waiting) == 0 && len(q.dialled) == 0 {
		delete(qs.of, card)
	}
}

// Dialling records that the search for a link begins to dial. If that reaches nobody, it answers
// what was asked before.
func (n *Node[P, C, L]) Dialling(id QuestionID) {
	if q := n.questions.of[n.questions.all[id]]; q != nil {
		q.covered = len(q.waiting)
	}
}

// Dialled records the result of a dial. The node of the peer has answered it by a link or by any
// verdict.
func (n *Node[P, C, L]) Dialled(id QuestionID, r dynamic.DialResult) {
	if r.Err != nil && r.Verdict == dynamic.Accepted {
		return
	}
	if q, card := n.questions.end(id); q != nil {
		q.answers = min(q.answers+1, MaxQuestions-1)
		n.dialQuestions(card)
	}
}

// SearchEnded records that the search for a link is over, before the proc gets the link. If none was
// found, why is the reason, which the proc is told, and ErrLives with it if the peer's node has
// answered that the peer has a link or makes one.
func (n *Node[P, C, L]) SearchEnded(p P, x dynamic.WorldPair, id QuestionID, last dynamic.DialStep, why error) {
	if last.Action != dynamic.GiveUp {
		n.dialEnded(id, nil)
		return
	}
	if last.PeerLives() {
		why = fmt.Errorf("%w: %w", ErrLives, why)
	}
	n.dialEnded(id, why)
	n.SetNoLink(p, x, why)
}

// dialEnded records that the search for a link is over. why is the reason if it has reached nobody,
// which is then the answer for others that ask the same node.
func (n *Node[P, C, L]) dialEnded(id QuestionID, why error) {
	q, card := n.questions.end(id)
	if q == nil {
		return
	}
	if why != nil {
		same := q.waiting[:q.covered]
		q.waiting, q.covered, q.answers = q.waiting[q.covered:], 0, 0
		for _, y := range same {
			if n.Links.Pairs.State(y.dial.Pair) == dynamic.Unlinked {
				n.SetNoLink(y.dial.Proc, y.dial.Pair, why)
			}
		}
	}
	n.dialQuestions(card)
}

// end removes a question that is dialled. It returns nil if it was answered before.
func (qs *questions[P, C]) end(id QuestionID) (q *questioning[P, C], card string) {
	card = qs.all[id]
	if q = qs.of[card]; q != nil {
		delete(q.dialled, id)
		delete(qs.all, id)
	}
	return q, card
}

// forget removes what a proc that has ended wants to know.
func (qs *questions[P, C]) forget(p P) {
	for _, q := range qs.of {
		old, covered := q.waiting, q.covered
		q.waiting, q.covered = nil, 0
		for i, x := range old {
			if x.dial.Proc == p {
				continue
			}
			q.waiting = append(q.waiting, x)
			if i < covered {
				q.covered++
			}
		}
	}
}
