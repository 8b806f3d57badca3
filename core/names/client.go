package names

// Client decides how a node uses its connection to a server: when it makes one, which requests it
// repeats there first, when it asks again, and when it does not need the connection any more. The
// zero value is ready.
type Client struct {
	Published
	open bool // there is a connection
	used bool // used since the last Tick
}

// Action is what the node has to do in a Step.
type Action uint8

// The actions.
const (
	Finished Action = iota // the exchange is over; the last error is the result
	Connect                // make a connection; then Connected or Unanswered
	Renew                  // publish Request again; then Answered or Unanswered
	Ask                    // make the request; then Answered or Unanswered
)

// Step is the next action of a PendingRequest.
type Step struct {
	Action  Action
	Request Request // the request for Renew
	Resent  bool    // Ask: the request was sent before, on a connection that broke before the answer
}

// PendingRequest is one request of a Client to a server, until it is answered. A Client has one at
// a time.
type PendingRequest struct {
	c     *Client
	renew []Request // requests that are still to be repeated on a new connection
	alone bool      // the exchange only makes a connection
	retry bool      // another connection may be tried
	asked bool
	over  bool
}

// Begin begins a request. A connection that was made earlier may have broken unnoticed: then
// another one is tried.
func (c *Client) Begin() *PendingRequest {
	c.used = true
	return &PendingRequest{c: c, retry: c.open}
}

// Next returns what to do next. It changes nothing: the methods below report what was done.
func (e *PendingRequest) Next() Step {
	switch {
	case e.over:
		return Step{}
	case !e.c.open:
		return Step{Action: Connect}
	case len(e.renew) > 0:
		return Step{Action: Renew, Request: e.renew[0]}
	case e.alone:
		return Step{}
	}
	return Step{Action: Ask, Resent: e.asked}
}

// Connected records that there is a connection.
func (e *PendingRequest) Connected() { e.c.open, e.renew = true, e.c.All() }

// TakeAnswer records that the server has answered, whatever the answer is.
func (e *PendingRequest) TakeAnswer() {
	if len(e.renew) > 0 {
		e.renew = e.renew[1:]
	} else {
		e.over = true
	}
}

// Unanswered records that a connection could not be made, or was closed since there was no answer.
// final is true if another connection is of no use.
func (e *PendingRequest) Unanswered(final bool) {
	e.asked = e.asked || e.c.open && len(e.renew) == 0
	e.c.open, e.renew = false, nil
	e.over, e.retry = final || !e.retry, false
}

// ConnectionLost records that the connection is gone.
func (c *Client) ConnectionLost() { c.open = false }

// Tick is called from time to time, for a connection that is not in use. If hangUp is true the
// connection is not needed any more; if e is not nil there are names and no connection, and e makes
// one.
func (c *Client) Tick() (hangUp bool, e *PendingRequest) {
	hangUp = c.open && c.Len() == 0 && !c.used
	c.open, c.used = c.open && !hangUp, false
	if c.Len() > 0 && !c.open {
		e = &PendingRequest{c: c, alone: true}
	}
	return hangUp, e
}

// NeedsTick reports whether Tick has to be called: there is a connection, or names.
func (c *Client) NeedsTick() bool { return c.open || c.Len() > 0 }
