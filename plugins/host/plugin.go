package host

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/openimpi/impi/core/link"
	"github.com/openimpi/impi/plugins/proto"
	"github.com/openimpi/impi/transports"
)

// Plugin is a transport plugin under supervision. Its methods may be called by
// several goroutines.
type Plugin struct {
	cfg    Config
	log    hclog.Logger
	run    *RunDir // ours, if we made it
	runDir string
	life   context.Context // ends with Close
	end    context.CancelFunc
	work   sync.WaitGroup // no Add once life has ended

	mu        sync.Mutex
	status    Status
	cur       *instance // healthy one, or nil
	last      *instance // latest one, maybe still being taken apart
	attempt   *attempt  // start in progress, or nil
	listeners map[*listener]struct{}
	settings  map[string]any // last given to Configure, complete
	applied   bool           // settings is to be applied after a restart
	info      transports.Info
	schema    []transports.Setting
	caps      transports.Capabilities
}

// attempt is a start in progress.
type attempt struct {
	done chan struct{}
	err  error // valid when done is closed
}

// Start launches a plugin and waits until it is ready: verified, introduced and,
// unless deferred, configured. Errors are *Error, or what is wrong with the
// settings: *transports.SettingError, joined by errors.Join, wrapping ErrSettings.
// The first start is not repeated.
func Start(ctx context.Context, cfg Config) (*Plugin, error) {
	if err := cfg.complete(); err != nil {
		return nil, err
	}
	p := &Plugin{
		cfg: cfg, log: cfg.Logger, runDir: cfg.RunDir,
		listeners: make(map[*listener]struct{}), settings: cfg.Settings, applied: !cfg.DeferConfigure,
		status: Status{Name: cfg.Name},
	}
	p.life, p.end = context.WithCancel(context.Background())
	if err := p.makeRunDir(); err != nil {
		return nil, err
	}
	p.mu.Lock()
	p.setState(StateStarting)
	p.mu.Unlock()
	inst, err := p.launch(ctx)
	if err != nil {
		p.Close()
		return nil, err
	}
	p.mu.Lock()
	p.settled(inst)
	p.mu.Unlock()
	return p, nil
}

func (p *Plugin) makeRunDir() error {
	err := error(nil)
	if p.runDir != "" {
		err = CheckRunDir(p.runDir)
	} else if p.run, err = NewRunDir(""); err == nil {
		p.runDir = p.run.Path
	}
	var e *Error
	if errors.As(err, &e) {
		e.Plugin = p.cfg.Name
	}
	return err
}

// launch starts an instance and brings it to where its predecessor was.
func (p *Plugin) launch(ctx context.Context) (*instance, error) {
	ctx, cancel := context.WithTimeout(ctx, p.cfg.StartTimeout)
	defer cancel()
	inst, err := launch(ctx, &p.cfg, p.runDir)
	if err != nil {
		return nil, err
	}
	p.mu.Lock()
	p.last = inst
	p.info, p.schema = inst.info, inst.schema
	settings, apply := p.settings, p.applied
	p.mu.Unlock()
	if err := p.prepare(ctx, inst, settings, apply); err != nil {
		inst.stop(err, settle)
		<-inst.gone
		return nil, err
	}
	return inst, nil
}

func (p *Plugin) prepare(ctx context.Context, inst *instance, settings map[string]any, apply bool) error {
	if apply {
		if err := inst.configure(ctx, settings); err != nil {
			return err
		}
	}
	caps, err := inst.rpc.Capabilities(ctx, &proto.CapabilitiesRequest{Call: inst.call(ctx)})
	if err != nil {
		return inst.broken(ctx, "Capabilities", err)
	}
	p.mu.Lock()
	p.caps = proto.ToCapabilities(caps)
	p.mu.Unlock()
	inst.run()
	p.reopen(ctx, inst)
	if inst.useless() {
		return inst.err
	}
	return nil
}

// reopen opens the listeners in a new instance, each where it was. One for which
// that is impossible fails.
func (p *Plugin) reopen(ctx context.Context, inst *instance) {
	p.mu.Lock()
	open := make([]*listener, 0, len(p.listeners))
	for l := range p.listeners {
		open = append(open, l)
	}
	p.mu.Unlock()
	for _, l := range open {
		err := inst.listen(ctx, l, l.address)
		switch {
		case err == nil && l.reason() != nil: // closed meanwhile
			p.dropFrom(inst, l)
		case err != nil && !inst.useless():
			p.log.Error("listener is lost", "address", l.address, "error", err)
			l.fail(p.failure("listen", l.address, err))
		}
	}
}

// settled makes a started instance the current one. The caller holds mu.
func (p *Plugin) settled(inst *instance) {
	p.cur = inst
	p.status.PID = inst.proc.cmd.Process.Pid
	p.status.Path, p.status.Digest, p.status.Version = inst.path, inst.digest, inst.info.Version
	p.status.Starts++
	p.status.NextTry = time.Time{}
	p.setState(StateHealthy)
	p.log.Info("plugin is ready", "pid", p.status.PID, "version", inst.info.Version, "path", inst.path, "sha256", inst.digest)
	p.work.Go(func() {
		<-inst.dead
		p.died(inst)
		<-inst.gone
	})
}

// died takes note of the end of the current instance.
func (p *Plugin) died(inst *instance) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.cur != inst {
		return
	}
	p.cur = nil
	if p.isClosed() {
		return
	}
	if time.Since(inst.born) >= p.cfg.Restart.Healthy {
		p.status.Failures = 0
	}
	p.failed(inst.err)
}

// failed counts a death or a failed start and plans the next one. The caller
// holds mu.
func (p *Plugin) failed(err error) {
	p.status.PID = 0
	p.status.LastErr = err
	p.status.Failures++
	wait, open := p.cfg.Restart.wait(p.status.Failures, rand.Float64())
	p.status.NextTry = time.Now().Add(wait)
	state := StateBackoff
	if open {
		state = StateFailed
	}
	p.setState(state)
	p.log.Error("plugin is down", "error", err, "failures", p.status.Failures, "next_start_in", wait)
	if len(p.listeners) > 0 {
		p.begin() // peers cannot wait for our next need of it
	}
}

// setState changes the state and reports it. The caller holds mu.
func (p *Plugin) setState(s State) {
	p.status.State, p.status.Since = s, time.Now()
	if p.cfg.OnStatus != nil {
		p.cfg.OnStatus(p.status)
	}
}

// begin starts an attempt unless one is in progress. The caller holds mu.
func (p *Plugin) begin() *attempt {
	if p.attempt == nil && !p.isClosed() {
		a := &attempt{done: make(chan struct{})}
		p.attempt = a
		p.work.Go(func() { p.try(a) })
	}
	return p.attempt
}

// try waits until a start is allowed and starts. It is not bound to the context
// of the caller that caused it: others wait for it too.
func (p *Plugin) try(a *attempt) {
	p.mu.Lock()
	wait, last := time.Until(p.status.NextTry), p.last
	p.mu.Unlock()
	if wait > 0 {
		timer := time.NewTimer(wait)
		defer timer.Stop()
		select {
		case <-timer.C:
		case <-p.life.Done():
		}
	}
	if last != nil { // it may hold the addresses that the new one needs
		<-last.gone
	}
	p.mu.Lock()
	if !p.isClosed() {
		p.setState(StateStarting)
	}
	p.mu.Unlock()
	inst, err := p.launch(p.life)
	p.conclude(a, inst, err)
	if inst != nil && inst.useless() {
		<-inst.gone
	}
}

// conclude ends an attempt.
func (p *Plugin) conclude(a *attempt, inst *instance, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.attempt = nil
	switch {
	case p.isClosed():
		err = p.errClosed()
		if inst != nil {
			inst.stop(err, settle)
		}
	case err != nil:
		p.failed(err)
	default:
		p.settled(inst)
	}
	a.err = err
	close(a.done)
}

// acquire gives the healthy instance, and starts one when there is none. It waits
// for that no longer than the context allows, and not at all when it is not
// going to happen in time.
func (p *Plugin) acquire(ctx context.Context) (*instance, error) {
	for {
		p.mu.Lock()
		if p.isClosed() {
			p.mu.Unlock()
			return nil, p.errClosed()
		}
		if i := p.cur; i != nil && !i.useless() {
			p.mu.Unlock()
			return i, nil
		}
		if i := p.cur; i != nil { // dead, but nobody has taken note yet
			p.mu.Unlock()
			p.died(i)
			continue
		}
		if err := p.tooEarly(ctx); err != nil {
			p.mu.Unlock()
			return nil, err
		}
		a := p.begin()
		p.mu.Unlock()
		select {
		case <-a.done:
			if a.err != nil {
				return nil, a.err
			}
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// tooEarly says why it is of no use to wait for a start. The caller holds mu.
func (p *Plugin) tooEarly(ctx context.Context) error {
	wait := time.Until(p.status.NextTry)
	if wait <= 0 {
		return nil
	}
	e := &Error{Plugin: p.cfg.Name, Path: p.status.Path, Cause: p.status.LastErr}
	at, bounded := ctx.Deadline()
	switch {
	case p.status.State == StateFailed:
		e.Kind, e.Problem = ErrFailed, "died too often: "+p.status.LastErr.Error()
		e.Remedy = "correct the cause; it is tried again in " + wait.Round(time.Second).String()
	case bounded && time.Until(at) < wait:
		e.Kind, e.Problem = ErrBackoff, "has died: "+p.status.LastErr.Error()
		e.Remedy = "it is started again in " + wait.Round(time.Millisecond).String()
	default:
		return nil
	}
	return e
}

// Status gives the state at this moment.
func (p *Plugin) Status() Status {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.status
}

// drainTime is how long Close lets running dials end, exitTime how long a
// process that answers may take to exit.
const (
	drainTime = 2 * time.Second
	exitTime  = 3 * time.Second
)

// Close drains and ends the plugin. Links that were handed over live on, open
// listeners are closed. It returns when the process is gone, within a few
// seconds.
func (p *Plugin) Close() error {
	p.mu.Lock()
	if p.isClosed() {
		p.mu.Unlock()
		p.work.Wait()
		return nil
	}
	p.end()
	inst, open := p.cur, p.listeners
	p.listeners = make(map[*listener]struct{})
	p.mu.Unlock()
	for l := range open {
		l.shut(link.ErrClosed) // the plugin closes them all when it drains
	}
	if inst != nil {
		patience := time.Duration(0)
		if inst.drain(drainTime) {
			patience = exitTime
		}
		inst.stop(p.errClosed(), patience)
		<-inst.gone
	}
	p.work.Wait()
	p.mu.Lock()
	defer p.mu.Unlock()
	p.status.PID = 0
	p.setState(StateStopped)
	if p.run != nil {
		return p.run.Close()
	}
	return nil
}

func (p *Plugin) isClosed() bool { return p.life.Err() != nil }

func (p *Plugin) errClosed() error {
	return &Error{Plugin: p.cfg.Name, Kind: ErrClosed, Problem: "was stopped by its node", Remedy: "start it again"}
}
