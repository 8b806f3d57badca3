package quic

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"sync"

	"github.com/quic-go/quic-go"
)

const (
	protocolName = "impi/1" // ALPN

	controlVersion = 1 // the first byte of the control stream
	linkOpen       = 1 // the first byte of a link's stream
	linkTaken      = 1 // the answer to linkOpen
)

// Codes of the protocol, see the package's comment.
const (
	resetClosed   quic.StreamErrorCode = 1
	resetBusy     quic.StreamErrorCode = 2
	resetLost     quic.StreamErrorCode = 3
	resetIdentity quic.StreamErrorCode = 4
	stopClosed    quic.StreamErrorCode = 0

	closeUnused quic.ApplicationErrorCode = 0
	closeRules  quic.ApplicationErrorCode = 1
	closeEnds   quic.ApplicationErrorCode = 2
	closeSilent quic.ApplicationErrorCode = 3
)

// end says which end of a link, as this side sees it.
type end uint8

const (
	ours end = 1 << iota
	theirs
)

type connection struct {
	qc       *quic.Conn
	settings *settings
	unused   func() // called when the last link has ended

	mu      sync.Mutex
	links   map[quic.StreamID]end // which ends of each link are closed
	notices []byte                // to be written on the control stream
	noticed chan struct{}         // has an element if there are notices
}

func newConnection(qc *quic.Conn, s *settings, unused func()) *connection {
	return &connection{
		qc: qc, settings: s, unused: unused,
		links: make(map[quic.StreamID]end), noticed: make(chan struct{}, 1),
	}
}

func (c *connection) runControl(control *quic.Stream) {
	go c.tell(control)
	if err := c.hear(control); err != nil {
		c.close(closeRules, err.Error())
	}
}

func (c *connection) tell(control *quic.Stream) {
	for {
		select {
		case <-c.noticed:
		case <-c.qc.Context().Done():
			return
		}
		c.mu.Lock()
		notices := c.notices
		c.notices = nil
		c.mu.Unlock()
		if _, err := control.Write(notices); err != nil {
			return // the stream fails only when the connection ends
		}
	}
}

// hear reads the peer's notices. It returns an error if the peer broke the protocol.
func (c *connection) hear(control *quic.Stream) error {
	var notice [8]byte
	for {
		_, err := io.ReadFull(control, notice[:])
		switch {
		case c.qc.Context().Err() != nil:
			return nil
		case err != nil:
			return fmt.Errorf("the control stream ended: %w", err)
		}
		c.closed(quic.StreamID(binary.BigEndian.Uint64(notice[:])), theirs)
	}
}

func (c *connection) begin(id quic.StreamID) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.links[id] = 0
}

// closed records that one end of a link was closed, and tells the peer if it was ours.
// Notices about unknown links are ignored.
func (c *connection) closed(id quic.StreamID, which end) {
	c.mu.Lock()
	state, known := c.links[id]
	if known {
		c.links[id] = state | which
	}
	if which == ours {
		c.notices = binary.BigEndian.AppendUint64(c.notices, uint64(id))
	}
	over := known && state|which == ours|theirs
	if over {
		delete(c.links, id)
	}
	last := over && len(c.links) == 0
	c.mu.Unlock()
	if which == ours {
		select {
		case c.noticed <- struct{}{}:
		default: // recorded already
		}
	}
	if last {
		c.unused()
	}
}

func (c *connection) refused(id quic.StreamID) {
	c.mu.Lock()
	delete(c.links, id)
	last := len(c.links) == 0
	c.mu.Unlock()
	if last {
		c.unused()
	}
}

// busy returns how many links have not ended.
func (c *connection) busy() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.links)
}

// leaving returns how many links are closed on this side and not at the peer.
func (c *connection) leaving() (n int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, state := range c.links {
		if state == ours {
			n++
		}
	}
	return n
}

// open makes a link. If the context ends first, the link is closed when it is ready.
func (c *connection) open(ctx context.Context) (*stream, error) {
	type result struct {
		x   *stream
		err error
	}
	made := make(chan result, 1)
	go func() {
		x, err := c.ask()
		made <- result{x, err}
	}()
	select {
	case r := <-made:
		return r.x, r.err
	case <-ctx.Done():
		go func() {
			if r := <-made; r.err == nil {
				_ = r.x.Close()
			}
		}()
		return nil, ctx.Err()
	}
}

// ask opens a stream and waits for the peer's answer until the connection ends.
func (c *connection) ask() (*stream, error) {
	s, err := c.qc.OpenStreamSync(c.qc.Context())
	if err != nil {
		return nil, c.ending(err)
	}
	c.begin(s.StreamID())
	var answer [1]byte
	if _, err = s.Write([]byte{linkOpen}); err == nil {
		_, err = io.ReadFull(s, answer[:])
	}
	if err == nil && answer[0] != linkTaken {
		err = fmt.Errorf("%w: it answered %d on a new stream", errRules, answer[0])
	}
	if err != nil {
		turnAway(s, resetClosed)
		c.refused(s.StreamID())
		return nil, c.ending(err)
	}
	return &stream{s: s, of: c}, nil
}

func (c *connection) ending(err error) error {
	if errors.Is(err, context.Canceled) && c.qc.Context().Err() != nil {
		return context.Cause(c.qc.Context())
	}
	return err
}

var errRules = errors.New("the peer broke the rules of " + protocolName)

func (c *connection) close(code quic.ApplicationErrorCode, reason string) {
	_ = c.qc.CloseWithError(code, reason) // always nil
}
