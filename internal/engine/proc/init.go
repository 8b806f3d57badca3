package proc

import (
	"fmt"
	"os"
	"sync"
	"time"

	"github.com/openimpi/impi/core/message"
	"github.com/openimpi/impi/core/wire"
	"github.com/openimpi/impi/internal/drive"
	"github.com/openimpi/impi/internal/machine"
	"github.com/openimpi/impi/internal/wireup"
	"github.com/openimpi/impi/plugins/sdk/link"
	"github.com/openimpi/impi/plugins/sdk/support/polling"
)

// LifeState is the stage of a proc between Init and Finalize.
type LifeState int32

// The stages.
const (
	running    LifeState = iota
	Finalizing           // in Finalize, before its barrier is complete
	quiet                // in Finalize, after its barrier: the end of a link is no failure
	Ended
)

// The is the program's process, set by Init. ProcessMu guards it.
var (
	ThisProcess *Process
	ProcessMu   sync.Mutex
)

// NewProcess makes a proc of a job. agent and control are nil in a singleton.
func NewProcess(job *wireup.Job, agent link.Link, m machine.Machine, control machine.Node) (*Process, error) {
	r, err := membersOf(job)
	if err != nil {
		return nil, err
	}
	return r.NewProcess(job, agent, m, control)
}

// NewProcess is the function NewProcess for one of several ranks that share the table r.
func (r *MemberTable) NewProcess(job *wireup.Job, agent link.Link, m machine.Machine, control machine.Node) (*Process, error) {
	p := &Process{Job: job, Machine: m}
	p.Data = conversion{sites: &p.Worlds, data: &r.data, Kinds: r.kinds, Homogeneous: r.homogeneous, plain: r.plain}
	p.Endpoints.p, p.Endpoints.Grace = p, grace
	p.Node.p, p.Node.Control = p, control
	p.Worlds.p, p.Disconnects.p, p.Comms.p, p.Boards.p = p, p, p, p
	if job.Survive {
		p.Survival = &Survival{p: p, comms: make(map[wire.ContextID]*Comm), freed: make(map[wire.ContextID]bool), gone: make(map[message.Peer]bool)}
		p.lifeChecks = newLifeChecks(p)
	}
	p.Trace = tracing{job: job, directory: r.directory, node: control}
	p.Members = r
	p.turns.L = &p.Mu
	p.Account = account{p: p}
	p.Account.begin()
	if err := p.Worlds.describeOwn(); err != nil {
		return nil, err
	}
	if p.Check = job.Check || os.Getenv(CheckVariable) == "1"; p.Check {
		p.Data.check, p.Data.plain = true, 0 // messages carry signatures: see sign
	}
	var err error
	p.Eng, err = message.New(message.Config{
		Self: message.Peer(job.Rank), Directory: r.directory,
		MaxData: job.DataLen, AckMark: job.AckMark, HiWater: job.HiWater,
		Dialect: job.Dialect, RankOf: p.Comms.rankIn,
		Unexpected: job.Proc(job.Rank).Unexpected,
		UnexpectedOf: func(peer message.Peer) int64 {
			x := job.Proc(wire.WorldRank(peer))
			if x.Allows {
				return message.LeastAllowance
			}
			return x.Unexpected
		},
	})
	if err != nil {
		return nil, err
	}
	if p.spin, err = polling.NewSpinner(job.Spin); err != nil {
		return nil, err
	}
	if p.Driver, err = drive.New(m, p); err != nil {
		return nil, err
	}
	p.Endpoints.Flusher = m.AfterFunc(time.Hour, p.Endpoints.flushLate)
	p.Endpoints.Flusher.Stop()
	if agent != nil {
		if _, err := p.Endpoints.Add(p.Trace.Traced(agent, "agent", message.NoPeer), message.NoPeer); err != nil {
			return nil, err
		}
	}
	return p, p.Comms.makeWorld()
}

func Initialized() bool {
	ProcessMu.Lock()
	defer ProcessMu.Unlock()
	return ThisProcess != nil
}

func Finalized() bool {
	ProcessMu.Lock()
	defer ProcessMu.Unlock()
	return ThisProcess != nil && LifeState(ThisProcess.State.Load()) == Ended
}

// Close closes all links at once. The process is locked.
func (es *endpoints) Close() {
	for _, q := range es.List {
		if q != nil {
			es.List[q.ID] = nil
			_ = q.Link.CloseSend()
			_ = q.Link.Close()
		}
	}
	_ = es.p.Driver.Close()
	es.Flusher.Stop()
	es.p.periodic.end()
}

func Abort(code int, why string) {
	ProcessMu.Lock()
	p := ThisProcess
	ProcessMu.Unlock()
	if p != nil && p.Node.Control != nil {
		p.Abort(code, why)
	} else if why != "" {
		fmt.Fprintln(os.Stderr, "impi: abort:", why)
	}
	os.Exit(code)
}

// lastTime is how long Abort waits for the node's last message.
const lastTime = 5 * time.Second

// Abort asks the node to end the job, and ends this proc. A process manager that has started this
// proc then ends all others, and the node. So the node must have reported before that this proc
// called Abort.
func (p *Process) Abort(code int, why string) {
	_ = p.Node.Control.Send(wireup.Message{Kind: wireup.KindAbort, Code: code, Reason: why}) // without a node there is no receiver
	if p.Node.Last != nil {
		select {
		case <-p.Node.Last:
		case <-time.After(lastTime):
		}
	}
	p.Machine.Exit(code, "") // the node says why
}

// Library names this MPI library and its version.
const Library = "impi 0.1.0"

var epoch = time.Now()

func Wtime() float64 { return time.Since(epoch).Seconds() }

func Wtick() float64 { return 1e-9 }

func ProcessorName() string {
	name, err := os.Hostname()
	if err != nil {
		return "unknown"
	}
	return name
}

// CheckVariable set to 1 in a proc's environment makes the members of communicators compare their
// calls before each collective operation. All procs of the job must have it.
const CheckVariable = "IMPI_CHECK"

// Current returns the program's process, or an error before Init and after Finalize.
func Current() (*Process, error) {
	ProcessMu.Lock()
	defer ProcessMu.Unlock()
	switch {
	case ThisProcess == nil:
		return nil, ErrNotInitialized
	case LifeState(ThisProcess.State.Load()) == Ended:
		return nil, ErrFinalized
	}
	return ThisProcess, nil
}
