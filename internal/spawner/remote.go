package spawner

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/openimpi/impi/core/dynamic"
	"github.com/openimpi/impi/core/ending"
	"github.com/openimpi/impi/core/spawn"
	"github.com/openimpi/impi/core/wire"
	"github.com/openimpi/impi/internal/connmgr/dial"
	"github.com/openimpi/impi/internal/routes"
	"github.com/openimpi/impi/internal/spawner/spares"
	"github.com/openimpi/impi/plugins/sdk/link"
)

// A node asks another one of its job to spawn procs there: over a link like that between two procs
// of the sites, by dial.Messages.
//
//	spawn.Part  -->
//	            <--  spawn.Reply: what it grants, or why not
//	start       -->
//	            <--  spawn.Reply: the procs are in Init, or why not
//
// If one side closes the link before the last message, the spawn is given
// up. After that the spawned world's own server tells of its end.

// maxMessage is the maximum size of a message of this exchange, in bytes.
const maxMessage = 1 << 17

// remote is another site's part of a world that was spawned here: the dialler's end of a request.
type remote struct {
	part   *spawn.PlacedPart
	name   string // of the site
	link   link.Link
	node   dial.Messages
	begun  bool
	cancel context.CancelFunc
	ended  func(why string) // at a spare site: reports that the link is closed; else nil
}

// request asks another site of the job, or a spare one, for a part. ctx bounds the whole request.
func (d *Spawner) request(ctx context.Context, part *spawn.PlacedPart) (*remote, spawn.Reply) {
	p := &remote{part: part, name: d.siteOf(part)}
	peer := "spare site " + part.Spare
	refuse := func(format string, args ...any) (*remote, spawn.Reply) {
		return nil, spawn.Reply{Refused: part.Commands[0].Refuse(fmt.Sprintf(format, args...))}
	}
	var err error
	var question any = &part.Part
	if part.Client == spawn.NoClient {
		question = spares.Order{Part: &part.Part}
		err = d.ofSpare(ctx, p)
	} else {
		peer = d.Routes.ClientName(part.Client)
		p.link, err = d.dial(ctx, part.Client)
	}
	if err != nil {
		return refuse("cannot ask %s: %v", peer, err)
	}
	ctx, p.cancel = context.WithCancel(ctx)
	p.node.MaxSize = maxMessage
	if p.node.Blocking, err = dial.NewBlocking(ctx, p.link); err != nil {
		p.close()
		return refuse("%v", err)
	}
	var a spawn.Reply
	if err = p.node.Write(question); err == nil {
		err = p.node.Read(&a)
	}
	switch {
	case err != nil:
		p.close()
		return refuse("%s does not answer: %v", peer, err)
	case a.Refused != nil:
		p.close()
	case !part.Fits(a.Granted):
		p.close()
		return refuse("%s grants %v procs", peer, a.Granted)
	}
	return p, a
}

func (d *Spawner) ofSpare(ctx context.Context, p *remote) (err error) {
	limit := routes.CurrentLimits(d.Routes).Start
	for i := range p.part.Commands {
		given, err := waitFor(p.part.Commands[i].Info["timeout"])
		if err != nil {
			return err
		}
		limit = cmp.Or(given, limit)
	}
	p.link, p.ended, err = d.SpareSites.Link(ctx, p.part.Spare, limit)
	return err
}

// waitFor reads the info key timeout, in seconds; 0: there is none.
func waitFor(text string) (time.Duration, error) {
	if text == "" {
		return 0, nil
	}
	n, err := strconv.ParseFloat(text, 64)
	if err != nil || !(n > 0 && n <= 1e6) {
		return 0, fmt.Errorf("its timeout %q is no number of seconds", text)
	}
	return time.Duration(n * float64(time.Second)), nil
}

func (d *Spawner) dial(ctx context.Context, to wire.ClientRank) (link.Link, error) {
	job := d.Routes.World
	local, peer := routes.FirstProc(d.Routes), job.Clients[to].FirstProc
	var reasons []string
	for _, w := range d.Routes.Candidates(local, peer, d.Procs.OfRank(local).Address()) {
		hello := dynamic.Hello{Spawn: true, Src: wire.WorldRank(job.Procs.At(local).Host), Dst: wire.WorldRank(job.Procs.At(peer).Host)}
		l, err := dial.DialAndGreet(ctx, job.Token, d.Routes.Pinned(w.Transport, peer), &hello, w)
		if err == nil {
			return l, nil
		}
		reasons = append(reasons, fmt.Sprintf("%s: %v", w.Transport.Name, err))
	}
	switch {
	case !job.AllOwn:
		return nil, errForeign
	case reasons == nil:
		return nil, errNoCandidate
	}
	return nil, errors.New(strings.Join(reasons, "; "))
}

var errForeign = errors.New("in a job with a site of another MPI, procs spawn at their own site only")

var errNoCandidate = errors.New("no transport is common to both sites, or the route has direct = false")

func (p *remote) begin(s start) error {
	p.begun = true
	if err := p.node.Write(s); err != nil {
		p.close()
		return err
	}
	return nil
}

// settled waits for the last answer. After it the link is of no use.
func (p *remote) settled() *spawn.Refusal {
	defer p.close()
	var r spawn.Reply
	if err := p.node.Read(&r); err != nil {
		return p.part.Commands[0].Refuse(fmt.Sprintf("the node of site %s is gone: %v", p.name, err))
	}
	return r.Refused
}

// end gives up, if the procs are not in Init yet.
func (p *remote) end(*ending.Failure) {
	p.cancel()
	if !p.begun {
		p.close()
	}
}

func (p *remote) close() {
	p.cancel()
	_ = p.link.Close()
	if p.ended != nil {
		p.ended("its node has ended with the last procs that it was asked for")
	}
}
