package startup

import (
	"encoding/binary"
	"fmt"
	"strings"

	"github.com/openimpi/impi/core/wire"
)

// takeVersions separates the clients' version lists. The lists have no lengths, but each is
// ascending and must contain 0.0, the lowest version, so each 0.0 begins the next list
// (IMPI ch.2, C_VERSION). A client that sent no list speaks 0.0 only.
func (d *derivation) takeVersions(mask wire.ClientMask, data []byte) error {
	if len(data)%wire.VersionSize != 0 {
		return fmt.Errorf("%w: %d bytes are no whole number of versions", ErrValue, len(data))
	}
	next := wire.ClientRank(-1)
	for ; len(data) > 0; data = data[wire.VersionSize:] {
		v := wire.ParseVersion(data)
		if v == wire.Version00 {
			if next = nextIn(mask, next); next < 0 {
				return fmt.Errorf("%w: more than the %d lists of clients %v", ErrValue, mask.Len(), mask)
			}
			continue
		}
		if next < 0 {
			return fmt.Errorf("%w: the first list begins with %v, so client %d does not support 0.0", ErrValue, v, nextIn(mask, -1))
		}
		if err := d.job.Clients[next].addVersion(v); err != nil {
			return fmt.Errorf("client %d or the one after it: %w", next, err)
		}
	}
	if last := nextIn(mask, next); last >= 0 {
		return fmt.Errorf("%w: fewer lists than clients %v: one of them does not list 0.0", ErrValue, mask)
	}
	d.findOwn()
	return nil
}

func (c *ClientInfo) addVersion(v wire.Version) error {
	last := c.Versions[len(c.Versions)-1]
	switch {
	case !last.Less(v):
		return fmt.Errorf("%w: version %v after %v: lists ascend, and begin with 0.0", ErrValue, v, last)
	case len(c.Versions) == MaxVersions:
		return fmt.Errorf("%w: more than %d versions", ErrTooLong, MaxVersions)
	}
	c.Versions = append(c.Versions, v)
	return nil
}

// nextIn returns the client of mask that follows c, or -1.
func nextIn(mask wire.ClientMask, c wire.ClientRank) wire.ClientRank {
	for c++; c < wire.MaxClients; c++ {
		if mask.Has(c) {
			return c
		}
	}
	return -1
}

func (d *derivation) findOwn() {
	d.job.AllOwn = true
	for c := range d.job.Clients {
		ci := &d.job.Clients[c]
		for _, v := range ci.Versions {
			ci.Own = ci.Own || v == wire.PrivateVersion
		}
		d.job.AllOwn = d.job.AllOwn && ci.Own
	}
}

// takeClientValue handles a 4-byte value of which each client has one (IMPI ch.2, Client labels).
func (d *derivation) takeClientValue(l wire.Label, c *ClientInfo, v uint32) error {
	switch l {
	case wire.LabelNHosts, wire.LabelNProcs:
		if v < 1 || v > MaxProcs {
			return fmt.Errorf("%w: %d is not in 1 to %d", ErrValue, v, MaxProcs)
		}
		if l == wire.LabelNHosts {
			c.NHosts = int(v)
		} else {
			c.NProcs = int(v)
		}
	case wire.LabelDataLen:
		if v < 1 {
			return fmt.Errorf("%w: packets without data cannot carry a message", ErrValue)
		}
		d.job.DataLen = min(d.job.DataLen, v)
	case wire.LabelTagUB:
		ub := wire.Tag(v)
		if ub < MinTagUB {
			return fmt.Errorf("%w: %d is not in %d to 2147483647", ErrValue, ub, MinTagUB)
		}
		d.job.TagUB = min(d.job.TagUB, ub)
	}
	return nil
}

// takeAgreed checks that all clients chose the same value; Unchosen, or no value at all,
// stands for the default. IMPI ch.2, C_COLL_XSIZE and C_COLL_MAXLINEAR.
func (d *derivation) takeAgreed(mask wire.ClientMask, data []byte, to *int32, standard int32) error {
	var list []string
	equal := true
	for c := range d.job.Clients {
		v := int32(Unchosen)
		if mask.Has(wire.ClientRank(c)) {
			v, data = int32(binary.BigEndian.Uint32(data)), data[4:]
		}
		if v < Unchosen {
			return fmt.Errorf("client %d: %w: %d is negative", c, ErrValue, v)
		}
		if v == Unchosen {
			v = standard
		}
		if c == 0 {
			*to = v
		}
		equal = equal && v == *to
		list = append(list, fmt.Sprintf("client %d has %d", c, v))
	}
	if !equal {
		return fmt.Errorf("%w: %s; give all of them the same value", ErrDisagree, strings.Join(list, ", "))
	}
	return nil
}

// rankHosts numbers the hosts by client and, within a client, in its own order (IMPI ch.2,
// Host-to-host connections).
func (d *derivation) rankHosts() error {
	next := 0
	for c := range d.job.Clients {
		d.job.Clients[c].FirstHost = wire.HostRank(next)
		next += d.job.Clients[c].NHosts
	}
	return checkTotal(next)
}

// rankProcs numbers the procs by client; which host each is on follows from H_NPROCS later.
func (d *derivation) rankProcs() error {
	next := 0
	for c := range d.job.Clients {
		d.job.Clients[c].FirstProc = wire.WorldRank(next)
		next += d.job.Clients[c].NProcs
	}
	return checkTotal(next)
}

func checkTotal(n int) error {
	if n > MaxProcs {
		return fmt.Errorf("%w: %d in all clients together, more than %d", ErrTooLong, n, MaxProcs)
	}
	return nil
}
