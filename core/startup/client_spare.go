package startup

import (
	"fmt"

	"github.com/openimpi/impi/core/wire"
)

// NoClient is Job.Self at a spare site, which is not a client of the job.
const NoClient wire.ClientRank = -1

// ErrSpareForeign means that the job cannot have spare sites, since one of its sites runs another
// MPI: its clients have no common secret.
var ErrSpareForeign = fmt.Errorf("%w: a job with a site of another MPI takes no spare sites", ErrConfig)

// watchJob handles a command of the server at a spare site, which submits nothing and is sent the
// answers to all that the clients submit.
func watchJob(c *Client, f frame) error {
	switch {
	case f.cmd == wire.CmdIMPI && c.state == clientIMPI:
		n, err := wire.ParseIMPI(f.payload)
		switch {
		case err != nil:
			return fmt.Errorf("%w: %w", ErrProtocol, err)
		case n < 1 || n > wire.MaxClients:
			return fmt.Errorf("%w: IMPI: a job of %d clients; 1 to %d are possible", ErrValue, n, wire.MaxClients)
		}
		c.d = newDerivation(NoClient, int(n), c.cfg.Dialect)
		c.state = clientDone
		return nil
	case f.cmd == wire.CmdColl && c.state == clientDone:
		return watchAnswer(c, f.payload)
	case f.cmd == wire.CmdDone && c.state == clientDone:
		return watchDone(c)
	case f.cmd == wire.CmdColl && c.state == clientRunning:
		return nil // the server has lost a client and the job continues: its sites are informed
	case f.cmd == wire.CmdFini && c.state == clientRunning:
		c.state = clientFinished
		return nil
	}
	return fmt.Errorf("%w: the server sent %v while we waited for %s", ErrProtocol, f.cmd, c.awaited())
}

// watchAnswer handles the answer to a label (IMPI ch.2, COLL command). They come in ascending
// order, as values of hosts belong to hosts that earlier labels have announced.
func watchAnswer(c *Client, payload []byte) error {
	l, mask, data, err := wire.ParseAnswer(payload)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrProtocol, err)
	}
	if _, known := l.Info(); !known {
		return nil
	}
	if l <= c.taken {
		return fmt.Errorf("%w: the server answered %v after %v", ErrProtocol, l, c.taken)
	}
	if without, ok := unanswered(c.d, l); ok {
		return fmt.Errorf("%w: the server answered %v before %v", ErrProtocol, l, without)
	}
	c.taken = l
	return c.d.take(l, mask, data)
}

// unanswered returns the first label below one that every client must send and that was not
// answered.
func unanswered(d *derivation, below wire.Label) (l wire.Label, ok bool) {
	for _, info := range wire.StandardLabels() {
		if info.Label < below && !info.Optional && !d.said[info.Label] {
			return info.Label, true
		}
	}
	return 0, false
}

// watchDone ends startup at a spare site (IMPI ch.2, DONE command).
func watchDone(c *Client) error {
	without, ok := unanswered(c.d, wire.LabelCards)
	switch {
	case ok:
		return fmt.Errorf("%w: the server sent DONE without an answer to %v", ErrProtocol, without)
	case !c.d.job.AllOwn:
		return ErrSpareForeign
	case !c.d.said[wire.LabelCards]:
		return fmt.Errorf("%w: the server sent DONE without an answer to %v", ErrProtocol, wire.LabelCards)
	}
	c.d.settleProcs()
	c.d.job.Secret = c.d.job.Token
	c.state = clientRunning
	return nil
}
