package startup

import (
	"errors"
	"strings"
)

// ServerOutcome is what a site may expect of one server of a list.
type ServerOutcome uint8

// The prospects.
const (
	MayReturn  ServerOutcome = iota // the server may be there later
	WillRefuse                      // the server will not have this site
	JobFailed                       // the job has failed, whatever server the site goes to
)

// OutcomeAtServer returns what to expect of a server after the error with which startup has ended
// there. A server that is lost, stopped or has waited too long may be started again. A server's
// report that a site has failed holds at every server.
func OutcomeAtServer(err error) ServerOutcome {
	text := err.Error()
	if i := strings.LastIndex(text, ErrFailed.Error()+": "); errors.Is(err, ErrFailed) && i >= 0 {
		said := text[i+len(ErrFailed.Error())+2:]
		switch {
		case strings.HasPrefix(said, ErrAuth.Error()), strings.HasPrefix(said, ErrProtocol.Error()):
			return WillRefuse
		case strings.HasPrefix(said, ErrTimeout.Error()), strings.HasPrefix(said, ErrFull.Error()), strings.HasPrefix(said, Stopped),
			strings.HasPrefix(said, ErrMoved.Error()), strings.HasPrefix(said, ErrMet.Error()), said == errNotYours.Error():
			return MayReturn
		}
		return JobFailed
	}
	switch {
	case errors.Is(err, ErrLost), errors.Is(err, ErrTimeout), errors.Is(err, ErrBusy):
		return MayReturn
	}
	return WillRefuse
}

// Stopped begins the reason that a server sends when its operator stops it.
const Stopped = "the server was stopped"

// ChoosesServer reports whether the site of a client decides at which server of a list all sites
// meet: the site of client 0 is connected to one server at a time, and the other sites to all
// servers that they reach. So no two servers ever have all clients.
func (c *ClientConfig) ChoosesServer() bool { return c.Rank == 0 && !c.Spare }
