package startup

import (
	"encoding/binary"

	"github.com/openimpi/impi/core/wire"
)

// submission gives this client's values of a label.
// IMPI ch.2, Client labels, Host labels, Proc labels.
func (c *ClientConfig) submission(l wire.Label) []byte {
	be := binary.BigEndian
	switch l {
	case wire.LabelVersion:
		return c.versionList()
	case wire.LabelNHosts:
		return be.AppendUint32(nil, uint32(len(c.Hosts)))
	case wire.LabelNProcs:
		return be.AppendUint32(nil, uint32(c.nprocs()))
	case wire.LabelDataLen:
		return be.AppendUint32(nil, c.Params.DataLen)
	case wire.LabelTagUB:
		return be.AppendUint32(nil, uint32(c.Params.TagUB))
	case wire.LabelCollXSize:
		return be.AppendUint32(nil, uint32(c.Params.XSize))
	case wire.LabelMaxLinear:
		return be.AppendUint32(nil, uint32(c.Params.MaxLinear))
	case wire.LabelProcIPv6, wire.LabelProcPID:
		return c.procValues(l)
	case wire.LabelCards:
		return c.appendCards(nil)
	}
	return c.hostValues(l)
}

func (c *ClientConfig) versionList() (b []byte) {
	for _, v := range c.versions() {
		b = wire.AppendVersion(b, v)
	}
	return b
}

func (c *ClientConfig) hostValues(l wire.Label) (b []byte) {
	for i := range c.Hosts {
		h := &c.Hosts[i]
		v := 0
		switch l {
		case wire.LabelHostIPv6:
			b = append(b, h.Address[:]...)
			continue
		case wire.LabelHostPort:
			v = h.Port
		case wire.LabelHostNProcs:
			v = len(h.Procs)
		case wire.LabelAckMark:
			v = int(c.Params.AckMark)
		case wire.LabelHiWater:
			v = int(c.Params.HiWater)
		}
		b = binary.BigEndian.AppendUint32(b, uint32(v))
	}
	return b
}

func (c *ClientConfig) procValues(l wire.Label) (b []byte) {
	for i := range c.Hosts {
		for _, p := range c.Hosts[i].Procs {
			switch {
			case l == wire.LabelProcIPv6:
				b = append(b, p.ID.Host[:]...)
			case c.Dialect == wire.Draft:
				b = binary.BigEndian.AppendUint32(b, uint32(p.ID.PID))
			default:
				b = binary.BigEndian.AppendUint64(b, uint64(p.ID.PID))
			}
		}
	}
	return b
}
