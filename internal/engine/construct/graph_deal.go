package construct

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"maps"
	"slices"

	"github.com/openimpi/impi/core/comm"
	"github.com/openimpi/impi/core/datatype"
	"github.com/openimpi/impi/core/message"
	"github.com/openimpi/impi/core/wire"
	"github.com/openimpi/impi/internal/engine/collective"
	"github.com/openimpi/impi/internal/engine/proc"
)

// dealing sends the edges of a distributed graph to the members that they concern. A member does
// not know beforehand from which members it will receive, so it receives from any, in a context
// that has no other messages. Edge messages are sent synchronously. When its messages have been
// received, or cannot be, a member says so in an allreduce, and receives what comes meanwhile: when
// all members have entered that, no message is left, and all know whether one was lost. So the
// number of messages is that of the members plus that of the edge messages.
type dealing struct {
	c        *proc.Comm
	context  wire.ContextID // private
	out, in  []*message.Request
	messages []edgeMessage
	err      error
}

type edgeMessage struct {
	rank int
	text []byte
}

// Lengths in edge messages, in bytes.
const (
	edgeLen        = 12
	maxEdgeMessage = 1 << 31
)

// deal sends each edge to its source and its destination, and returns the edges that concern this
// member, ordered by the rank of the member that gave them.
func (x *dealing) deal(edges []comm.Edge, weighted bool) (*comm.DistGraph, error) {
	if err := x.exchange(x.write(edges)); err != nil {
		return nil, err
	}
	return comm.NewDistGraph(x.read(weighted), x.c.Size())
}

// write returns the messages by the rank that they are for.
func (x *dealing) write(edges []comm.Edge) map[int][]byte {
	messages := map[int][]byte{}
	give := func(rank int32, e comm.Edge) {
		l := messages[int(rank)]
		for _, w := range [...]int32{e.Source, e.Dest, e.Weight} {
			l = binary.BigEndian.AppendUint32(l, uint32(w))
		}
		messages[int(rank)] = l
	}
	for _, e := range edges {
		give(e.Source, e)
		if e.Dest != e.Source {
			give(e.Dest, e)
		}
	}
	return messages
}

// exchange sends the messages and receives until nothing can come any more. It always reaches the
// allreduce, so that all members count the same number of operations.
func (x *dealing) exchange(messages map[int][]byte) error {
	end, err := collective.Begin(x.c)
	if err != nil {
		return err
	}
	p := x.c.Process()
	p.Lock()
	defer p.Unlock()
	x.send(messages)
	x.until(func() bool { return allDone(x.out) })
	x.end(x.out)
	mine, worst := binary.NativeEndian.AppendUint32(nil, FaultCode(x.err)), make([]byte, 4)
	end.Err = end.Plan(collective.NewMaxAllreduce(datatype.Uint32, mine, worst))
	x.until(end.Done)
	_, err = end.Finish()
	x.until(func() bool { return allDone(x.in) })
	x.end(x.in)
	x.note(err)
	if code := binary.NativeEndian.Uint32(worst); code != 0 {
		x.note(FailedElsewhere(code))
	}
	return x.err
}

// end ends the requests, which are done unless the job has failed.
func (x *dealing) end(requests []*message.Request) {
	for _, r := range requests {
		x.note(x.c.Process().End(r, nil))
	}
}

func (x *dealing) until(done func() bool) {
	p := x.c.Process()
	for x.take(); !done() && p.Failure == nil; x.take() {
		p.AwaitProgress()
	}
}

func allDone(requests []*message.Request) bool {
	return !slices.ContainsFunc(requests, func(r *message.Request) bool { return !r.Done() })
}

func (x *dealing) note(err error) {
	if x.err == nil {
		x.err = err
	}
}

func (x *dealing) send(messages map[int][]byte) {
	c, p := x.c, x.c.Process()
	for _, rank := range slices.Sorted(maps.Keys(messages)) {
		l := messages[rank]
		if rank == c.Rank() {
			x.messages = append(x.messages, edgeMessage{rank, l})
			continue
		}
		proc, _ := c.Comm.Proc(rank)
		env := message.Envelope{Context: x.context, Rank: wire.CommRank(c.Rank())}
		r := p.Eng.Send(message.Peer(proc), env, message.Synchronous, l, int64(len(l)), uint64(datatype.Byte))
		p.Endpoints.Send(message.Peer(proc), len(l), true)
		x.out = append(x.out, r)
	}
}

// take begins to receive the messages that have come, also of those that cannot be valid, as their
// senders wait until they are received.
func (x *dealing) take() {
	p := x.c.Process()
	env := message.Envelope{Context: x.context, Rank: message.AnySource, Tag: message.AnyTag}
	for {
		m, st, ok := p.Eng.Take(env, message.NoPeer)
		if !ok {
			return
		}
		rank, member := x.c.Comm.Group().Rank(comm.Proc(st.Peer))
		var text []byte
		if member && st.Len <= maxEdgeMessage && st.Len%edgeLen == 0 {
			text = make([]byte, st.Len)
		} else {
			x.note(fmt.Errorf("%w: edges of %d bytes from proc %d", comm.ErrMessage, st.Len, st.Peer))
		}
		r := p.Eng.RecvMessage(m, text)
		p.Endpoints.ReceivePosted(r)
		x.in, x.messages = append(x.in, r), append(x.messages, edgeMessage{rank, text})
	}
}

func (x *dealing) read(weighted bool) (a comm.Adjacent) {
	slices.SortFunc(x.messages, func(a, b edgeMessage) int { return cmp.Compare(a.rank, b.rank) })
	if weighted {
		a.SourceWeights, a.DestWeights = []int{}, []int{}
	}
	me := x.c.Rank()
	add := func(ranks, weights []int, rank, weight int) ([]int, []int) {
		if weighted {
			weights = append(weights, weight)
		}
		return append(ranks, rank), weights
	}
	for _, l := range x.messages {
		for b := l.text; len(b) > 0; b = b[edgeLen:] {
			source, dest, weight := edgeWord(b), edgeWord(b[4:]), edgeWord(b[8:])
			if dest == me {
				a.Sources, a.SourceWeights = add(a.Sources, a.SourceWeights, source, weight)
			}
			if source == me {
				a.Dests, a.DestWeights = add(a.Dests, a.DestWeights, dest, weight)
			}
		}
	}
	return a
}

func edgeWord(b []byte) int { return int(int32(binary.BigEndian.Uint32(b))) }
