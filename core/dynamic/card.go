package dynamic

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
)

// CardVersion is the version of the cards that this package writes.
const CardVersion = 1

// Bounds of a card. A port name, which is a key and a card, stays below MPI_MAX_PORT_NAME (MPI-4.1,
// 11.9.2), 1024 bytes in the MPI ABI.
const (
	MaxCard       = 960 // maximum bytes of its text
	MaxAddresses  = 16
	MaxFeatures   = 16
	MaxUnexpected = 1 << 60
	MaxName       = 32 // maximum bytes of a transport's or feature's name
)

// Errors of cards.
var (
	ErrCard        = errors.New("malformed business card")
	ErrCardVersion = errors.New("business card of an unknown version")
)

// BusinessCard is a business card: it describes how a proc can be reached. Cards are exchanged at
// startup; a port name consists mostly of one (MPI-4.1, 11.9.1).
type BusinessCard struct {
	Version   int
	Node      string // equal for procs that share a kernel and a user, which can use transports inside one machine
	ByteOrder string // BigEndian or LittleEndian, of data in memory
	Addresses []TransportAddress
	Features  []string // names of optional abilities of the proc; readers ignore unknown ones

	Unexpected int64 // maximum bytes of unexpected messages that the proc keeps; 0: no limit
}

// Values of BusinessCard.ByteOrder.
const (
	BigEndian    = "big"
	LittleEndian = "little"
)

// TransportAddress is an address where a proc can be reached, and its transport. A card lists them
// in the order in which its owner prefers them.
type TransportAddress struct {
	Transport string
	Address   string // address for that transport
}

// Has reports whether the proc has an optional ability.
func (c *BusinessCard) Has(feature string) bool {
	return slices.Contains(c.Features, feature)
}

// Address returns the address by a transport that the proc prefers; false if it has none.
func (c *BusinessCard) Address(transport string) (TransportAddress, bool) {
	for _, o := range c.Addresses {
		if o.Transport == transport {
			return o, true
		}
	}
	return TransportAddress{}, false
}

// SameNode reports whether the procs of both cards are on one machine and belong to one user.
func (c *BusinessCard) SameNode(d *BusinessCard) bool { return c.Node != "" && c.Node == d.Node }

// AppendText appends the card as one line of printable text without its end:
// fields separated by one space, of which the first is the format.
//
//	impi-card/1 node=5f0c order=little offer=tcp:127.0.0.2:5001 feature=resume
//
// It returns the error that ParseBusinessCard would return, and then b unchanged.
func (c *BusinessCard) AppendText(b []byte) ([]byte, error) {
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
	for _, o := range c.Addresses {
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
