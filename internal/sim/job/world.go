package job

import (
	"cmp"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/openimpi/impi/core/dynamic"
	"github.com/openimpi/impi/core/mpi"
	"github.com/openimpi/impi/core/resume"
	"github.com/openimpi/impi/core/startup"
	"github.com/openimpi/impi/core/wire"
	"github.com/openimpi/impi/internal/sim/kernel"
)

// Simulation is one simulated job. New creates it; plan faults, then call Run.
type Simulation struct {
	k           *kernel.Kernel
	cfg         Config
	server      *server
	sites       []*site
	spares      []*spareSite
	hosts       map[wire.HostRank]*host
	procs       []*proc         // by world rank; nil: not started
	openLinks   []*observedLink // links that may still be in use
	linkless    []pair          // pairs that have waited in vain for the link that the other proc kept
	sessions    map[resume.ResumableID]*resumed
	channels    map[*kernel.Link]*resumed // by the first lower link
	proofs      map[*kernel.Link]*proving // channels whose ends prove who they are, by the first link
	pluginsBack []time.Duration           // by client: when its plugin can dial again
	job         *startup.Job
	members     *mpi.Roster // roster of the site that used one last
	hits        []FaultHit
	failLate    map[int]*Fault // by world rank
	buf         []byte
	wrong       error             // an error that no fault excuses
	broke       *moment           // when it became certain that the job fails
	met         map[FaultKind]int // number of faults of each kind
	boxed       []*kernel.Link    // links with fast boxes
	onBoards    int               // how often procs were at a place of a board where they may be delayed
	questions   Questions         // over channels
	resumed     int               // how often a link was dialled again
	number      int               // number of the world in cfg.Worlds
	spawned     *spawned          // the spawn that started it; nil: it existed from the start
	names       *nameServer       // name server of this job and the jobs that it has spawned; nil: not used yet
	ended       *moment           // when the job was over
	stalls      time.Duration     // total time that links were stalled
	drains      drains            // of plugins
	danced      time.Duration     // when the first host has begun its channels
	repairs     map[*dynamic.ResumableLink]*repairing
	plans       map[any]*dialling // of pairs of procs or hosts, those that have not ended
	atEnd       []func()          // called when the first site has finished
	firewalled  bool              // a host was dialled that a firewall kept from answering for too long
	stalled     bool              // some link was stalled for longer than failures wait for an explanation
}

// New makes a job on k. Nothing happens before Run.
func New(k *kernel.Kernel, cfg Config) (*Simulation, error) {
	cfg.withDefaults()
	if cfg.Quiet {
		k.KeepTrace(0)
	}
	w := &Simulation{
		k: k, cfg: cfg, hosts: make(map[wire.HostRank]*host), procs: make([]*proc, cfg.Procs()),
		pluginsBack: make([]time.Duration, len(cfg.Sites)),
		buf:         make([]byte, 16<<10), met: make(map[FaultKind]int), plans: make(map[any]*dialling), repairs: make(map[*dynamic.ResumableLink]*repairing), sessions: make(map[resume.ResumableID]*resumed), failLate: make(map[int]*Fault), channels: make(map[*kernel.Link]*resumed), proofs: make(map[*kernel.Link]*proving),
	}
	if cfg.Worlds != nil {
		cfg.Worlds.join(w)
	}
	err := cfg.maySurvive()
	if err != nil {
		return nil, err
	}
	if w.server, err = newServer(w); err != nil {
		return nil, err
	}
	for c, s := range cfg.Sites {
		x, err := newSite(w, wire.ClientRank(c), s)
		if err != nil {
			return nil, err
		}
		w.sites = append(w.sites, x)
	}
	for i := range cfg.Spares {
		if err := addSpare(w, i); err != nil {
			return nil, err
		}
	}
	if cfg.ServerLost > 0 && len(cfg.Spares) > 0 {
		k.After(0, func() { loseServer(w) })
	}
	return w, nil
}

// Bounds are the limits of a run that does not end by itself.
type Bounds struct {
	Events uint64
	Time   time.Duration
}

// Run runs the job to its end.
func (w *Simulation) Run(b Bounds) Result {
	return RunAll(w.k, b, w)[0]
}

// RunAll runs several jobs that are on one kernel to their ends, or until one of them makes an
// error that no fault excuses. The results of spawned jobs come last.
func RunAll(k *kernel.Kernel, b Bounds, worlds ...*Simulation) []Result {
	defer func() {
		k.Close()
		for _, w := range worlds {
			for _, s := range w.sites {
				s.release()
			}
		}
	}()
	a := worlds[0].cfg.Worlds
	err := k.Run(b.Events, b.Time, func() bool {
		if a != nil {
			worlds = a.worlds
		}
		return over(worlds) && (a == nil || a.busy == 0)
	})
	all := make([]Result, len(worlds))
	for i, w := range worlds {
		all[i] = w.result(err)
	}
	return all
}

// over reports whether there is nothing to wait for: all jobs have ended, or one has an error.
func over(worlds []*Simulation) bool {
	all := true
	for _, w := range worlds {
		if w.fault() != nil {
			return true
		}
		if w.ended == nil && w.Over() {
			w.ended = &moment{at: w.k.Now(), event: w.k.Events()}
		}
		all = all && w.ended != nil
	}
	return all
}

// result returns how the job ended; err is why the kernel stopped.
func (w *Simulation) result(err error) Result {
	r := Result{World: w, FaultHit: len(w.hits) > 0, Hits: w.hits}
	over := w.Over()
	if err == nil && !over {
		err = errors.New("nothing happens any more")
	}
	if over {
		err = nil
	}
	switch {
	case w.fault() != nil:
		r.Err = w.fault()
	case err != nil:
		r.Err = fmt.Errorf("%w: %w:\n%s", ErrStuck, err, w.waiting())
	default:
		r.Err = w.judge()
	}
	return r
}

// Result is how a job ended.
type Result struct {
	World *Simulation

	// Err is an error that no fault excuses: the job did not end (ErrStuck), or not in the same way
	// everywhere (ErrDisorder), or too long after a fault (ErrLate), or an observer found an error.
	Err error

	// FaultHit reports whether a fault has hit something that had not ended, so that the job may have
	// failed; Hits are those faults. If FaultHit.Deadly is set for one, the job has failed, or Err
	// reports that it should have.
	FaultHit bool
	Hits     []FaultHit
}

// Sites returns the error of each site, nil for those that ended in order.
func (r Result) Sites() []error {
	var all []error
	for _, s := range r.World.sites {
		all = append(all, s.err)
	}
	return all
}

// Resumed returns the number of times that a lost link was dialled again.
func (r Result) Resumed() int { return r.World.resumed }

// Faults returns the number of faults of each kind that have hit something.
func (r Result) Faults() map[FaultKind]int { return r.World.met }

// Server returns the error with which the server ended.
func (r Result) Server() error { return r.World.server.err }

// Procs returns the error of each proc's program.
func (r Result) Procs() []error {
	all := make([]error, len(r.World.procs))
	for i, p := range r.World.procs {
		if p != nil {
			all[i] = p.err
		}
	}
	return all
}

func (w *Simulation) fault() error {
	if w.wrong != nil || w.cfg.Observer == nil {
		return w.wrong
	}
	return w.cfg.Observer.Fault()
}

// Over reports whether every part of the job has ended.
func (w *Simulation) Over() bool {
	if !w.server.ended {
		return false
	}
	for _, s := range w.sites {
		if !s.done {
			return false
		}
		for _, p := range s.procs {
			if !p.task.Ended() {
				return false
			}
		}
	}
	return !slices.ContainsFunc(w.spares, func(x *spareSite) bool { return !x.home.done })
}

// waiting describes what has not ended, and what it waits for.
func (w *Simulation) waiting() string {
	var b strings.Builder
	if !w.server.ended {
		fmt.Fprintln(&b, "  the server has not ended")
	}
	for i, x := range w.spares {
		if !x.home.done {
			fmt.Fprintf(&b, "  %s has not ended\n", spareName(i))
		}
	}
	for _, s := range w.sites {
		if !s.done {
			fmt.Fprintf(&b, "  site %d has not ended\n", s.rank)
		}
		for _, p := range s.procs {
			if !p.task.Ended() {
				fmt.Fprintf(&b, "  rank %d waits for %s\n", p.rank, cmp.Or(p.task.Where(), "its turn"))
				if p.mpi != nil {
					p.mpi.Dump(&b)
				}
			}
		}
	}
	return b.String()
}

func (w *Simulation) link(spec kernel.LinkSpec, a, b Endpoint) *kernel.Link {
	x := &observedLink{ends: [2]Endpoint{a, b}}
	var o observed
	x.l = w.k.NewLink(spec, &o)
	x.shown = x.l
	if w.cfg.Observer != nil {
		o.to = w.cfg.Observer.Link(x.l, x.ends)
	}
	w.openLinks = append(w.openLinks, x)
	return x.l
}

type observed struct{ to kernel.Watcher }

func (o *observed) Sent(from *kernel.End, data []byte) {
	if o.to != nil {
		o.to.Sent(from, data)
	}
}

func (o *observed) Received(to *kernel.End, n int) {
	if o.to != nil {
		o.to.Received(to, n)
	}
}

func (o *observed) Ended(from *kernel.End) {
	if o.to != nil {
		o.to.Ended(from)
	}
}

func (o *observed) SawEnd(by *kernel.End) {
	if w, ok := o.to.(kernel.EndWatcher); ok {
		w.SawEnd(by)
	}
}

// announced checks that a site knows what the others can do, by the case alone.
func announced(w *Simulation, j *startup.Job) error {
	for i, s := range w.cfg.Sites {
		able := s.Foreign == nil && !s.NoOnDemand
		for _, x := range []struct {
			version wire.Version
			want    bool
		}{
			{wire.OnDemandVersion, able}, {wire.FailVersion, able}, {wire.LostVersion, able}, {wire.AskVersion, able},
			{wire.SurviveVersion, able && w.cfg.Survive}, {wire.AllowsVersion, false},
		} {
			if j.Clients[i].Lists(x.version) != x.want {
				return fmt.Errorf("%w: to site %d, site %d has version %v: %t", ErrDisorder, j.Self, i, x.version, !x.want)
			}
		}
	}
	return nil
}

// begin is called by each site when it knows the job. All sites must have the same one.
func (w *Simulation) begin(j *startup.Job) {
	if w.job == nil {
		w.job = j
		if w.cfg.Observer != nil {
			w.cfg.Observer.Begin(j)
		}
		return
	}
	mine, first := common(j), common(w.job)
	if !(j.Clients[j.Self].Own && w.job.Clients[w.job.Self].Own) {
		mine.Secret = first.Secret // foreign sites do not have the secret of the own sites
	}
	if !reflect.DeepEqual(&mine, &first) && w.wrong == nil {
		w.wrong = fmt.Errorf("%w: the job is\n%+v\nto client %d, and to client %d\n%+v", ErrDisorder, *j, j.Self, w.job.Self, *w.job)
	}
}

// common returns the part of a job that all its clients know alike: unless all of them are ours,
// tokens and cards are each client's own.
func common(j *startup.Job) startup.Job {
	k := *j
	if k.Self = 0; k.AllOwn {
		return k
	}
	k.Token, k.Procs = [startup.TokenSize]byte{}, startup.Procs{}
	for _, p := range j.Procs.All() {
		p.Card = nil
		k.Procs.Add(p)
	}
	return k
}

func (w *Simulation) chunkSize() int {
	if w.cfg.ChunkSize > 0 {
		return w.cfg.ChunkSize
	}
	return 256 << w.k.Rand().IntN(7)
}

func (w *Simulation) crashed(e Endpoint) {
	w.k.Tracef("%v has crashed", e)
	if w.cfg.Observer != nil {
		w.cfg.Observer.Crashed(e)
	}
}

func (w *Simulation) hostAt(id wire.HostID) *host {
	c, h := int(id[13]), int(id[14])
	if c >= len(w.sites) || h >= len(w.sites[c].hosts) {
		return nil
	}
	return w.sites[c].hosts[h]
}
