package names

// Client decides what a node does with its connection to a server: when it makes one, what it says
// there first, when it asks again, and when it needs the connection no more. The zero value is ready.
type Client struct {
	Published
	open bool // there is a connection
	used bool // since the last Look
}

// Action is what a Step wants.
type Action uint8

// The actions.
const (
	Over    Action = iota // nothing more; the last error is the result
	Connect               // make a connection; then Connected or Unanswered
	Renew                 // publish Request again; then Answered or Unanswered
	Ask                   // make the request; then Answered or Unanswered
)

// Step is what an Exchange wants done.
type Step struct {
	Action  Action
	Request Request // Renew
	Again   bool    // Ask: it was made before, on a connection that broke before the answer
}

// Exchange is one request on its way. A Client has one at a time.
type Exchange struct {
	c     *Client
	renew []Request // that are still to be made on a new connection
	alone bool      // it is for the connection alone
	retry bool      // another connection may be tried
	asked bool
	over  bool
}

// Begin begins a request. If the connection is one of before, it may have broken without anybody
// having noticed: then another one is tried.
func (c *Client) Begin() *Exchange {
	c.used = true
	return &Exchange{c: c, retry: c.open}
}

// Next returns the next step.
func (e *Exchange) Next() Step {
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
	return Step{Action: Ask, Again: e.asked}
}

// Connected says that there is a connection.
func (e *Exchange) Connected() { e.c.open, e.renew = true, e.c.All() }

// Answered says that the server has answered, whatever it said.
func (e *Exchange) Answered() {
	if len(e.renew) > 0 {
		e.renew = e.renew[1:]
	} else {
		e.over = true
	}
}

// Unanswered says that a connection could not be made, or was closed since there was no answer. final
// says that another one is of no use.
func (e *Exchange) Unanswered(final bool) {
	e.asked = e.asked || e.c.open && len(e.renew) == 0
	e.c.open, e.renew = false, nil
	e.over, e.retry = final || !e.retry, false
}

// Lost says that the connection is gone.
func (c *Client) Lost() { c.open = false }

// Look decides, now and then, about a connection that nobody uses. If hangUp is true it is not needed
// any more; if e is not nil there are names and no connection, and e makes one.
func (c *Client) Look() (hangUp bool, e *Exchange) {
	hangUp = c.open && c.Len() == 0 && !c.used
	c.open, c.used = c.open && !hangUp, false
	if c.Len() > 0 && !c.open {
		e = &Exchange{c: c, alone: true}
	}
	return hangUp, e
}

// Keeps reports whether there is anything to look after.
func (c *Client) Keeps() bool { return c.open || c.Len() > 0 }
