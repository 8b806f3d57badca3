package startup

import (
	"bytes"
	"errors"
	"fmt"
	"iter"
	"slices"

	"github.com/openimpi/impi/core/dynamic"
	"github.com/openimpi/impi/core/wire"
)

// Reasons why a job cannot connect to other worlds.
var (
	errMeetsForeign = errors.New("this client is another MPI's")
	errMeetsCards   = errors.New("not every proc has a business card")
)

// Describe returns the head of the job's description for other worlds, from which Procs.Describe
// makes the whole [dynamic.Description]. The result is the same at all sites; but if the job has
// foreign clients, each own site gets its own description, in which it alone can be reached. The
// error is the reason why the job cannot connect to other worlds.
func (j *Job) Describe() (head []byte, err error) {
	if !j.Clients[j.Self].Own {
		return nil, errMeetsForeign
	}
	token := dynamic.Token(j.Token)
	d := dynamic.Description{World: token.World(), Secret: token.Meeting(), Limits: dynamic.Limits{
		DataLen: j.DataLen, AckMark: j.AckMark, HiWater: j.HiWater,
		TagUB: int32(j.TagUB), XSize: j.XSize, MaxLinear: j.MaxLinear,
		Survive: !slices.ContainsFunc(j.Clients, func(c ClientInfo) bool { return !c.Lists(wire.SurviveVersion) }),
	}}
	groups := 0
	for x := range j.Procs.groups() {
		if len(x.Card) == 0 && (j.AllOwn || x.Client == j.Self) {
			return nil, fmt.Errorf("%w: rank %d, client %d", errMeetsCards, x.First, x.Client)
		}
		groups++
	}
	head = d.AppendHead(nil, groups)
	_, err = dynamic.ReadDescription(j.Procs.Describe(head)) // other worlds do so too
	return head, err
}

// Describe returns the job's description for other worlds; head is the result of Job.Describe.
func (p *Procs) Describe(head []byte) []byte {
	b, blank := bytes.Clone(head), p.blankCard()
	for x := range p.groups() {
		if len(x.Card) == 0 {
			x.Card = blank
		}
		b = dynamic.AppendGroup(b, x.N, int(x.Client), x.Card)
	}
	return b
}

// blankCard returns the card of procs that other worlds cannot reach, such as another client's in a
// job with clients of others: that of a proc with a card, without its node and its offers.
func (p *Procs) blankCard() []byte {
	for x := range p.Runs() {
		if c, err := dynamic.ParseBusinessCard(x.Card); err == nil {
			c.Node, c.Addresses = "", nil
			b, _ := c.AppendText(nil) // cannot fail: less than was parsed
			return b
		}
	}
	return nil
}

// groups yields procs in a row that are of one client and have one card.
func (p *Procs) groups() iter.Seq[ProcRun] {
	return func(yield func(ProcRun) bool) {
		var group ProcRun
		for x := range p.Runs() {
			if group.N > 0 && x.Client == group.Client && bytes.Equal(x.Card, group.Card) {
				group.N += x.N
				continue
			}
			if group.N > 0 && !yield(group) {
				return
			}
			group = x
		}
		if group.N > 0 {
			yield(group)
		}
	}
}
