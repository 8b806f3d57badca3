package node

import (
	"context"
	"net/netip"
	"strings"

	"github.com/openimpi/impi/config"
	"github.com/openimpi/impi/core/dynamic"
	"github.com/openimpi/impi/internal/node/ending"
)

// share is one site's part of a spawned world: procs on one host of the site, with a
// node of their own. The node is in the process of the site's and has its output and
// its transports.
type share struct {
	service  *spawnService
	part     *spawnPart
	host     config.Host
	programs []config.Program // by command
	granted  []int            // procs, by command
	slots    int              // taken

	of *spawnedWorld // whose part it is, if a proc of this site has spawned it

	numbers []int  // by proc: its command among all of the spawn
	runs    []int  // by proc: its command among the share's
	parent  string // the port that the procs call

	node    *node
	cancel  context.CancelCauseFunc
	done    chan struct{}   // closed when nothing of it is left
	failure *ending.Failure // valid then
	late    bool            // it came after the end of the share's job
}

// spawnStart is what the shares of a spawned world have to know of each other. It
// is for their nodes only: it has the world's key.
type spawnStart struct {
	Server netip.AddrPort `json:"server"`
	Key    uint64         `json:"key"`
	Sites  []string       `json:"sites"` // names, by client
	Client int            `json:"client"`
	Parent string         `json:"parent"` // port
}

// begin starts the procs and their node.
func (s *share) begin(o *spawnStart) error {
	s.parent = o.Parent
	for i, n := range s.granted {
		for range n {
			s.runs, s.numbers = append(s.runs, i), append(s.numbers, s.part.Commands[i].Number)
		}
	}
	root := s.service.root
	site := s.asClient(o)
	s.node = newNode(Options{
		Job: s.job(o, site), Site: site, Now: root.opt.Now, RunBase: root.opt.RunBase, share: s,
	})
	ctx, cancel := context.WithCancelCause(s.service.ctx)
	s.cancel, s.done = cancel, make(chan struct{})
	s.service.mu.Lock()
	s.service.shares[s] = struct{}{}
	s.service.mu.Unlock()
	s.service.wg.Go(func() {
		defer cancel(nil)
		s.failure = s.node.life(ctx)
		s.late = s.node.end.WasLate(s.failure)
		s.service.release(s)
		close(s.done)
	})
	return nil
}

func (s *share) site() string { return s.service.root.opt.Site.Name }

// settled waits until the procs are in Init.
func (s *share) settled() *refusal {
	select {
	case <-s.node.ready:
		return nil
	case <-s.done:
	}
	switch f := s.failure; {
	case f == nil:
		return refusing(-1, "%s ended", s.part.World)
	case f.Proc > 0:
		i := s.runs[f.Proc-1]
		return s.part.Commands[i].about(f.Text)
	default:
		return refusing(-1, "%s", f.Text)
	}
}

// end gives back what was reserved, or ends what was started.
func (s *share) end(f *ending.Failure) {
	if s.done == nil {
		s.service.release(s)
		return
	}
	s.cancel(f)
}

// gone waits until nothing is left of the share.
func (s *share) gone() {
	if s.done != nil {
		<-s.done
	}
}

// asClient is the site as the share's node sees it: one client of another job.
func (s *share) asClient(o *spawnStart) config.Site {
	site := s.service.root.opt.Site
	site.Client = o.Client
	site.Server = config.Server{Address: o.Server, Ours: true, TLS: site.Server.TLS}
	site.Auth = config.Auth{Keyed: true, Key: o.Key}
	site.Hosts = []config.Host{{Address: s.host.Address, Procs: len(s.runs), NoBoard: s.host.NoBoard}}
	site.Program = s.programs[0]
	if trace := site.Log.Trace; trace != "" && !strings.Contains(trace, "%r") {
		site.Log.Trace = trace + "." + s.part.World + ".%r"
	} else {
		site.Log.Trace = strings.ReplaceAll(trace, "%r", s.part.World+".%r")
	}
	return site
}

// job is the spawned world as far as the site's file knows the others of it.
func (s *share) job(o *spawnStart, own config.Site) *config.Job {
	of := s.service.root.opt.Job
	job := &config.Job{File: of.File, Dir: of.Dir, Complete: true, Limits: of.Limits}
	for client, name := range o.Sites {
		site, ok := of.Site(name)
		switch {
		case client == o.Client:
			site = own
		case !ok:
			site = config.Site{Name: name}
		}
		site.Client = client
		job.Sites = append(job.Sites, site)
	}
	return job
}

// leaving tells whether procs of the share may be about to end: they have parted from
// their parents, or some have finished.
func (s *share) leaving() bool {
	if s.of != nil && s.of.is(dynamic.SpawnDisconnected) {
		return true
	}
	return s.node.isReady() && s.node.procs.Finishing()
}
