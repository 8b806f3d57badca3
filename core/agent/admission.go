package agent

import (
	"slices"

	"github.com/openimpi/impi/core/wire"
)

// spareGreetings is how many connections from one address may be open that have not greeted yet, in
// addition to one for each host that may connect from it.
const spareGreetings = 4

// Accepted records that a connection from that address was accepted; the address is zero if the
// link does not provide it. If there are then too many connections that have not greeted, from the
// address or in all, the oldest that has sent nothing is refused, or if all have begun a proof, the
// oldest of those.
func (d *Dance) Accepted(conn int, from wire.HostID) {
	switch {
	case d.over && d.missing > 0:
		d.refuse(conn, d.c.Self, "the time for the dance is over")
		return
	case !d.awaits() && !d.expectsProof():
		d.refuse(conn, d.c.Self, "every host that was to connect has done so")
		return
	}
	if most := d.maxFrom(from); d.waiting(from) >= most {
		d.driveOut(&from, most)
	} else if len(d.conns) >= d.maxSilent() {
		d.driveOut(nil, d.maxSilent())
	}
	d.conns = append(d.conns, &greeting{conn: conn, from: from})
}

// maxSilent returns how many connections that have not greeted may be open in all.
func (d *Dance) maxSilent() int { return 2*len(d.c.Hosts) + 16 }

// maxFrom returns how many connections that have not greeted may be open from one address.
func (d *Dance) maxFrom(from wire.HostID) int {
	if from == (wire.HostID{}) {
		return d.maxSilent()
	}
	most := spareGreetings
	for i := range d.c.Hosts {
		if d.c.Hosts[i].at(from) {
			most++
		}
	}
	return most
}

func (d *Dance) waiting(from wire.HostID) (n int) {
	for _, g := range d.conns {
		if g.from == from {
			n++
		}
	}
	return n
}

// driveOut refuses the oldest connection that has not greeted, of an address or, if from is nil, of
// all. most is the limit, for the message.
func (d *Dance) driveOut(from *wire.HostID, most int) {
	meant := func(g *greeting) bool { return from == nil || g.from == *from }
	i := slices.IndexFunc(d.conns, func(g *greeting) bool { return meant(g) && !g.proving })
	if i < 0 {
		i = slices.IndexFunc(d.conns, meant)
	}
	old := d.conns[i]
	d.conns = slices.Delete(d.conns, i, i+1)
	where := ""
	if from != nil {
		where = " from the same address"
	}
	d.refuse(old.conn, d.c.Self, "it had not greeted while %d others connected%s", most, where)
}

func (d *Dance) awaits() bool {
	return !d.over && slices.Contains(d.joined[d.c.Self:], false)
}

// expectsProof reports whether a host of higher rank may still connect and prove itself. A host
// that has done so may do it again.
func (d *Dance) expectsProof() bool {
	return !d.over && slices.ContainsFunc(d.c.Hosts[d.c.Self+1:], func(h DanceHost) bool { return h.Proves && !h.Skip })
}

// MissingBytes returns the number of bytes that are missing from the greeting on conn. The driver
// must not read more than that from the connection: the bytes after it are packets.
func (d *Dance) MissingBytes(conn int) int {
	if i := d.find(conn); i >= 0 && !d.conns[i].proving {
		return GreetingSize - d.conns[i].n
	}
	return 0
}

func (d *Dance) find(conn int) int {
	return slices.IndexFunc(d.conns, func(g *greeting) bool { return g.conn == conn })
}
