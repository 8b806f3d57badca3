package ending

import (
	"cmp"
	"fmt"
	"time"
)

// ProcState is the stage of a proc's life that it has reached.
type ProcState int32

// The states in their order.
const (
	Starting ProcState = iota // until its hello
	Greeted                   // it waits in Init
	InMPI                     // it runs between Init and Finalize
	Finished                  // it has passed Finalize
)

// Proc describes a proc at its end, as its node sees it.
type Proc struct {
	Name    string // name in messages
	Number  int    // number at its site
	State   ProcState
	Loss    string // earlier event, such as "it had lost its link to rank 2"; empty: none
	Aborted bool   // it has called MPI_Abort, and ProcAborted was called
}

// Exit describes how a process has ended.
type Exit struct {
	Text   string // completes a sentence that begins with the proc's name
	Status int    // as a shell would report it
	Unseen bool   // another process has collected the status
	At     time.Time
}

// ended returns the failure that the proc's end means, or nil.
func (p *Proc) ended(x Exit) *Failure {
	text := p.Name + " " + x.Text
	switch inOrder := x.Status == 0 || x.Unseen; {
	case p.Aborted, p.State == Finished && inOrder:
		return nil
	case p.State == Starting:
		text += " before it called MPI Init"
		if inOrder {
			text += ": was the program compiled by impicc? It seems to use another MPI, or none"
		}
	case p.State != Finished && inOrder:
		text += " without MPI Finalize"
	}
	return p.failure(text, x.Status, x.At)
}

func (p *Proc) aborted(code int, reason string, at time.Time) *Failure {
	text := fmt.Sprintf("%s called MPI Abort with code %d", p.Name, code)
	if reason != "" {
		text += ": " + reason
	}
	return p.failure(text, code&0xff, at)
}

// unlinked returns the failure of a proc that has lost its link to peer, and why.
func (p *Proc) unlinked(peer, why string) *Failure {
	return &Failure{Text: fmt.Sprintf("%s has lost its link to %s: %s", p.Name, peer, why), Status: StatusNode, Precedence: Unlinked}
}

// failure returns a failure of the proc. It is a consequence if something had happened to the proc
// before.
func (p *Proc) failure(text string, status int, at time.Time) *Failure {
	f := &Failure{Text: text, Status: status, Precedence: Died, Proc: p.Number + 1, At: at}
	f.Status = cmp.Or(f.Status, 1)
	if p.Loss != "" {
		f.Text += ", after " + p.Loss
		f.Precedence = Consequence
	}
	return f
}
