package spawn

import (
	"slices"

	"github.com/openimpi/impi/core/wire"
)

// Transaction is one spawn, until its procs are in Init or it is refused. The sites are asked for
// slots for its parts, one after the other, and the parts that have procs begin together. The
// caller calls SetPlan, Next and Answered until Next has no more, then Begin, and PartInInit for
// each of Parts. Refuse may come at any time.
type Transaction struct {
	Commands []Command
	Granted  []int         // number of procs of each command that have slots
	Parts    []*PlacedPart // parts that have procs, in the order of the new ranks

	plan    []*PlacedPart // no site asked yet
	clients int
	begun   bool
	inInit  int // number of parts in Init
	refusal *Refusal
}

// Reply is a site's answer to the request for a part. After the part has begun, the zero value
// means that its procs are in Init.
type Reply struct {
	Granted []int    `json:"granted,omitempty"` // number of procs, by command of the part
	Refused *Refusal `json:"refused,omitempty"`
}

// NewTransaction begins a spawn of commands, which it keeps. SetPlan has to follow.
func NewTransaction(commands []Command) *Transaction {
	return &Transaction{Commands: commands, Granted: make([]int, len(commands))}
}

// SetPlan sets the parts for which sites are asked, in the order in which Next returns them. It is
// called once; the transaction keeps plan.
func (t *Transaction) SetPlan(plan []*PlacedPart) { t.plan = plan }

// Next returns the next part for which a site is to be asked; ok is false if there are no more, or
// the transaction is refused.
func (t *Transaction) Next() (p *PlacedPart, ok bool) {
	if t.refusal != nil || len(t.plan) == 0 {
		return nil, false
	}
	p, t.plan = t.plan[0], t.plan[1:]
	return p, true
}

// Answered handles the answer to a part, which [Part.Fits] has checked. It returns false if the
// part may not begin, since it has no procs or the transaction is refused; the slots that were
// granted have to be released.
func (t *Transaction) Answered(p *PlacedPart, a Reply) (begins bool) {
	if t.refusal != nil || a.Refused != nil || !slices.ContainsFunc(a.Granted, func(n int) bool { return n > 0 }) {
		return false
	}
	if k := len(t.Parts) - 1; k < 0 || !p.shares(t.Parts[k]) {
		t.clients++
	}
	p.NewClient = wire.ClientRank(t.clients - 1)
	t.Parts = append(t.Parts, p)
	for i, n := range a.Granted {
		t.Granted[p.Commands[i].Number] += n
	}
	return true
}

// Clients returns the number of clients of the world.
func (t *Transaction) Clients() int { return t.clients }

// Begin begins the parts, once Next has no more. It returns why they may not begin, or nil.
func (t *Transaction) Begin() *Refusal {
	switch {
	case t.refusal != nil:
		return t.refusal
	case len(t.Parts) == 0:
		return Refuse(-1, "there are no slots for any of the procs")
	}
	t.begun = true
	return nil
}

// PartInInit records that the procs of one more part are in Init. It returns true if the procs of
// all parts are now in Init: a spawn does not return before (MPI-4.1, 11.8.2).
func (t *Transaction) PartInInit() (succeeded bool) {
	t.inInit++
	return t.refusal == nil && t.succeeded()
}

func (t *Transaction) succeeded() bool { return t.begun && t.inInit >= len(t.Parts) }

// Refuse ends the transaction. It returns false, and ignores r, if the transaction has ended
// before.
func (t *Transaction) Refuse(r *Refusal) bool {
	if t.refusal != nil || t.succeeded() {
		return false
	}
	t.refusal = r
	return true
}

// Refusal returns the reason why the transaction has failed, or nil if it has not.
func (t *Transaction) Refusal() *Refusal { return t.refusal }

// Codes returns the error class of each requested proc (MPI-4.1, 11.8.2).
func (t *Transaction) Codes() []int { return Codes(t.Commands, t.Granted, t.refusal) }

// TellsPart reports whether the node that ends a world which it has spawned says so to the node of
// a part: here if that is itself, inInit if the part's procs are in Init. Another node hears of the
// end of a world whose procs are in Init from the world's server.
func TellsPart(here, inInit bool) bool { return here || !inInit }

// EndsServer reports whether that node ends the world's server, too, which runs there: the server
// hears of the end from the parts of that node, if there are some, and tells the others.
func EndsServer(partsHere int) bool { return partsHere == 0 }
