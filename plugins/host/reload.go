package host

import (
	"context"
	"maps"
	"slices"
)

// Reload replaces the plugin's process by a new one, started from the file that its path
// names now; a pinned checksum applies to that file too. Dials use the new process as soon
// as it is ready, listeners move and keep their addresses, and the old process ends when
// its dials and its last bytes are done. Links that were handed over are not affected;
// those whose bytes pass through the old process end with it.
//
// After an error the old process continues: the new one did not become ready, or the plugin
// was closed. A listener that cannot be moved fails as after a restart, which is logged.
func (p *Plugin) Reload(ctx context.Context) error {
	p.reloading.Lock()
	defer p.reloading.Unlock()
	old, err := p.acquire(ctx)
	if err != nil {
		return err
	}
	next, err := p.start(ctx, p.configure)
	if err != nil {
		return err
	}
	if err := p.replace(old, next); err != nil {
		next.stop(err, settle)
		<-next.gone
		return err
	}
	late := p.move(ctx, old, next)
	patience := settle
	if old.drain(drainTime) {
		patience = exitTime
	}
	old.stop(&Error{Plugin: p.cfg.Name, Path: old.path, Kind: ErrClosed, Problem: "was replaced by its node", Remedy: "dial again"}, patience)
	<-old.gone
	p.reopen(ctx, next, late)
	return nil
}

// Pin makes processes that start from now on run another file, with another pinned checksum: see
// Config. A built-in plugin stays built in.
func (p *Plugin) Pin(path, sha256 string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.cfg.Builtin {
		p.cfg.Path, p.cfg.SHA256 = path, sha256
	}
}

// replace makes next the current instance. Errors of the old one are ignored from here on.
func (p *Plugin) replace(old, next *instance) error {
	caps, err := p.ready(next.ctx, next)
	if err != nil {
		return err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.isClosed() {
		return p.errClosed()
	}
	p.info, p.schema, p.caps = next.info, next.schema, caps
	p.leaving, p.last = old, next
	p.status.Failures = 0
	p.settled(next)
	return nil
}

// move opens the listeners in next at their addresses. It returns those that can be opened
// only when the old instance has ended, which may still use the address.
func (p *Plugin) move(ctx context.Context, old, next *instance) (late []*listener) {
	for _, l := range p.open() {
		p.dropFrom(old, l)
		if err := next.listen(ctx, l, l.address); err != nil {
			p.log.Debug("a listener moves when the old process is gone", "address", l.address, "error", err)
			late = append(late, l)
		}
	}
	return late
}

func (p *Plugin) open() []*listener {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Collect(maps.Keys(p.listeners))
}
