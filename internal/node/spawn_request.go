package node

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"strings"

	"github.com/openimpi/impi/core/dynamic"
	"github.com/openimpi/impi/core/link"
	"github.com/openimpi/impi/core/wire"
	"github.com/openimpi/impi/internal/node/dial"
	"github.com/openimpi/impi/internal/node/ending"
	"github.com/openimpi/impi/internal/node/routes"
)

// A node asks another one of its job to spawn procs there: over
// a link like that between two procs of the sites, by JSON objects behind their
// lengths.
//
//	spawnPart   -->
//	            <--  spawnReply: what it grants, or why not
//	spawnStart  -->
//	            <--  spawnReply: the procs are in Init, or why not
//
// It is no gRPC, which reads and writes at once: a link has one descriptor, for which one
// goroutine at a time may sleep. Who ends the link before the last one gives up. After that
// the spawned world's own server tells of its end.

// maxSpawnMessage is the most bytes of such an object.
const maxSpawnMessage = 1 << 17

// spawnReply answers a spawnPart or a spawnStart.
type spawnReply struct {
	Granted []int    `json:"granted,omitempty"` // procs, by command of the part
	Refused *refusal `json:"refused,omitempty"`
}

// spawnRequest is the dialler's end.
type spawnRequest struct {
	part    *plannedPart
	link    link.Link
	conn    *dial.Blocking
	granted []int
	begun   bool
	cancel  context.CancelFunc
}

var errSpawnMessage = errors.New("malformed message between nodes")

// say writes an object.
func say(t *dial.Blocking, x any) error {
	b, err := json.Marshal(x)
	if err != nil {
		return err
	}
	if len(b) > maxSpawnMessage {
		return fmt.Errorf("%w: %d bytes, at most %d", errSpawnMessage, len(b), maxSpawnMessage)
	}
	return t.WriteAll(append(binary.BigEndian.AppendUint32(nil, uint32(len(b))), b...))
}

// hear reads an object.
func hear(t *dial.Blocking, x any) error {
	var size [4]byte
	if err := t.ReadFull(size[:]); err != nil {
		return err
	}
	n := binary.BigEndian.Uint32(size[:])
	if n > maxSpawnMessage {
		return fmt.Errorf("%w: %d bytes, at most %d", errSpawnMessage, n, maxSpawnMessage)
	}
	b := make([]byte, n)
	if err := t.ReadFull(b); err != nil {
		return err
	}
	if err := json.Unmarshal(b, x); err != nil {
		return fmt.Errorf("%w: %w", errSpawnMessage, err)
	}
	return nil
}

// send asks another site of the job for a part. ctx bounds the whole request.
func (d *spawnService) send(ctx context.Context, part *plannedPart) (*spawnRequest, *refusal) {
	first, peer := &part.Commands[0], d.root.routes.ClientName(part.client)
	l, err := d.dial(ctx, part.client)
	if err != nil {
		return nil, first.about(fmt.Sprintf("%s cannot be asked: %v", peer, err))
	}
	e := &spawnRequest{part: part, link: l}
	ctx, e.cancel = context.WithCancel(ctx)
	if e.conn, err = dial.NewBlocking(ctx, l); err != nil {
		_ = l.Close()
		return nil, first.about(err.Error())
	}
	var reply spawnReply
	if err = say(e.conn, &part.spawnPart); err == nil {
		err = hear(e.conn, &reply)
	}
	e.granted = reply.Granted
	switch {
	case err != nil:
		e.end(nil)
		return nil, first.about(fmt.Sprintf("%s does not answer: %v", peer, err))
	case reply.Refused != nil:
		e.end(nil)
		return nil, reply.Refused
	case !sensible(&part.spawnPart, reply.Granted):
		e.end(nil)
		return nil, first.about(fmt.Sprintf("%s grants %v procs", peer, reply.Granted))
	}
	return e, nil
}

func sensible(part *spawnPart, granted []int) bool {
	if len(granted) != len(part.Commands) {
		return false
	}
	for i, n := range granted {
		if n < 0 || n > part.Commands[i].Procs {
			return false
		}
	}
	return true
}

// dial makes a link to the node of another site.
func (d *spawnService) dial(ctx context.Context, to wire.ClientRank) (link.Link, error) {
	n := d.root
	x := pair{n.job.Clients[n.job.Self].FirstProc, n.job.Clients[to].FirstProc}
	var reasons []string
	for _, w := range n.ways(x) {
		hello := dynamic.Hello{Spawn: true, Src: wire.WorldRank(n.job.Procs[x.local].Host), Dst: wire.WorldRank(n.job.Procs[x.peer].Host)}
		l, err := dial.Greeted(ctx, n.direct.token, n.routes.Pinned(w.T, x.peer), &hello, w)
		if err == nil {
			return l, nil
		}
		reasons = append(reasons, fmt.Sprintf("%s: %v", w.T.Name, err))
	}
	if reasons == nil {
		return nil, errNoWay
	}
	return nil, errors.New(strings.Join(reasons, "; "))
}

var errNoWay = errors.New("no transport is common to both sites, or the route has direct = false")

func (e *spawnRequest) site() string { return e.part.site }

func (e *spawnRequest) begin(s *spawnStart) error {
	e.begun = true
	if err := say(e.conn, s); err != nil {
		e.close()
		return err
	}
	return nil
}

// settled waits for the last answer. After it the link is of no use.
func (e *spawnRequest) settled() *refusal {
	defer e.close()
	var reply spawnReply
	if err := hear(e.conn, &reply); err != nil {
		return e.part.Commands[0].about(fmt.Sprintf("the node of site %s is gone: %v", e.part.site, err))
	}
	return reply.Refused
}

// end gives up, if the procs are not in Init yet.
func (e *spawnRequest) end(*ending.Failure) {
	e.cancel()
	if !e.begun {
		e.close()
	}
}

func (e *spawnRequest) close() {
	e.cancel()
	_ = e.link.Close()
}

// acceptSpawn greets a node that wants something, which is done beside everything else.
func (d *directLinks) acceptSpawn(ctx context.Context, l link.Link, g *dynamic.Acceptor, hello dynamic.Hello, t *routes.Transport) error {
	verdict := d.judgeSpawn(hello, l, t)
	if err := dial.Answer(ctx, l, g, verdict); err != nil {
		return err
	}
	if verdict != dynamic.Accepted || !d.begin(func() { d.runSpawn(l) }) {
		return l.Close()
	}
	return nil
}

// judgeSpawn lets the nodes of the job's other sites in by the links that their
// procs may have.
func (d *directLinks) judgeSpawn(hello dynamic.Hello, l link.Link, t *routes.Transport) dynamic.Verdict {
	from := routes.NoRank
	if hello.Src >= 0 && int(hello.Src) < len(d.n.job.Hosts) {
		from = d.n.routes.FirstOf(wire.HostRank(hello.Src))
	}
	switch {
	case d.n.opt.share != nil, from == routes.NoRank, d.n.job.Procs[from].Client == d.n.job.Self:
		return dynamic.UnknownRank
	case !d.n.routes.Allows(from, t), !d.n.routes.AllowsPlane(from, l):
		return dynamic.NotAllowed
	}
	return dynamic.Accepted
}

// runSpawn does what another node wants.
func (d *directLinks) runSpawn(l link.Link) {
	defer l.Close()
	limit := d.n.opt.Job.Limits.Start
	ctx, cancel := context.WithTimeout(d.ctx, limit+dial.GreetLimit)
	defer cancel()
	t, err := dial.NewBlocking(ctx, l)
	if err != nil {
		return
	}
	var part spawnPart
	if err := hear(t, &part); err != nil {
		d.n.log.Debug("a spawn request ends", "error", err)
		return
	}
	s, r := d.n.spawning.serveSpawn(ctx, &part)
	if r != nil {
		_ = say(t, spawnReply{Refused: r})
		return
	}
	var order spawnStart
	if err = say(t, spawnReply{Granted: s.granted}); err == nil {
		err = hear(t, &order)
	}
	if err != nil || order.Client < 0 || order.Client >= len(order.Sites) || len(order.Sites) > maxShares || s.slots == 0 {
		d.n.log.Debug("a spawn is given up by who wanted it", "world", part.World, "error", err)
		s.end(nil)
		return
	}
	_ = s.begin(&order)
	d.watchSpawn(ctx, l, s)
	if say(t, spawnReply{Refused: s.settled()}) == nil {
		_ = t.ReadFull(make([]byte, 1)) // who asked ends the link
	}
}

// watchSpawn waits until a share runs or has failed; if the other node ends the link
// before that, the share ends.
func (d *directLinks) watchSpawn(ctx context.Context, l link.Link, s *share) {
	watch, settled := context.WithCancel(ctx)
	defer settled()
	d.wg.Go(func() {
		defer settled()
		select {
		case <-s.node.ready:
		case <-s.done:
		case <-watch.Done():
		}
	})
	t, err := dial.NewBlocking(watch, l)
	if err == nil {
		err = t.ReadFull(make([]byte, 1))
	}
	if watch.Err() == nil || ctx.Err() != nil {
		s.cancel(ending.ToldBy(fmt.Sprintf("the site that spawned %s gave it up: %v", s.part.World, err)))
	}
}

// worldName is how spawned worlds are named.
var worldName = regexp.MustCompile(`^[A-Za-z0-9._-]{1,100}$`)

// serveSpawn reserves a part for another site.
func (d *spawnService) serveSpawn(ctx context.Context, part *spawnPart) (*share, *refusal) {
	total := 0
	for i := range part.Commands {
		if n := part.Commands[i].Procs; n < 1 || n > maxSpawnProcs {
			return nil, refusing(-1, "a command with %d procs", n)
		}
		total += part.Commands[i].Procs
	}
	if len(part.Commands) == 0 || len(part.Commands) > maxCommands || total > maxSpawnProcs || !worldName.MatchString(part.World) {
		return nil, refusing(-1, "%d commands, %d procs in world %q", len(part.Commands), total, part.World)
	}
	return d.reserve(ctx, part, true)
}
