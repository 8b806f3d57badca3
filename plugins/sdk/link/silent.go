package link

import (
	"errors"
	"fmt"
	"time"
)

// ErrSilent is wrapped by the error of a link whose peer has not answered for so long that
// its machine or the network must be down.
var ErrSilent = errors.New("its machine or the network between is down")

// SilentError is the error of a silent peer: which one, and for how long. It wraps
// ErrBroken and ErrSilent.
type SilentError struct {
	Peer string        // as its link names it
	For  time.Duration // time that the peer had for an answer; 0: not known
}

func (e *SilentError) Error() string {
	return fmt.Sprintf("nothing was heard from %s%s: %v", e.Peer, e.Time(), ErrSilent)
}

// Time returns " for 10s", or "" if the time is not known.
func (e *SilentError) Time() string {
	if e.For <= 0 {
		return ""
	}
	return fmt.Sprintf(" for %v", e.For)
}

// Unwrap returns ErrBroken and ErrSilent.
func (e *SilentError) Unwrap() []error { return []error{ErrBroken, ErrSilent} }
