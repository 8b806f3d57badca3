package dynamic

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
)

// CardVersion is the version of the cards that this package writes.
const CardVersion = 1

// Bounds of a card. A port name, which is a tag and a card, stays below
// MPI_MAX_PORT_NAME, the MPI ABI's 1024 bytes.
const (
	MaxCard       = 960 // bytes of its text
	MaxOffers     = 16
	MaxFeatures   = 16
	MaxUnexpected = 1 << 60
	MaxName       = 32 // bytes of a transport's or feature's name
)

// Faults of a card.
var (
	ErrCard        = errors.New("malformed business card")
	ErrCardVersion = errors.New("business card of an unknown version")
)

// Card says how a proc can be reached. It is exchanged at startup and is the
// better part of a port name.
type Card struct {
	Version   int
	Node      string // equal for procs that share a kernel and a user: those can use one machine's transports
	ByteOrder string // BigEndian or LittleEndian, of data in memory
	Offers    []Offer
	Features  []string // known to both or of no effect

	Unexpected int64 // bytes of messages nobody has asked for that the proc keeps; 0: it sets no limit
}

// Values of Card.ByteOrder.
const (
	BigEndian    = "big"
	LittleEndian = "little"
)

// Offer is one way to reach a proc. The list's order is the owner's preference.
type Offer struct {
	Transport string // the transport's name
	Address   string // what that transport dials
}

// Has reports whether feature is on the card.
func (c *Card) Has(feature string) bool {
	return slices.Contains(c.Features, feature)
}

// Offer gives the first offer of a transport.
func (c *Card) Offer(transport string) (Offer, bool) {
	for _, o := range c.Offers {
		if o.Transport == transport {
			return o, true
		}
	}
	return Offer{}, false
}

// SameNode reports whether the procs of both cards are on one machine and belong to one user.
func (c *Card) SameNode(d *Card) bool { return c.Node != "" && c.Node == d.Node }

// AppendText appends the card as one line of printable text without its end:
// fields separated by one space, of which the first is the format.
//
//	impi-card/1 node=5f0c order=little offer=tcp:127.0.0.2:5001 feature=resume
//
// It reports a card that ParseCard would refuse, and then gives b unchanged.
func (c *Card) AppendText(b []byte) ([]byte, error) {
	if c.Version != CardVersion {
		return b, fmt.Errorf("dynamic: %w %d: only %d can be written", ErrCardVersion, c.Version, CardVersion)
	}
	if err := c.check(); err != nil {
		return b, fmt.Errorf("dynamic: %w", err)
	}
	out := strconv.AppendInt(append(b, cardPrefix...), int64(c.Version), 10)
	if c.Node != "" {
		out = append(append(out, " node="...), c.Node...)
	}
	if c.ByteOrder != "" {
		out = append(append(out, " order="...), c.ByteOrder...)
	}
	for _, o := range c.Offers {
		out = append(append(append(append(out, " offer="...), o.Transport...), ':'), o.Address...)
	}
	for _, f := range c.Features {
		out = append(append(out, " feature="...), f...)
	}
	if c.Unexpected != 0 {
		out = strconv.AppendInt(append(out, " unexpected="...), c.Unexpected, 10)
	}
	if n := len(out) - len(b); n > MaxCard {
		return b, fmt.Errorf("dynamic: %w: %d bytes, more than %d", ErrCard, n, MaxCard)
	}
	return out, nil
}
