// Package neighbour decides what a host of a site says to its parent and what it does with what its
// neighbours in the tree say: what its Member takes, what is passed on to the head, and what is
// handed to all hosts below. It is pure. internal/cluster runs it over gRPC, internal/sim/tree over
// simulated links.
package neighbour

import (
	"errors"
	"time"

	"github.com/openimpi/impi/core/membership"
	"github.com/openimpi/impi/internal/rpc/proto"
)

// ErrUnknown is FromChild's error for a message that no host of this version sends.
var ErrUnknown = errors.New("the message is of no known kind")

// BeatUp and BeatDown are the signs of life for the parent and for a child.
var (
	BeatUp   = &proto.Up{Word: &proto.Up_Beat{Beat: &proto.Nothing{}}}
	BeatDown = &proto.Down{Word: &proto.Down_Beat{Beat: &proto.Nothing{}}}
)

// ToParent returns the message by which a host that is not the head reports a step to its parent:
// Report, Wait or Finished. It returns nil for the other steps.
func ToParent(s membership.Step) *proto.Up {
	switch s.Kind {
	case membership.Report:
		p := &proto.Parts{}
		for _, x := range s.Parts {
			p.Part = append(p.Part, &proto.Part{Host: int32(x.Host), Data: x.Data})
		}
		return &proto.Up{Word: &proto.Up_Parts{Parts: p}}
	case membership.Wait:
		w := &proto.Hosts{}
		for _, x := range s.Hosts {
			w.Host = append(w.Host, int32(x))
		}
		return &proto.Up{Word: &proto.Up_WaitsFor{WaitsFor: w}}
	case membership.Finished:
		return &proto.Up{Word: &proto.Up_Finished{Finished: &proto.Nothing{}}}
	default: // for this host alone
		return nil
	}
}

// FromChild passes a child's message to m. If forHead is true the message is for the head: a host
// that has a parent passes it on, the head acts on it. After an error, which wraps one of package
// membership or ErrUnknown, the child cannot be trusted any more.
func FromChild(m *membership.Member, child int, w *proto.Up, now time.Time) (forHead bool, err error) {
	switch x := w.GetWord().(type) {
	case *proto.Up_Beat, *proto.Up_Bye:
		m.HeardFrom(child, now)
		return false, nil
	case *proto.Up_Parts:
		parts := make([]membership.Part, len(x.Parts.GetPart()))
		for i, y := range x.Parts.GetPart() {
			parts[i] = membership.Part{Host: int(y.GetHost()), Data: y.GetData()}
		}
		return false, m.AddParts(child, parts, now)
	case *proto.Up_WaitsFor:
		hosts := make([]int, len(x.WaitsFor.GetHost()))
		for i, y := range x.WaitsFor.GetHost() {
			hosts[i] = int(y)
		}
		return false, m.ReportMissing(child, hosts, now)
	case *proto.Up_Finished:
		return false, m.ChildFinished(child, now)
	case *proto.Up_Stays:
		m.HeardFrom(child, now)
		return true, nil
	case *proto.Up_Listens:
		return true, m.CheckSender(child, int(x.Listens.GetHost()), now)
	case *proto.Up_Fails:
		return true, m.CheckSender(child, int(x.Fails.GetHost()), now)
	case *proto.Up_Answer:
		return true, m.CheckSender(child, int(x.Answer.GetHost()), now)
	case *proto.Up_Asks:
		return true, m.CheckSender(child, int(x.Asks.GetMessage().GetHost()), now)
	default:
		return false, ErrUnknown
	}
}

// FromParent passes the parent's message to m, and reports whether it is for all hosts below as
// well.
func FromParent(m *membership.Member, parent int, w *proto.Down, now time.Time) (forBelow bool) {
	m.HeardFrom(parent, now)
	switch w.GetWord().(type) {
	case *proto.Down_Over:
		m.End()
		return true
	case *proto.Down_Job, *proto.Down_Signal, *proto.Down_Stop:
		return true
	default: // for this host, or a host that the message names
		return false
	}
}
