package startup

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode"

	"github.com/openimpi/impi/core/wire"
)

// awaited names what the client is waiting for, as the object of a sentence.
func (c *Client) awaited() string {
	switch c.state {
	case clientAuth:
		return "the server's choice of a mechanism"
	case clientIMPI:
		return "all clients to come"
	case clientColl:
		info, _ := c.labels[0].Info()
		return "the answer to " + info.NameIn(c.cfg.Dialect)
	case clientDone:
		return "all clients to be DONE"
	case clientRunning:
		return "the end of the job"
	default:
		return "nothing"
	}
}

// hint guesses why a server that gives no reason has closed.
func (c *Client) hint() string {
	switch {
	case c.cfg.Spare && c.state > clientAuth:
		return "; the server may have died, or know no spare sites"
	case c.state == clientAuth:
		return fmt.Sprintf("; it may accept none of %v", c.cfg.Auth)
	case c.state == clientIMPI && c.mech == wire.MechKey:
		return fmt.Sprintf("; the server may have died, the key may be wrong, or client rank %d may be taken or not in the job", c.cfg.Rank)
	case c.state == clientIMPI:
		return fmt.Sprintf("; the server may have died, or client rank %d may be taken or not in the job", c.cfg.Rank)
	}
	return "; another client may have failed"
}

// lost returns the error of a connection that has ended; cause is nil if the peer closed it.
func lost(cause error, when string) error {
	if cause == nil {
		return fmt.Errorf("%w %s", ErrLost, when)
	}
	return fmt.Errorf("%w %s: %w", ErrLost, when, cause)
}

// lostClientText begins, after the client's name, what the server says of a client that it has lost
// after DONE.
var lostClientText = fmt.Sprintf("): %v before FINI (the last it sent was DONE)", ErrLost)

// EndedByLostClient reports whether the server has ended its connection because it has lost another
// client, whose startup was over.
func EndedByLostClient(err error) bool {
	if !errors.Is(err, ErrFailed) {
		return false
	}
	_, said, _ := strings.Cut(err.Error(), ErrFailed.Error()+": ")
	who, _, is := strings.Cut(said, lostClientText)
	return is && strings.HasPrefix(who, "client ") && !strings.Contains(who, "): ")
}

// AllListFailVersion reports whether all clients list FailVersion: their hosts send each other
// PkFail when a job fails.
func AllListFailVersion(j *Job) bool {
	return !slices.ContainsFunc(j.Clients, func(c ClientInfo) bool { return !c.Lists(wire.FailVersion) })
}

// Printable replaces the characters of a peer's text that must not get into a terminal or a log.
func Printable(b []byte) string {
	b = b[:min(len(b), wire.MaxFail)]
	s := strings.Map(func(r rune) rune {
		if unicode.IsPrint(r) {
			return r
		}
		return '?'
	}, strings.ToValidUTF8(string(b), "?"))
	return cmp.Or(s, "nothing")
}
