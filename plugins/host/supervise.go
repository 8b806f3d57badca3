package host

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"
)

type attempt struct {
	done chan struct{}
	err  error // valid when done is closed
}

// settled makes a started instance the current one. The caller holds mu.
func (p *Plugin) settled(inst *instance) {
	p.cur = inst
	p.status.PID = inst.proc.cmd.Process.Pid
	p.status.Path, p.status.Digest, p.status.Version = inst.path, inst.digest, inst.info.Version
	p.status.Protocol, p.status.Lacks = inst.protocol, lacks(inst.protocol)
	p.status.Starts++
	p.status.NextTry = time.Time{}
	p.log.Info("plugin is ready", "pid", p.status.PID, "version", inst.info.Version, "protocol", inst.protocol, "path", inst.path, "sha256", inst.digest)
	inst.warnOfAge()
	p.setHealth(inst.problem)
	p.work.Go(func() {
		<-inst.dead
		p.died(inst)
		<-inst.gone
	})
}

func (p *Plugin) felt(inst *instance, problem string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.cur == inst && p.status.Problem != problem {
		p.setHealth(problem)
	}
}

// setHealth changes the state of a running plugin. The caller holds mu.
func (p *Plugin) setHealth(problem string) {
	was := p.status.Problem
	p.status.Problem = problem
	switch {
	case problem != "":
		p.log.Warn("plugin is degraded", "problem", problem)
		p.setState(StateDegraded)
		return
	case was != "":
		p.log.Info("plugin is well again", "problem_was", was)
	}
	p.setState(StateHealthy)
}

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
	if time.Since(inst.started) >= p.cfg.Restart.Healthy {
		p.status.Failures = 0
	}
	p.failed(inst.err)
}

// failed counts a death or a failed start and schedules the next start. The caller holds
// mu.
func (p *Plugin) failed(err error) {
	p.status.PID, p.status.Problem = 0, ""
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
		p.begin() // at once: peers may want to connect to the listeners
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

// try waits until a start is allowed and starts. It does not use the context of the caller
// that caused it, because others wait for it too.
func (p *Plugin) try(a *attempt) {
	p.mu.Lock()
	wait, last, leaving := time.Until(p.status.NextTry), p.last, p.leaving
	p.mu.Unlock()
	if wait > 0 {
		timer := time.NewTimer(wait)
		defer timer.Stop()
		select {
		case <-timer.C:
		case <-p.life.Done():
		}
	}
	for _, before := range []*instance{last, leaving} {
		if before != nil { // it may still use the addresses that the new one needs
			<-before.gone
		}
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

// acquire returns the healthy instance. If there is none it starts one and waits for it,
// until the context ends. It returns at once if the start cannot happen before that.
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
		if i := p.cur; i != nil { // dead, but not handled yet
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

// tooEarly returns the error if waiting for a start is useless. The caller holds mu.
func (p *Plugin) tooEarly(ctx context.Context) error {
	wait := time.Until(p.status.NextTry)
	if wait <= 0 {
		return nil
	}
	e := &Error{Plugin: p.cfg.Name, Path: p.status.Path, Cause: p.status.LastErr}
	at, bounded := ctx.Deadline()
	switch {
	case p.status.State == StateFailed:
		e.Kind, e.Problem = ErrFailed, fmt.Sprintf("died too often, %d times in a row, and is left alone for %v: %v", p.status.Failures, p.cfg.Restart.Cooldown, p.status.LastErr)
		e.Remedy = "correct the cause; it is tried again in " + wait.Round(time.Second).String()
	case bounded && time.Until(at) < wait:
		e.Kind, e.Problem = ErrBackoff, "has died: "+p.status.LastErr.Error()
		e.Remedy = "it is started again in " + wait.Round(time.Millisecond).String()
	default:
		return nil
	}
	return e
}
