package startup

import (
	"encoding/binary"
	"fmt"
	"math"

	"github.com/openimpi/impi/core/wire"
)

// derivation makes a Job from the server's answers, label by label in ascending order. The first
// value that is not valid ends it.
type derivation struct {
	job     *Job
	size    int // number of clients
	dialect wire.Dialect

	// hostMarks contains the ackmark of each host, 0 if it sent none, until its hiwater comes.
	hostMarks []uint32
	said      map[wire.Label]bool // labels that at least one client has sent
	homes     []home              // of the procs, in runs by rank
	pids      []int64             // pid of each proc, by rank
}

func newDerivation(self wire.ClientRank, size int, dialect wire.Dialect) *derivation {
	j := &Job{
		Self: self, Clients: make([]ClientInfo, size),
		DataLen: math.MaxUint32, TagUB: math.MaxInt32,
		XSize: DefaultXSize, MaxLinear: DefaultMaxLinear,
		AckMark: math.MaxUint32, HiWater: math.MaxUint32,
	}
	for c := range j.Clients {
		j.Clients[c].Rank = wire.ClientRank(c)
		j.Clients[c].Versions = []wire.Version{wire.Version00}
	}
	return &derivation{job: j, size: size, dialect: dialect, said: make(map[wire.Label]bool)}
}

// take handles one answer. The error names the label.
func (d *derivation) take(l wire.Label, mask wire.ClientMask, data []byte) error {
	info, known := l.Info()
	if !known {
		return nil
	}
	if over := mask &^ wire.MaskOf(d.size); over != 0 {
		return d.fault(info, fmt.Errorf("%w: client mask has clients %v in a job of %d", ErrValue, over, d.size))
	}
	if silent := wire.MaskOf(d.size) &^ mask; silent != 0 && !info.Optional {
		return d.fault(info, fmt.Errorf("%w: clients %v did not send it", ErrValue, silent))
	}
	d.said[l] = mask != 0
	if err := d.dispatch(info, mask, data); err != nil {
		return d.fault(info, err)
	}
	return nil
}

func (d *derivation) fault(info wire.LabelInfo, err error) error {
	return fmt.Errorf("%s: %w", info.NameIn(d.dialect), err)
}

func (d *derivation) dispatch(info wire.LabelInfo, mask wire.ClientMask, data []byte) error {
	switch info.Label {
	case wire.LabelVersion:
		return d.takeVersions(mask, data)
	case wire.LabelCards:
		return d.takeCards(mask, data)
	}
	if err := d.checkSize(info, mask, len(data)); err != nil {
		return err
	}
	switch info.Label {
	case wire.LabelCollXSize:
		return d.takeAgreed(mask, data, &d.job.XSize, DefaultXSize)
	case wire.LabelMaxLinear:
		return d.takeAgreed(mask, data, &d.job.MaxLinear, DefaultMaxLinear)
	case wire.LabelHostIPv6:
		d.job.Hosts = d.makeHosts()
		d.hostMarks = make([]uint32, len(d.job.Hosts))
	case wire.LabelProcPID:
		d.pids = make([]int64, d.nprocs())
	}
	width := info.WidthIn(d.dialect)
	for c := range d.job.Clients {
		if !mask.Has(wire.ClientRank(c)) {
			continue
		}
		n := d.count(info.Scope, c)
		if err := d.takeClient(info, c, data[:n*width]); err != nil {
			return fmt.Errorf("client %d: %w", c, err)
		}
		data = data[n*width:]
	}
	return d.finish(info.Label)
}

func (d *derivation) count(s wire.Scope, c int) int {
	switch s {
	case wire.PerHost:
		return d.job.Clients[c].NHosts
	case wire.PerProc:
		return d.job.Clients[c].NProcs
	default: // PerClient
		return 1
	}
}

// checkSize compares an answer's size with the one that follows from the mask, the counts
// that are known and the label's width.
func (d *derivation) checkSize(info wire.LabelInfo, mask wire.ClientMask, have int) error {
	n := 0
	for c := range d.job.Clients {
		if mask.Has(wire.ClientRank(c)) {
			n += d.count(info.Scope, c)
		}
	}
	if width := info.WidthIn(d.dialect); have != n*width {
		return fmt.Errorf("%w: %d bytes for %d values (one per %v of clients %v) of %d bytes each", ErrValue, have, n, info.Scope, mask, width)
	}
	return nil
}

func (d *derivation) takeClient(info wire.LabelInfo, c int, data []byte) error {
	width := info.WidthIn(d.dialect)
	for i := 0; len(data) > 0; i, data = i+1, data[width:] {
		var err error
		switch info.Scope {
		case wire.PerClient:
			err = d.takeClientValue(info.Label, &d.job.Clients[c], binary.BigEndian.Uint32(data))
		case wire.PerHost:
			h := int(d.job.Clients[c].FirstHost) + i
			if err = d.takeHostValue(info.Label, h, data); err != nil {
				err = fmt.Errorf("host %d: %w", i, err)
			}
		case wire.PerProc:
			d.takeProcValue(info.Label, int(d.job.Clients[c].FirstProc)+i, data[:width])
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (d *derivation) finish(l wire.Label) error {
	switch l {
	case wire.LabelNHosts:
		return d.rankHosts()
	case wire.LabelNProcs:
		return d.rankProcs()
	case wire.LabelHostPort:
		return d.checkPorts()
	case wire.LabelHostNProcs:
		return d.rankHostProcs()
	case wire.LabelHiWater:
		return d.checkMarks()
	case wire.LabelProcPID:
		d.unsaid()
		return d.checkIdentities()
	}
	return nil
}
