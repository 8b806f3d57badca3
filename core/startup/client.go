package startup

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/openimpi/impi/core/wire"
)

type clientState uint8

const (
	clientNew clientState = iota
	clientAuth
	clientIMPI
	clientColl
	clientDone
	clientRunning
	clientFinished
	clientFailed
)

// Client is a client's side of startup (IMPI ch.2, Startup). Its owner connects to the
// server, calls Start once, and then Receive, Closed or Tick for whatever happens, and
// sends Output after each call. The first error is final: the owner sends what Output still
// has and closes.
//
// It submits every label of IMPI 0.0 in ascending order, except for those that it is told
// to omit, and waits for each answer before it submits the next, as all implementations in
// the field do.
type Client struct {
	cfg      ClientConfig
	state    clientState
	in       reader
	out      []byte
	deadline time.Time
	mech     wire.Mechanism
	labels   []wire.Label // labels not answered yet; labels[0] has been sent
	taken    wire.Label   // the highest label whose answer was handled
	d        *derivation
	others   []error // server's reports of clients that it has lost; see TakeLostClient
	err      error
}

// NewClient returns a client, or an error if cfg is not valid.
func NewClient(cfg ClientConfig) (*Client, error) {
	if err := cfg.Validate(); err != nil {
		return nil, fmt.Errorf("startup: %s: %w", cfg.ErrorName(), err)
	}
	return &Client{cfg: cfg}, nil
}

// Start begins startup; the connection has just been made.
func (c *Client) Start(now time.Time) {
	if c.state != clientNew {
		return
	}
	c.state = clientAuth
	c.deadline = now.Add(c.cfg.limit())
	c.out = wire.AppendAuth(c.out, c.cfg.Auth.Mask())
}

// Output returns and removes the bytes that are to be sent to the server now.
func (c *Client) Output() []byte {
	b := c.out
	c.out = nil
	return b
}

// HasOutput reports whether there is anything to be sent now.
func (c *Client) HasOutput() bool { return len(c.out) > 0 }

// Deadline returns the time at which Tick must be called, if there is one.
func (c *Client) Deadline() (time.Time, bool) {
	return c.deadline, c.state > clientNew && c.state < clientRunning && !(c.cfg.Spare && c.state > clientAuth)
}

// Job returns the result; ok is false before startup is over.
func (c *Client) Job() (*Job, bool) {
	if c.state != clientRunning && c.state != clientFinished {
		return nil, false
	}
	return c.d.job, true
}

// Waits reports whether the server has not reported yet that all clients have come, so that this
// one may leave for another server.
func (c *Client) Waits() bool { return c.state < clientColl }

// Err returns the error that ended the client, or nil.
func (c *Client) Err() error { return c.err }

// Tick sets the current time. After the deadline it returns ErrTimeout.
func (c *Client) Tick(now time.Time) error {
	if at, ok := c.Deadline(); ok && !now.Before(at) {
		c.fail(fmt.Errorf("%w: %v passed while waiting for %s", ErrTimeout, c.cfg.limit(), c.awaited()))
	}
	return c.err
}

// Closed records that the connection has ended; cause may be nil. After Finish that is no error.
func (c *Client) Closed(cause error) error {
	if c.state == clientFinished || c.err != nil {
		return c.err
	}
	c.end(fmt.Errorf("the server's %w", lost(cause, fmt.Sprintf("while we waited for %s%s", c.awaited(), c.hint()))))
	return c.err
}

// Receive takes bytes from the server. It keeps nothing of b.
func (c *Client) Receive(b []byte, now time.Time) error {
	if c.state == clientNew || c.state >= clientFinished {
		return c.err
	}
	c.in.feed(b)
	defer c.in.rest()
	for c.err == nil {
		more, err := c.step(now)
		if err != nil {
			c.fail(err)
		}
		if !more {
			break
		}
	}
	return c.err
}

func (c *Client) step(now time.Time) (more bool, err error) {
	if c.state == clientAuth {
		return c.stepAuth()
	}
	f, ok, err := c.in.next(MaxAnswer, knownToClient)
	if err != nil || !ok {
		return false, err
	}
	return true, c.command(f, now)
}

func knownToClient(cmd wire.Command) bool {
	return cmd == wire.CmdIMPI || cmd == wire.CmdColl || cmd == wire.CmdDone || cmd == wire.CmdFail || cmd == wire.CmdFini
}

// stepAuth handles the answer to AUTH, which has no command header (IMPI ch.2,
// Authentication).
func (c *Client) stepAuth() (more bool, err error) {
	b, ok := c.in.peek(wire.AuthChoiceSize)
	if !ok {
		return false, nil
	}
	if cmd, _ := wire.ParseCommand(b); cmd == wire.CmdFail {
		c.state = clientIMPI // the server gives up: instead of its choice it sends a command with the reason
		return true, nil
	}
	c.in.raw(wire.AuthChoiceSize)
	c.mech, _ = wire.ParseAuthChoice(b)
	if !c.cfg.Auth.Mask().Has(c.mech) {
		return false, fmt.Errorf("%w: the server chose %v, we offered %v", ErrAuth, c.mech, c.cfg.Auth)
	}
	if c.mech == wire.MechKey {
		c.out = wire.AppendKey(c.out, c.cfg.Auth.Key)
	}
	c.state = clientIMPI
	if c.cfg.Spare {
		c.out = wire.AppendSpare(c.out)
		return true, nil
	}
	c.out = wire.AppendIMPI(c.out, int32(c.cfg.Rank))
	if c.cfg.Decline != nil {
		return false, c.cfg.Decline
	}
	return true, nil
}

func (c *Client) command(f frame, now time.Time) error {
	if f.cmd == wire.CmdFail {
		c.end(c.told(Printable(f.payload)))
		return nil
	}
	if c.cfg.Spare {
		return watchJob(c, f)
	}
	switch {
	case f.cmd == wire.CmdIMPI && c.state == clientIMPI:
		return c.takeSize(f.payload, now)
	case f.cmd == wire.CmdColl && c.state == clientColl:
		return c.takeAnswer(f.payload)
	case f.cmd == wire.CmdColl && c.state == clientRunning:
		c.takeLost(f.payload)
		return nil
	case f.cmd == wire.CmdColl && c.state > clientColl:
		return nil // an answer to a label that only other clients sent
	case f.cmd == wire.CmdDone && c.state == clientDone:
		c.d.settleProcs()
		if !c.d.job.AllOwn && c.d.job.Clients[c.cfg.Rank].Own {
			c.keepCards()
		}
		c.d.job.settleSecret(c.mech == wire.MechKey, c.cfg.Auth.Key)
		c.state = clientRunning
		return nil
	}
	return fmt.Errorf("%w: the server sent %v while we waited for %s", ErrProtocol, f.cmd, c.awaited())
}

// takeLost handles what the server says of a client that it has lost. There may be as many of that
// as there are clients; more, and answers to labels that only others sent, are dropped.
func (c *Client) takeLost(payload []byte) {
	l, _, said, err := wire.ParseAnswer(payload)
	if err == nil && l == wire.LabelLost && len(c.others) < wire.MaxClients {
		c.others = append(c.others, fmt.Errorf("startup: %s: %w", c.cfg.ErrorName(), c.told(Printable(said))))
	}
}

// TakeLostClient removes and returns the server's report of a client that it has lost, if the
// server continues without that client: the error with which this client would have ended
// otherwise. If the job does not run yet, the owner has to end it with this error. The result is
// nil if there is no report.
func (c *Client) TakeLostClient() (said error) {
	if len(c.others) > 0 {
		said, c.others = c.others[0], c.others[1:]
	}
	return said
}

// told returns the error of a connection that the server has ended with a reason. It wraps ErrBusy
// if the client may try again on another connection.
func (c *Client) told(reason string) error {
	if c.state == clientIMPI && strings.HasPrefix(reason, ErrBusy.Error()) {
		return fmt.Errorf("the server %w: %w%s", ErrFailed, ErrBusy, reason[len(ErrBusy.Error()):])
	}
	return fmt.Errorf("the server %w: %s", ErrFailed, reason)
}

// takeSize handles the answer to IMPI: the number of clients (IMPI ch.2, IMPI command).
func (c *Client) takeSize(payload []byte, now time.Time) error {
	n, err := wire.ParseIMPI(payload)
	switch {
	case err != nil:
		return fmt.Errorf("%w: %w", ErrProtocol, err)
	case n < 1 || n > wire.MaxClients:
		return fmt.Errorf("%w: IMPI: a job of %d clients; 1 to %d are possible", ErrValue, n, wire.MaxClients)
	case int32(c.cfg.Rank) >= n:
		return fmt.Errorf("%w: we are client %d, the job has %d clients", ErrRank, c.cfg.Rank, n)
	}
	c.d = newDerivation(c.cfg.Rank, int(n), c.cfg.Dialect)
	c.labels = c.cfg.labels()
	c.state = clientColl
	c.deadline = now.Add(c.cfg.limit())
	c.submit()
	return nil
}

// takeAnswer handles the answer to a label. Answers to labels that only others sent are dropped.
// IMPI ch.2, COLL command: a client ignores what it does not know.
func (c *Client) takeAnswer(payload []byte) error {
	l, mask, data, err := wire.ParseAnswer(payload)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrProtocol, err)
	}
	if l != c.labels[0] {
		if mask.Has(c.cfg.Rank) {
			return fmt.Errorf("%w: the server answered %v for us while we waited for %s", ErrProtocol, l, c.awaited())
		}
		if slices.Contains(c.cfg.Omit, l) {
			return c.takeOmitted(l, mask, data)
		}
		return c.dropAnswer(l)
	}
	if !mask.Has(c.cfg.Rank) {
		return fmt.Errorf("%w: %v: we sent it, and the answer's mask is %v", ErrProtocol, l, mask)
	}
	if err := c.d.take(l, mask, data); err != nil {
		return err
	}
	c.taken = l
	if l == wire.LabelVersion && c.d.job.AllOwn {
		c.labels = append(c.labels, wire.LabelCards)
	}
	if c.labels = c.labels[1:]; len(c.labels) > 0 {
		c.submit()
		return nil
	}
	c.out = wire.AppendCommand(c.out, wire.CmdDone, 0)
	c.state = clientDone
	return nil
}

// takeOmitted handles the answer to a label that this client leaves out. It must come at the
// label's place in the ascending order: values of hosts, for example, belong to hosts that earlier
// labels have announced.
func (c *Client) takeOmitted(l wire.Label, mask wire.ClientMask, data []byte) error {
	if l <= c.taken || l > c.labels[0] {
		return fmt.Errorf("%w: the server answered %v after %v while we waited for %s", ErrProtocol, l, c.taken, c.awaited())
	}
	c.taken = l
	return c.d.take(l, mask, data)
}

// dropAnswer fails if the answer is to a label that this client has not sent yet: no second
// answer would follow.
func (c *Client) dropAnswer(l wire.Label) error {
	if slices.Contains(c.labels[1:], l) {
		return fmt.Errorf("%w: the server answered %v before we sent it", ErrProtocol, l)
	}
	return nil
}

func (c *Client) submit() {
	c.out = wire.AppendColl(c.out, c.labels[0], c.cfg.submission(c.labels[0]))
}

// Finish records that all procs of the client have finished (IMPI ch.2, FINI command). The owner
// sends the output and closes the connection. Before startup is over Finish returns an error.
func (c *Client) Finish() error {
	if c.state == clientRunning {
		c.out = wire.AppendCommand(c.out, wire.CmdFini, 0)
		c.state = clientFinished
	}
	if c.state != clientFinished && c.err == nil {
		c.fail(fmt.Errorf("%w: finished while waiting for %s", ErrProtocol, c.awaited()))
	}
	return c.err
}

// Fail ends the job for a reason, which the server passes on to all clients.
func (c *Client) Fail(reason error) {
	if c.state < clientFinished {
		c.fail(reason)
	}
}

func (c *Client) fail(err error) {
	if c.state != clientNew {
		c.out = wire.AppendFail(c.out, err.Error())
	}
	c.end(err)
}

func (c *Client) end(err error) {
	c.err = fmt.Errorf("startup: %s: %w", c.cfg.ErrorName(), err)
	c.state = clientFailed
}
