package ending

import (
	"errors"
	"time"

	"github.com/openimpi/impi/core/startup"
	"github.com/openimpi/impi/core/wire"
)

// ServerTie is what ties a site to the job's server, once startup is over.
type ServerTie struct {
	InJob            bool // the server is in a node or a launcher of this job, or of the job that has spawned it, which is lost with the server
	Survives         bool // the job goes on without lost procs, and so without those of that node
	Dialect          wire.Dialect
	NoChannels       bool // the sites are not connected by channels from the start: none would notice the failure of another
	FailuresReported bool // all sites report failures to each other by their channels
}

// Outlives reports whether the job goes on, if it runs, though the connection to the server has
// ended by err, which is one of startup: once it runs all sites know what the server knew, and tell
// each other of failures. In the draft the end of a channel does not show whether its host has
// finished, as there is no FINI, so that the server alone notices a site that is lost.
//
// A site that the server alone has lost may go on without it, too. So that is no more than the loss
// of the server: whether the site is lost is shown by the channels, and told by them.
func (t ServerTie) Outlives(err error) bool {
	lost := errors.Is(err, startup.ErrLost) || t.FailuresReported && startup.EndedByLostClient(err)
	return lost && (t.Survives || !t.InJob) && !t.NoChannels && t.Dialect != wire.Draft
}

// OutlivesOwnServer reports whether a job that goes on without lost procs, if survives is set, does
// so although the server that is embedded in this node has ended by the failure f: it has lost the
// last other site that had not ended its part. What that means the site learns by its channels.
func OutlivesOwnServer(survives bool, f error) bool {
	return survives && errors.Is(f, startup.ErrLost)
}

// RunTime is how long a site that has lost the server waits until its job runs: it may be among the
// last to be connected.
const RunTime = 3 * time.Second

// ServerWatch decides whether a site goes on without the job's server, or without another site that
// the server has lost, once startup is over. Its Tie is set before it is used. Only one goroutine
// may use it at a time.
type ServerWatch struct {
	Tie     ServerTie
	runs    bool
	waiting []serverLoss
	steps   []ServerStep
}

type serverLoss struct {
	ServerStep
	until time.Time
}

// ServerStep is a decision: whether the site goes on, or its job ends by Err.
type ServerStep struct {
	GoesOn bool
	Err    error
	Site   bool // the server has lost another site, and is there
}

// Lost records that the server is lost, by err, or if site is set that it has reported by err that
// it has lost another site. It returns false if that ends the job in any case.
func (w *ServerWatch) Lost(now time.Time, err error, site bool) bool {
	x := serverLoss{ServerStep{Err: err, Site: site}, now.Add(RunTime)}
	goesOn := w.Tie.Outlives(err)
	if !goesOn {
		w.steps = append(w.steps, x.ServerStep)
	} else {
		w.waiting = append(w.waiting, x)
		w.settle(now)
	}
	return goesOn
}

// Runs records that the job runs at this site.
func (w *ServerWatch) Runs(now time.Time) {
	w.runs = true
	w.settle(now)
}

// Deadline returns when Tick is to be called, if anything is waited for.
func (w *ServerWatch) Deadline() (at time.Time, ok bool) {
	if len(w.waiting) == 0 {
		return at, false
	}
	return w.waiting[0].until, true
}

// Tick decides what has waited long enough.
func (w *ServerWatch) Tick(now time.Time) { w.settle(now) }

func (w *ServerWatch) settle(now time.Time) {
	for len(w.waiting) > 0 && (w.runs || !now.Before(w.waiting[0].until)) {
		x := w.waiting[0].ServerStep
		x.GoesOn = w.runs
		w.steps, w.waiting = append(w.steps, x), w.waiting[1:]
	}
}

// Next returns the next decision, and false if there is none.
func (w *ServerWatch) Next() (ServerStep, bool) {
	if len(w.steps) == 0 {
		return ServerStep{}, false
	}
	x := w.steps[0]
	w.steps = w.steps[1:]
	return x, true
}
