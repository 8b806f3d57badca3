package agent

import (
	"fmt"
	"time"

	"github.com/openimpi/impi/core/startup"
	"github.com/openimpi/impi/core/wire"
)

// FailedError is the Err of a HostDied event of a host that has reported by PkFail why its part of
// the job ends.
type FailedError struct {
	Peer Peer
	Text string
}

// Error returns the name of the host and the text that it sent.
func (e *FailedError) Error() string { return fmt.Sprintf("%v has failed: %s", e.Peer, e.Text) }

// TellTime is the time after which the owner closes the channels of hosts that have been told by
// Fail and have not closed theirs.
const TellTime = 500 * time.Millisecond

// Fail records that the job has failed at this host, and why. The text is sent to the hosts that
// accept PkFail and have a channel, before all packets that wait. The result is the links of these
// channels: each of the hosts closes its end. The owner closes those that are left after TellTime.
func (a *Agent) Fail(text string) (told []LinkID) {
	text = text[:min(len(text), wire.MaxFail, a.pool.size-wire.HeaderSize)]
	b := make([]byte, wire.HeaderSize, wire.HeaderSize+len(text))
	wire.Published.PutHeader(b, &wire.Packet{Type: wire.PkFail, Len: uint32(len(text))})
	b = append(b, text...)
	for h, p := range a.endpoints {
		if p == nil || p.state != open || p.over || p.err != nil || !a.hosts[h].Fails {
			continue
		}
		p.urgent.copyIn(&a.pool, b, false)
		a.touch(p)
		told = append(told, p.link)
	}
	return told
}

// tells begins to read the n bytes of a packet of a type that IMPI does not have, at most most.
// PkFail and PkLost may come after FINI: procs may fail after Finalize.
func (p *endpoint) tells(n, most uint32) *ProtocolError {
	if n > most {
		return p.violation("pk_len", n, "a packet of this type has at most %d bytes", most)
	}
	p.inquiries()
	p.in.size += int(n)
	p.in.left = p.in.size
	return nil
}

func (p *endpoint) failed() error {
	return &FailedError{Peer: p.peer, Text: startup.Printable(p.inquiry.special[wire.HeaderSize:])}
}
