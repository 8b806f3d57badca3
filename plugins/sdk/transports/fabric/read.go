package fabric

import (
	"errors"
	"fmt"

	"golang.org/x/sys/unix"

	"github.com/openimpi/impi/plugins/sdk/support/rdma"
)

const (
	// railSize is how many bytes of a read go by one rail at least if it is split.
	railSize = 64 << 10
	// railAlign is to what the pieces of a read that is split are aligned.
	railAlign = 4 << 10
)

// lending is the memory that the proc has lent.
type lending struct {
	regions map[uint32]*lent
	own     *entry // the control region, once it is needed
}

type lent struct {
	*entry
	generation uint32
}

// reading is what the proc reads of messages that were offered.
type reading struct {
	parts  map[uint64]*part // that are under way, by operation
	want   []*part          // that the connection had no room for, oldest first
	lastOp uint64
	rail   int // where the next part goes
	under  int // reads of the proc
	ended  [16]Completion
}

// read is one Read of the proc.
type read struct {
	number  uint64
	message uint64
	entry   *entry // where it goes to
	local   Registration
	key     []byte
	parts   int // that are not complete
}

// part is what goes by one rail of a read.
type part struct {
	*read
	rail int
	into []byte
	from uint64
}

// find returns the memory of an entry's region, and checks that the entry is inside.
func (p *pump) find(e *rdma.Entry) (*entry, error) {
	for {
		l, ok, err := p.port.NextRegion()
		if err != nil {
			return nil, err
		}
		if !ok {
			break
		}
		if err := p.lend(l); err != nil {
			return nil, err
		}
	}
	x := p.regions[e.Region]
	switch {
	case x == nil:
		return nil, fmt.Errorf("%w: it uses region %d, which is not lent", rdma.ErrRules, e.Region)
	case x.generation != e.Generation:
		return nil, fmt.Errorf("%w: it uses generation %d of region %d, which is lent in generation %d", rdma.ErrRules, e.Generation, e.Region, x.generation)
	case e.Offset > uint64(x.size) || e.Length > uint64(x.size)-e.Offset:
		return nil, fmt.Errorf("%w: %d bytes at offset %d are not in region %d, which has %d", rdma.ErrRules, e.Length, e.Offset, e.Region, x.size)
	}
	return x.entry, nil
}

// lend takes a region that the proc lends. One of the same number takes its place. There may be twice
// as many as the proc lends at a time: it may have submitted that others are to be forgotten, which
// is read later than the region channel.
func (p *pump) lend(l rdma.Lent) error {
	old := p.regions[l.Number]
	if len(p.regions) >= 2*rdma.MaxLent && old == nil || old != nil && l.Generation <= old.generation {
		return errors.Join(fmt.Errorf("%w: it lends generation %d of region %d, beside %d regions", rdma.ErrRules, l.Generation, l.Number, len(p.regions)), unix.Close(l.FD))
	}
	x, err := p.cache.lend(l.FD, l.Size)
	if err != nil {
		return err
	}
	if old != nil {
		p.cache.reclaim(old.entry)
	}
	p.regions[l.Number] = &lent{x, l.Generation}
	return nil
}

func (p *pump) forget(e *rdma.Entry) error {
	x := p.regions[e.Region]
	if x == nil {
		return fmt.Errorf("%w: it reclaims region %d, which is not lent", rdma.ErrRules, e.Region)
	}
	if x.generation == e.Generation { // else it was replaced
		delete(p.regions, e.Region)
		p.cache.reclaim(x.entry)
	}
	return nil
}

// stage returns the control region as memory to be registered.
func (p *pump) stage() (*entry, error) {
	if p.own == nil {
		own, err := p.cache.lend(p.port.TakeFile())
		if err != nil {
			return nil, err
		}
		p.own = own
	}
	return p.own, nil
}

// read begins a Read of the proc.
func (p *pump) read(e *rdma.Entry) error {
	m := p.open[e.Message]
	if m == nil || e.At > m.length || e.Length > m.length-e.At {
		return fmt.Errorf("%w: it reads %d bytes at %d of message %d, which is not open or shorter", rdma.ErrRules, e.Length, e.At, e.Message)
	}
	if p.under > p.port.Shape().Slots {
		return fmt.Errorf("%w: it reads more than once for each slot", rdma.ErrRules)
	}
	to := e.Offset
	var x *entry
	var err error
	if e.Region == 0 {
		at, ok := p.port.StageAt(e)
		if !ok {
			return fmt.Errorf("%w: it reads %d bytes to offset %d of the slots for reading, which is not in one of them", rdma.ErrRules, e.Length, e.Offset)
		}
		to = at
		x, err = p.stage()
	} else {
		x, err = p.find(e)
	}
	if err != nil {
		return err
	}
	reg, mem, err := p.cache.use(x)
	if err != nil {
		return err
	}
	r := &read{number: e.Number, message: e.Message, entry: x, local: reg, key: m.key}
	into := mem[to:][:e.Length:e.Length]
	switch {
	case reg != nil:
		p.split(r, into, m.offset+e.At)
	case p.answers:
		p.fetch(r, into, e.At)
	default:
		p.cache.unuse(x)
		return fmt.Errorf("%d bytes of memory could not be registered for reading into, and the other side is too old to send what is to be read", x.size) //nolint:err113 // for a person
	}
	p.under++
	return nil
}

// split divides a read among the rails.
func (p *pump) split(r *read, into []byte, from uint64) {
	each := len(into)
	if n := min(len(p.rails), len(into)/railSize); n > 1 {
		each = (len(into)/n + railAlign - 1) / railAlign * railAlign
	}
	for len(into) > 0 {
		k := min(each, len(into))
		r.parts++
		p.want = append(p.want, &part{read: r, rail: p.nextRail(), into: into[:k:k], from: from})
		into, from = into[k:], from+uint64(k)
	}
}

// nextRail returns a rail that works, in turn, or -1.
func (p *pump) nextRail() int {
	for range p.rails {
		p.rail = (p.rail + 1) % len(p.rails)
		if p.rails[p.rail] {
			return p.rail
		}
	}
	return -1
}

// reads reports whether a message is being read.
func (p *pump) reads(message uint64) bool {
	for _, x := range p.parts {
		if x.message == message {
			return true
		}
	}
	for _, x := range p.want {
		if x.message == message {
			return true
		}
	}
	for _, x := range p.slow {
		if x.message == message {
			return true
		}
	}
	return false
}

// issue gives the connection the parts that wait.
func (p *pump) issue() (moved bool, err error) {
	for len(p.want) > 0 {
		x := p.want[0]
		ok, err := p.conn.Read(Request{Op: p.lastOp + 1, Rail: x.rail, Into: x.into, Local: x.local, Key: x.key, From: x.from})
		if err != nil || !ok {
			return moved, err
		}
		p.lastOp++
		p.parts[p.lastOp] = x
		p.want, moved = append(p.want[:0], p.want[1:]...), true
	}
	return moved, nil
}

// completions takes the reads that have ended.
func (p *pump) completions() (moved bool, err error) {
	if len(p.parts) == 0 {
		return false, nil
	}
	for {
		n := p.conn.Completed(p.ended[:])
		for _, c := range p.ended[:n] {
			if err := p.completed(c); err != nil {
				return true, err
			}
		}
		moved = moved || n > 0
		if n < len(p.ended) {
			return moved, nil
		}
	}
}

func (p *pump) completed(c Completion) error {
	x := p.parts[c.Op]
	if x == nil {
		return fmt.Errorf("the connection completes read %d, which is not under way", c.Op) //nolint:err113 // a fault of the plugin
	}
	delete(p.parts, c.Op)
	if c.Err != nil {
		p.rails[x.rail] = false
		x.rail = p.nextRail()
		p.want = append(p.want, x) // also if this is the end: release gives back what it uses
		if x.rail < 0 {
			return fmt.Errorf("read of %d bytes: no rail is left: %w", len(x.into), c.Err)
		}
		return nil
	}
	if x.parts--; x.parts > 0 {
		return nil
	}
	p.under--
	p.cache.unuse(x.entry)
	return p.port.Complete(rdma.Entry{Kind: rdma.WasRead, Number: x.number})
}

// release gives back everything that was lent. Nothing is under way any more.
func (p *pump) release() {
	for _, x := range p.loans {
		if x.message != 0 {
			p.cache.unuse(x.entry)
		}
	}
	for _, x := range p.queue {
		if x.copied != nil {
			p.cache.unuse(x.from)
		}
		if x.from != nil {
			p.cache.reclaim(x.from)
		}
	}
	for _, x := range p.slow {
		p.cache.unuse(x.entry)
	}
	done := map[*read]bool{}
	for _, x := range p.parts {
		done[x.read] = true
	}
	for _, x := range p.want {
		done[x.read] = true
	}
	for r := range done {
		p.cache.unuse(r.entry)
	}
	for _, x := range p.regions {
		p.cache.reclaim(x.entry)
	}
	p.port.Forsake()
	if p.own != nil {
		p.cache.reclaim(p.own)
	}
}
