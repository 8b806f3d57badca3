package node

import (
	"errors"
	"fmt"

	"github.com/openimpi/impi/core/agent"
	"github.com/openimpi/impi/core/blame"
	"github.com/openimpi/impi/core/link"
	"github.com/openimpi/impi/internal/drive"
	"github.com/openimpi/impi/internal/node/ending"
	"github.com/openimpi/impi/internal/node/routes"
)

// channelLost is the failure of a job whose channel to a host has ended too early.
func channelLost(rt *routes.Table, ev agent.Event) *ending.Failure {
	host := rt.HostName(ev.Peer.Host)
	var silent *link.SilentError
	switch {
	case errors.Is(ev.Err, agent.ErrProtocol):
		f := ending.ConnectionLost(fmt.Sprintf("%s closed its channel before the job's end: %v", host, ev.Err), ev.Err)
		f.Weight = blame.Decided
		return f
	case !errors.As(ev.Err, &silent):
		return ending.ConnectionLost(fmt.Sprintf("%s closed its channel before the job's end: %v", host, ev.Err), ev.Err)
	}
	text := fmt.Sprintf("nothing was heard from %s%s: %v", host, silent.Time(), link.ErrSilent)
	if errors.Is(ev.Err, drive.ErrNotResumed) {
		text += fmt.Sprintf(" (%v)", ev.Err)
	}
	return ending.ConnectionLost(text, ev.Err)
}
