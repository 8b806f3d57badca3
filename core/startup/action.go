package startup

import (
	"fmt"

	"github.com/openimpi/impi/core/wire"
)

// ConnID is the owner's number for a connection to the server. A number must not be used again
// after its connection has ended.
type ConnID int64

// ActionKind is what the server's owner has to do.
type ActionKind uint8

// The kinds of action.
const (
	ActSend  ActionKind = iota // send Bytes on Conn
	ActClose                   // close Conn once everything is sent; Reason is the reason
	ActEvent                   // report Event to the operator
)

// Action is an action for the server's owner. Actions are done in the order in which they come.
type Action struct {
	Kind   ActionKind
	Conn   ConnID
	Bytes  []byte // shared between connections: must not be changed
	Reason error  // nil when the client has finished
	Event  Event
}

// EventKind is what has happened in the job; it decides which fields of an Event are set.
type EventKind uint8

// The events of a job, roughly in the order in which they happen.
const (
	EventRefused   EventKind = iota // a connection that never became a client has ended: Conn, Peer, Err
	EventJoined                     // Client has joined: Conn, Peer
	EventMoved                      // Client has left for another server: Conn, Peer, Err
	EventAllHere                    // all clients have joined
	EventAnswered                   // the answer to Label went to all; Mask: clients that sent values
	EventDone                       // Client has no more labels
	EventRunning                    // startup is over
	EventLost                       // Client is lost, and the job continues: Peer, Err
	EventSpare                      // a spare site has come: Conn, Peer
	EventSpareGone                  // a spare site has gone, which does not affect the job: Conn, Peer, Err
	EventFinished                   // Client has finished
	EventEnded                      // all clients have finished
	EventFailed                     // the job is lost: Err
)

// Event is a step in the job's progress.
type Event struct {
	Kind   EventKind
	Conn   ConnID
	Peer   string
	Client wire.ClientRank
	Label  wire.Label
	Mask   wire.ClientMask
	Err    error
}

func (e Event) String() string {
	switch e.Kind {
	case EventRefused:
		return fmt.Sprintf("refused %s: %v", e.Peer, e.Err)
	case EventJoined:
		return fmt.Sprintf("client %d joined from %s", e.Client, e.Peer)
	case EventMoved:
		return fmt.Sprintf("client %d at %s has left: %v", e.Client, e.Peer, e.Err)
	case EventAllHere:
		return "all clients are here"
	case EventAnswered:
		return fmt.Sprintf("answered %v from clients %v", e.Label, e.Mask)
	case EventDone:
		return fmt.Sprintf("client %d is done", e.Client)
	case EventRunning:
		return "the job is running"
	case EventLost:
		return fmt.Sprintf("the job goes on: %v", e.Err)
	case EventSpare:
		return fmt.Sprintf("a spare site came from %s", e.Peer)
	case EventSpareGone:
		return fmt.Sprintf("the spare site at %s is gone: %v", e.Peer, e.Err)
	case EventFinished:
		return fmt.Sprintf("client %d has finished", e.Client)
	case EventEnded:
		return "the job has ended"
	case EventFailed:
		return fmt.Sprintf("the job has failed: %v", e.Err)
	}
	return fmt.Sprintf("event %d", e.Kind)
}
