package startup

import (
	"encoding/binary"
	"fmt"

	"github.com/openimpi/impi/core/wire"
)

// appendEntry appends one entry of wire.LabelCards: its length and its bytes.
func appendEntry(b, entry []byte) []byte {
	return append(binary.BigEndian.AppendUint32(b, uint32(len(entry))), entry...)
}

// takeEntry cuts an entry of at most limit bytes off the start of b.
func takeEntry(b []byte, limit int) (entry, rest []byte, err error) {
	if len(b) < 4 {
		return nil, nil, fmt.Errorf("%w: %d bytes where an entry's length should be", ErrValue, len(b))
	}
	n := binary.BigEndian.Uint32(b)
	b = b[4:]
	switch {
	case int64(n) > int64(limit):
		return nil, nil, fmt.Errorf("%w: entry of %d bytes; at most %d are taken", ErrTooLong, n, limit)
	case int64(n) > int64(len(b)):
		return nil, nil, fmt.Errorf("%w: entry of %d bytes, %d are left", ErrValue, n, len(b))
	}
	return b[:n:n], b[n:], nil
}

func (c *ClientConfig) appendCards(b []byte) []byte {
	b = appendEntry(b, c.Token[:])
	for i := range c.Hosts {
		for _, p := range c.Hosts[i].Procs {
			b = appendEntry(b, p.Card)
		}
	}
	return b
}

// keepCards gives the job the token and the cards of this client, where others are not sent any, as
// the server passes a label on to all clients (IMPI ch.2, COLL command).
func (c *Client) keepCards() {
	j := c.d.job
	j.Token = c.cfg.Token
	cards := make([][]byte, 0, c.cfg.nprocs())
	for i := range c.cfg.Hosts {
		for _, p := range c.cfg.Hosts[i].Procs {
			cards = append(cards, p.Card)
		}
	}
	var procs Procs
	for _, p := range j.Procs.All() {
		if p.Client == c.cfg.Rank && len(cards) > 0 {
			p.Card, cards = cards[0], cards[1:]
		}
		procs.Add(p)
	}
	j.Procs = procs
}

func (d *derivation) takeCards(mask wire.ClientMask, data []byte) error {
	if all := wire.MaskOf(d.size); mask != all {
		return fmt.Errorf("%w: came from clients %v only", ErrValue, mask)
	}
	d.settleProcs()
	var procs Procs
	for c := range d.job.Clients {
		var err error
		if data, err = d.takeClientCards(&d.job.Clients[c], data, &procs); err != nil {
			return fmt.Errorf("client %d: %w", c, err)
		}
	}
	if len(data) != 0 {
		return fmt.Errorf("%w: %d bytes too many", ErrValue, len(data))
	}
	d.job.Procs = procs
	return nil
}

func (d *derivation) takeClientCards(c *ClientInfo, data []byte, procs *Procs) (rest []byte, err error) {
	token, data, err := takeEntry(data, TokenSize)
	if err != nil {
		return nil, fmt.Errorf("job token: %w", err)
	}
	if len(token) != TokenSize {
		return nil, fmt.Errorf("%w: job token of %d bytes, not %d", ErrValue, len(token), TokenSize)
	}
	if c.Rank == 0 {
		copy(d.job.Token[:], token)
	}
	for range c.NProcs {
		r := wire.WorldRank(procs.Len())
		p := d.job.Procs.At(r)
		if p.Card, data, err = takeEntry(data, MaxCard); err != nil {
			return nil, fmt.Errorf("card of rank %d: %w", r, err)
		}
		procs.Add(p)
	}
	return data, nil
}
