package host

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/openimpi/impi/plugins/sdk/link"
	"github.com/openimpi/impi/plugins/sdk/transports"
)

// Plugin is a transport plugin that is supervised: it is started again after it dies. Its
// methods may be called by several goroutines.
type Plugin struct {
	cfg    Config
	log    hclog.Logger
	run    *RunDir // set if we made it
	runDir string
	life   context.Context // ends with Close
	end    context.CancelFunc
	work   sync.WaitGroup // no Add once life has ended

	reloading sync.Mutex // one at a time

	mu        sync.Mutex
	status    Status
	cur       *instance // the healthy instance, or nil
	last      *instance // the latest instance, which may still be ending
	leaving   *instance // the one before it, if it was replaced
	attempt   *attempt  // a start in progress, or nil
	listeners map[*listener]struct{}
	settings  map[string]any // last given to Configure, complete
	applied   bool           // settings must be applied again after a restart
	info      transports.Info
	schema    []transports.Setting
	caps      transports.Capabilities
	resent    resent
}

// Start launches a plugin and waits until it is ready: verified, introduced and, unless
// that is deferred, configured. It returns an *Error or, for wrong settings,
// *transports.SettingError joined by errors.Join, wrapping ErrSettings. A first start that
// fails is not repeated.
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
		_ = p.Close() // the reason why it did not start matters more
		return nil, err
	}
	p.mu.Lock()
	p.settled(inst)
	p.mu.Unlock()
	return p, nil
}

func (p *Plugin) makeRunDir() (err error) {
	if p.runDir != "" {
		err = CheckRunDir(p.runDir)
	} else if p.run, err = NewRunDir(""); err == nil {
		p.runDir = p.run.Path
	}
	if e, ok := errors.AsType[*Error](err); ok {
		e.Plugin = p.cfg.Name
	}
	return err
}

// launch starts an instance that does what its predecessor did.
func (p *Plugin) launch(ctx context.Context) (*instance, error) {
	return p.start(ctx, func(ctx context.Context, inst *instance) error {
		p.mu.Lock()
		p.last = inst
		p.info, p.schema = inst.info, inst.schema
		p.mu.Unlock()
		if err := p.configure(ctx, inst); err != nil {
			return err
		}
		caps, err := p.ready(ctx, inst)
		if err != nil {
			return err
		}
		p.mu.Lock()
		p.caps = caps
		p.mu.Unlock()
		p.reopen(ctx, inst, p.open())
		if inst.useless() {
			return inst.err
		}
		return nil
	})
}

func (p *Plugin) start(ctx context.Context, prepare func(context.Context, *instance) error) (*instance, error) {
	ctx, cancel := context.WithTimeout(ctx, p.cfg.StartTimeout)
	defer cancel()
	p.mu.Lock()
	cfg := p.cfg
	p.mu.Unlock()
	inst, err := launch(ctx, &cfg, p.runDir)
	if err != nil {
		return nil, err
	}
	if err := inst.hung(prepare(ctx, inst)); err != nil {
		inst.stop(err, settle)
		<-inst.gone
		return nil, err
	}
	return inst, nil
}

func (p *Plugin) configure(ctx context.Context, inst *instance) error {
	p.mu.Lock()
	settings, apply := p.settings, p.applied
	p.mu.Unlock()
	if !apply {
		return nil
	}
	return inst.configure(ctx, settings)
}

// ready learns what a configured instance can do and how well it is, and follows it from now on.
func (p *Plugin) ready(ctx context.Context, inst *instance) (caps transports.Capabilities, err error) {
	if caps, err = inst.capabilities(ctx); err != nil {
		return caps, err
	}
	if inst.problem, err = inst.health(ctx); err != nil {
		return caps, err
	}
	inst.run(func(problem string) { p.felt(inst, problem) })
	return caps, nil
}

// reopen opens listeners in a new instance at their addresses. A listener for which that is
// impossible fails.
func (p *Plugin) reopen(ctx context.Context, inst *instance, listeners []*listener) {
	for _, l := range listeners {
		err := l.reopen(ctx, inst)
		if err != nil && temporary(err) && inst.spawn(func() { l.reopenLater(inst, err) }) {
			continue
		}
		l.reopened(inst, err)
	}
}

// Status returns the state at this moment.
func (p *Plugin) Status() Status {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.status
}

// drainTime is the maximum time that Close waits for running dials, and exitTime the maximum time
// for a process that answers to exit.
const (
	drainTime = 2 * time.Second
	exitTime  = 3 * time.Second
)

// Close drains and ends the plugin. Links that were handed over live on; listeners are
// closed. It returns when the process has ended, within a few seconds.
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
		inst.pipes.flush(drainTime)
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
