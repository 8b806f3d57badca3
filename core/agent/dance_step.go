package agent

import (
	"fmt"

	"github.com/openimpi/impi/core/wire"
)

// StepKind says what a Step is about.
type StepKind uint8

// The steps of a dance.
const (
	Joined      StepKind = iota + 1 // Conn is the channel to Host from now on, instead of an earlier one if there is any
	Refuse                          // close Conn; Err says why. The dance goes on
	Complete                        // all channels are there
	TimedOut                        // they are not; Err names the missing hosts
	Prove                           // run a dynamic.Acceptor on Conn, whose first bytes Input took; Admits, Proven and Closed say the rest
	Unreachable                     // no channel to Host is possible, which Err says; the dance is over
)

var stepNames = [...]string{"none", "joined", "refuse", "complete", "timed out", "prove", "unreachable"}

// String names the kind.
func (k StepKind) String() string {
	if int(k) < len(stepNames) {
		return stepNames[k]
	}
	return fmt.Sprintf("step %d", uint8(k))
}

// Step is something that the dance's driver must know or do.
type Step struct {
	Kind StepKind
	Conn int
	Host wire.HostRank
	Err  error
}

// Next gives the oldest step that was not given yet.
func (d *Dance) Next() (Step, bool) {
	if len(d.steps) == 0 {
		return Step{}, false
	}
	s := d.steps[0]
	d.steps = d.steps[1:]
	return s, true
}
