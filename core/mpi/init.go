package mpi

import (
	"fmt"
	"os"
	"sync"
	"time"

	"github.com/openimpi/impi/core/link"
	"github.com/openimpi/impi/core/message"
	"github.com/openimpi/impi/internal/drive"
	"github.com/openimpi/impi/internal/machine"
	"github.com/openimpi/impi/internal/poll"
	"github.com/openimpi/impi/internal/wireup"
)

// phase is how far a proc's life in MPI has got.
type phase int32

const (
	running    phase = iota
	finalizing       // in Finalize, before its barrier is passed
	parted           // in Finalize, behind it: that links end is in order
	finalized
)

// The faults of using MPI outside its life.
var ()

// the is the program's process, from Init on.
var (
	the     *process
	theLock sync.Mutex
)

// newProcess makes the proc of a job. agent and control are nil in a singleton.
func newProcess(job *wireup.Job, agent link.Link, m machine.Machine, control machine.Node) (*process, error) {
	r, err := NewRoster(job.Procs, nil)
	if err != nil {
		return nil, err
	}
	return r.newProcess(job, agent, m, control)
}

func (r *Roster) newProcess(job *wireup.Job, agent link.Link, m machine.Machine, control machine.Node) (*process, error) {
	p := &process{job: job, machine: m, control: control, grace: grace}
	p.roster, p.data, p.kinds, p.homogeneous, p.plain = r, r.data, r.kinds, r.homogeneous, r.plain
	p.turns.L = &p.mu
	if err := p.describeOwn(); err != nil {
		return nil, err
	}
	if p.check = job.Check || os.Getenv(checkVariable) == "1"; p.check {
		p.plain = 0 // messages say what their elements are: see sign
	}
	var err error
	p.eng, err = message.New(message.Config{
		Self: message.Peer(job.Rank), Directory: r.directory,
		MaxData: job.DataLen, AckMark: job.AckMark, HiWater: job.HiWater,
		Dialect: job.Dialect, RankOf: p.rankIn,
		Unexpected: job.Procs[job.Rank].Unexpected,
		UnexpectedOf: func(peer message.Peer) int64 {
			if job.Procs[peer].Allows {
				return message.Least
			}
			return job.Procs[peer].Unexpected
		},
	})
	if err != nil {
		return nil, err
	}
	if p.spin, err = poll.NewSpinner(job.Spin); err != nil {
		return nil, err
	}
	if p.links, err = drive.New(m, p); err != nil {
		return nil, err
	}
	p.flusher = m.AfterFunc(time.Hour, p.flushLate)
	p.flusher.Stop()
	if agent != nil {
		if _, err := p.addPort(p.traced(agent, "agent", message.NoPeer), message.NoPeer); err != nil {
			return nil, err
		}
	}
	return p, p.makeWorld()
}

// Initialized tells whether Init has returned without error.
func Initialized() bool {
	theLock.Lock()
	defer theLock.Unlock()
	return the != nil
}

// Finalized tells whether Finalize has begun.
func Finalized() bool {
	theLock.Lock()
	defer theLock.Unlock()
	return the != nil && phase(the.state.Load()) == finalized
}

func (p *process) close() {
	for _, q := range p.ports {
		if q != nil {
			p.ports[q.id] = nil
			_ = q.Link.CloseSend()
			_ = q.Link.Close()
		}
	}
	_ = p.links.Close()
	p.flusher.Stop()
}

// Abort ends the whole job, on all sites, and does not return. code becomes the
// exit status of the job; why is printed with this rank's number.
func Abort(code int, why string) {
	theLock.Lock()
	p := the
	theLock.Unlock()
	if p != nil && p.control != nil {
		p.abort(code, why)
	} else if why != "" {
		fmt.Fprintln(os.Stderr, "impi: abort:", why)
	}
	os.Exit(code)
}

// abort asks the node to end the job, and ends this proc.
func (p *process) abort(code int, why string) {
	_ = p.control.Send(wireup.Message{Kind: wireup.KindAbort, Code: code, Reason: why}) // the node may be gone
	p.machine.Exit(code)
}

// Library names this MPI library and its version.
const Library = "impi 0.1.0"

var epoch = time.Now()

// Wtime gives the seconds since some moment before Init, by a clock that never
// goes back. Ranks' clocks are not synchronised.
func Wtime() float64 { return time.Since(epoch).Seconds() }

// Wtick gives the resolution of Wtime in seconds.
func Wtick() float64 { return 1e-9 }

// ProcessorName gives the name of the machine that this rank runs on.
func ProcessorName() string {
	name, err := os.Hostname()
	if err != nil {
		return "unknown"
	}
	return name
}

// checkVariable set to 1 in a proc's environment has the members of communicators
// compare what they have been asked to do before each collective operation. All
// procs of the job must have it.
const checkVariable = "IMPI_CHECK"

// current is the program's process while it may use MPI.
func current() (*process, error) {
	theLock.Lock()
	defer theLock.Unlock()
	switch {
	case the == nil:
		return nil, ErrNotInitialized
	case phase(the.state.Load()) == finalized:
		return nil, ErrFinalized
	}
	return the, nil
}
