package agent

import (
	"fmt"

	"github.com/openimpi/impi/core/wire"
)

// StepKind is the kind of a Step.
type StepKind uint8

// The steps of a dance.
const (
	Joined      StepKind = iota + 1 // Conn is the channel to Host from now on; it replaces an earlier one
	Refuse                          // close Conn; Err says why. The dance goes on
	Complete                        // every channel exists; the dance has ended
	TimedOut                        // channels are missing at the deadline; Err names the hosts. The dance has ended
	Prove                           // run a dynamic.Acceptor on Conn with the bytes that Input took, and report by Admits, Proven and Closed
	Unreachable                     // no channel to Host is possible; Err says why. The dance has ended
)

var stepNames = [...]string{"none", "joined", "refuse", "complete", "timed out", "prove", "unreachable"}

// String returns the name of the kind.
func (k StepKind) String() string {
	if int(k) < len(stepNames) {
		return stepNames[k]
	}
	return fmt.Sprintf("step %d", uint8(k))
}

// Step is an action for the driver of a dance, or a report to it.
type Step struct {
	Kind StepKind
	Conn int
	Host wire.HostRank
	Err  error
}

// Next returns the oldest step that it has not returned yet, and false if there is none.
func (d *Dance) Next() (Step, bool) {
	if len(d.steps) == 0 {
		return Step{}, false
	}
	s := d.steps[0]
	d.steps = d.steps[1:]
	return s, true
}
