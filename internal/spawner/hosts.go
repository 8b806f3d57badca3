package spawner

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/openimpi/impi/core/ending"
	"github.com/openimpi/impi/core/spawn"
)

// Nodes of a site's hosts ask each other by way of the head, in JSON. The node of the proc that
// spawns gets slots from the head (claim), makes the host of each host part look for programs
// (prepare), start them (begin) and report when they are in Init (settled). Until then it can give
// them up (end). When the procs of a host have ended, the host returns their slots to the head
// (release) and reports why they have ended (over). A question to the node itself goes the same
// way, but is not sent: see do.

// The questions: hostRequest.Do.
const (
	doNumber  = "number"  // get the number of the next world of the site
	doClaim   = "claim"   // get slots for Commands on Hosts
	doRelease = "release" // return the slots of Claim, at one host or all
	doPrepare = "prepare" // prepare Part, with slots of Claim
	doBegin   = "begin"   // start what was prepared for Claim
	doSettled = "settled" // ask whether its procs are in Init
	doEnd     = "end"     // give it up
	doOver    = "over"    // report to its parent that nothing is left of it, and why

	doWithdraw = "withdraw" // cancel Claim, which may arrive later than this
)

type hostRequest struct {
	Do        string          `json:"do"`
	Claim     claim           `json:"claim,omitzero"`
	At        int             `json:"at,omitempty"`    // the host; release: -1 is all hosts
	Hosts     []int           `json:"hosts,omitempty"` // of a claim
	Commands  []spawn.Command `json:"commands,omitempty"`
	Part      *spawn.Part     `json:"part,omitempty"`      // of prepare
	Elsewhere bool            `json:"elsewhere,omitempty"` // another site spawns it
	Start     *start          `json:"start,omitempty"`     // of begin
	Reason    string          `json:"reason,omitempty"`    // of end
	Failure   *failed         `json:"failure,omitempty"`   // of over

	// At this node alone:
	why  *ending.Failure // end: includes Reason and more
	what *Local          // settled: it may have ended since
}

type failed struct {
	Text   string            `json:"text"`
	Status int               `json:"status"`
	Remote bool              `json:"remote,omitempty"`
	Weight ending.Precedence `json:"weight"`
	Late   bool              `json:"late,omitempty"`

	whole *ending.Failure // at the node where it happened
}

// tell is what other hosts are told of an outcome; nil if it is no failure.
func tell(o ending.Outcome) *failed {
	f := o.Failure
	if f == nil {
		return nil
	}
	return &failed{f.Text, f.Status, f.Remote, f.Precedence, o.Late, f}
}

func (x *failed) outcome() (o ending.Outcome) {
	switch {
	case x == nil:
		return o
	case x.whole != nil:
		return ending.Outcome{Failure: x.whole, Late: x.Late}
	}
	return ending.Outcome{Failure: &ending.Failure{Text: x.Text, Status: x.Status, Remote: x.Remote, Precedence: x.Weight}, Late: x.Late}
}

type result struct {
	Number    int              `json:"number,omitempty"`
	Head      string           `json:"head,omitempty"` // begin, at the first host of several: where it accepts the others
	Granted   []int            `json:"granted,omitempty"`
	HostParts []spawn.HostPart `json:"pieces,omitempty"`
	Wait      bool             `json:"wait,omitempty"` // it is not settled yet: ask again
	Refused   *spawn.Refusal   `json:"refused,omitempty"`
	Proc      int              `json:"proc,omitempty"` // the proc that has failed, among those of the client, from 1; 0: none

	what *Local // of prepare, at this node
}

// Time limits for other hosts.
const (
	settleTurn      = 20 * time.Second // for one answer whether procs are in Init
	hostRequestTime = 5 * time.Second  // for a host to receive a request
)

func (d *Spawner) runs(host int) bool { return d.Hosts == nil || host == d.Self }

// askHost asks the spawner of a host. This one answers itself if the host is its own, or if it has
// all hosts.
func (d *Spawner) askHost(ctx context.Context, host int, e *hostRequest) (a result, err error) {
	if d.runs(host) {
		return d.do(ctx, e), ctx.Err()
	}
	question, err := json.Marshal(e)
	if err != nil {
		return a, err
	}
	b, err := d.Ask(ctx, host, question)
	if err != nil {
		return a, err
	}
	if err := json.Unmarshal(b, &a); err != nil {
		return a, fmt.Errorf("its answer cannot be read: %w", err)
	}
	return a, nil
}

// tellHost is askHost for what must be told although nobody waits any more.
func (d *Spawner) tellHost(host int, e *hostRequest) {
	ctx, cancel := context.WithTimeout(context.Background(), hostRequestTime)
	defer cancel()
	if _, err := d.askHost(ctx, host, e); err != nil {
		d.Log.Debug("cannot tell a host of the site that spawned procs have ended", "host", d.hosts()[host].String(), "error", err)
	}
}

// Answer handles a question of the node of another host of the site. ctx ends when that node waits
// no longer.
func (d *Spawner) Answer(ctx context.Context, question []byte) []byte {
	var e hostRequest
	if err := json.Unmarshal(question, &e); err != nil {
		return nil
	}
	a := result{Refused: e.check()}
	if a.Refused == nil {
		a = d.do(ctx, &e)
	}
	b, _ := json.Marshal(a) // numbers and strings
	return b
}

func (e *hostRequest) check() *spawn.Refusal {
	switch {
	case e.Do != doPrepare:
		return nil
	case e.Part == nil:
		return spawn.Refuse(-1, "a request without a part")
	}
	return e.Part.Check()
}

func (d *Spawner) do(ctx context.Context, e *hostRequest) (a result) {
	at := hostClaim{e.Claim, e.At}
	switch e.Do {
	case doNumber:
		d.mu.Lock()
		defer d.mu.Unlock()
		d.worlds++
		return result{Number: d.worlds}
	case doClaim:
		return d.reserveSlots(ctx, e)
	case doRelease:
		d.withSlots(func() {
			if e.At >= 0 {
				d.slots.ReleaseAt(e.Claim, e.At)
				return
			}
			d.slots.Cancel(e.Claim)
			d.slots.Release(e.Claim)
		})
		return a
	case doWithdraw:
		d.withSlots(func() { d.slots.Withdraw(e.Claim) })
		return a
	case doOver:
		if h := d.hostPartOf(at); h != nil {
			h.isGone(e.Failure)
		}
		return a
	}
	if d.Hosts != nil {
		at.at = d.Self
	}
	if e.Do == doPrepare {
		a.what, a.Refused = d.prepare(at, e.Part, e.Elsewhere)
		return a
	}
	p := e.what
	if p == nil {
		p = d.preparedAt(at)
	}
	if p == nil {
		return result{Refused: spawn.Refuse(-1, "host %s has no prepared part that could %s", d.hosts()[d.Self], e.Do)}
	}
	switch e.Do {
	case doBegin:
		if !d.check(e.Start, e.At) {
			return result{Refused: spawn.Refuse(-1, "a malformed order to begin %s", p.part.World)}
		}
		var err error
		if a.Head, err = p.begin(e.Start); err != nil {
			return result{Refused: spawn.Refuse(-1, "%v", err)}
		}
	case doSettled:
		return d.settledIn(ctx, p)
	case doEnd:
		if e.why == nil {
			e.why = ending.EndedByParents(e.Reason)
		}
		p.end(e.why)
	}
	return a
}

func (d *Spawner) check(s *start, host int) bool {
	if s == nil || s.Client < 0 || s.Client >= len(s.Sites) {
		return false
	}
	x, all := s.Hosts, len(d.hosts())
	if x == nil {
		return true
	}
	for i, h := range x.Hosts {
		if h < 0 || h >= all || i >= len(x.Procs) || x.Procs[i] < 1 || x.Procs[i] > spawn.MaxProcs {
			return false
		}
	}
	return len(x.Procs) == len(x.Hosts) && x.Self >= 0 && x.Self < len(x.Hosts) && x.Hosts[x.Self] == host && len(x.Secret) == secretSize && (x.Self == 0) == (x.Head == "")
}

func (d *Spawner) preparedAt(at hostClaim) *Local {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.parts[at]
}

func (d *Spawner) settledIn(ctx context.Context, p *Local) (a result) {
	if p.done == nil {
		return result{Refused: spawn.Refuse(-1, "%s was not begun", p.part.World)}
	}
	turn := time.NewTimer(settleTurn)
	defer turn.Stop()
	select {
	case <-p.node.Ready():
	case <-p.done:
		a.Refused, a.Proc = p.whyEnded()
	case <-turn.C:
		a.Wait = true
	case <-ctx.Done():
		a.Wait = true
	}
	return a
}
