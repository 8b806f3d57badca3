package proc

import (
	"errors"
	"testing"

	"github.com/openimpi/impi/core/dynamic"
	"github.com/openimpi/impi/core/message"
)

// TestDoubt: an error that says that a proc has died makes a world lost, unless both jobs go on
// without procs.
func TestDoubt(t *testing.T) {
	for _, x := range []struct {
		ours, theirs, leaving bool
		why                   error
		lost                  bool
	}{
		{ours: true, theirs: true, why: message.ErrPeerDown},
		{ours: true, theirs: true, why: ErrPeerGone},
		{ours: true, theirs: true, why: ErrUnreachable},
		{ours: true, theirs: true, leaving: true, why: message.ErrPeerDown, lost: true},
		{ours: true, why: message.ErrPeerDown, lost: true},
		{theirs: true, why: message.ErrPeerDown, lost: true},
		{why: ErrUnreachable, lost: true},
		{why: errors.New("something else")},
	} {
		p := &Process{Eng: &message.Engine{}}
		if x.ours {
			p.Survival = &Survival{p: p}
		}
		w := &ConnectedWorld{Description: &dynamic.Description{Limits: dynamic.Limits{Survive: x.theirs}}, Leaving: x.leaving}
		(&worlds{p: p}).MarkLost([]*ConnectedWorld{w}, x.why)
		if w.lost != x.lost {
			t.Errorf("%+v: lost %t", x, w.lost)
		}
	}
}
