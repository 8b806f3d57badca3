package dynamic

import (
	"encoding/binary"
	"errors"
	"fmt"
)

// DescriptionVersion is the version of the descriptions that this package writes.
const DescriptionVersion = 1

// Bounds of a description.
const (
	MaxWorldProcs  = 1 << 24 // maximum procs of a world
	MaxDescription = 16 << 20
)

// ErrDescription means that bytes do not describe a world.
var ErrDescription = errors.New("malformed description of a world")

// Description is the description of a world that it sends to another world when they connect: its
// procs, and how they can be reached. It contains all procs of the world, since a communicator
// between the worlds may serve as the peer communicator of another one that has the rest (MPI-4.1,
// 7.6.2).
type Description struct {
	World  WorldID
	Secret Token // result of Meeting of the job's token
	Limits Limits
	Groups []Group
}

// Limits are the parameters of a job that both ends of a link, or all members of a communicator,
// must share (IMPI ch.2, Client labels and Host labels). Worlds that differ use the smaller values.
type Limits struct {
	DataLen          uint32 // maximum user data bytes in one packet
	AckMark, HiWater uint32 // numbers of packets
	TagUB            int32
	XSize            int32 // bytes, for short collectives; negative: no limit
	MaxLinear        int32 // masters, for linear collectives; negative: no limit
	Check            bool  // members of communicators compare their collective calls
	Survive          bool  // the job continues without lost procs, and its procs inform each other of them
}

// Group is a number of procs with consecutive ranks that can be reached in the same way.
type Group struct {
	Count int
	Site  int // number of their site in the world
	Card  BusinessCard
}

// Size returns the number of procs.
func (d *Description) Size() (n int) {
	for i := range d.Groups {
		n += d.Groups[i].Count
	}
	return n
}

// Least returns the limits that two worlds use together.
func (l Limits) Least(o Limits) Limits {
	return Limits{
		DataLen: min(l.DataLen, o.DataLen), AckMark: min(l.AckMark, o.AckMark), HiWater: min(l.HiWater, o.HiWater),
		TagUB: min(l.TagUB, o.TagUB), XSize: least(l.XSize, o.XSize), MaxLinear: least(l.MaxLinear, o.MaxLinear),
		Check: l.Check && o.Check, Survive: l.Survive && o.Survive,
	}
}

// least returns the smaller number; a negative one means no limit.
func least(a, b int32) int32 {
	if a < 0 || b >= 0 && b < a {
		return b
	}
	return a
}

func (l *Limits) check() error {
	switch {
	case l.DataLen < 1 || l.DataLen > 1<<31-1:
		return fmt.Errorf("%w: data length %d", ErrDescription, l.DataLen)
	case l.AckMark < 1 || l.AckMark > l.HiWater || l.HiWater > 1<<31-1:
		return fmt.Errorf("%w: ackmark %d, hiwater %d", ErrDescription, l.AckMark, l.HiWater)
	case l.TagUB < 0:
		return fmt.Errorf("%w: largest tag %d", ErrDescription, l.TagUB)
	}
	return nil
}

// Sizes and flags of the encoding. An unknown flag is an error, since a later version may use
// it for something that both sides have to do.
const (
	flagCheck       = 1
	flagSurvive     = 2
	descriptionHead = 4 + WorldIDSize + TokenSize + 8*4
	groupHead       = 4 + 4 + 2
)

// Append appends the encoded d to b. The error is ErrDescription or ErrCard if ReadDescription
// would refuse the result.
func (d *Description) Append(b []byte) ([]byte, error) {
	out := d.AppendHead(b, len(d.Groups))
	for i := range d.Groups {
		g := &d.Groups[i]
		card, err := g.Card.AppendText(nil)
		if err != nil {
			return b, err
		}
		out = AppendGroup(out, g.Count, g.Site, card)
	}
	if _, err := ReadDescription(out[len(b):]); err != nil {
		return b, err
	}
	return out, nil
}

// AppendHead appends the encoded d without its groups to b. That many groups have to follow by
// AppendGroup.
func (d *Description) AppendHead(b []byte, groups int) []byte {
	out := binary.BigEndian.AppendUint32(b, DescriptionVersion)
	out = append(out, d.World[:]...)
	out = append(out, d.Secret[:]...)
	l := &d.Limits
	var flags uint32
	if l.Check {
		flags |= flagCheck
	}
	if l.Survive {
		flags |= flagSurvive
	}
	for _, v := range [...]uint32{l.DataLen, l.AckMark, l.HiWater, uint32(l.TagUB), uint32(l.XSize), uint32(l.MaxLinear), flags, uint32(groups)} {
		out = binary.BigEndian.AppendUint32(out, v)
	}
	return out
}

// AppendGroup appends an encoded Group to b; card is the text of its card.
func AppendGroup(b []byte, count, site int, card []byte) []byte {
	b = binary.BigEndian.AppendUint32(b, uint32(count))
	b = binary.BigEndian.AppendUint32(b, uint32(site))
	b = binary.BigEndian.AppendUint16(b, uint16(len(card)))
	return append(b, card...)
}

// ReadDescription decodes all of b, which need not be trusted. It keeps nothing of b.
func ReadDescription(b []byte) (*Description, error) {
	d, err := readDescription(b)
	if err != nil {
		return nil, fmt.Errorf("dynamic: %w", err)
	}
	return d, nil
}

// ReadDescriptionHead decodes b without its groups, which it does not check.
func ReadDescriptionHead(b []byte) (*Description, error) {
	d, _, err := readHead(b)
	if err != nil {
		return nil, fmt.Errorf("dynamic: %w", err)
	}
	return d, nil
}

func readDescription(b []byte) (*Description, error) {
	d, groups, err := readHead(b)
	if err != nil {
		return nil, err
	}
	return d, d.readGroups(b[descriptionHead:], groups)
}

func readHead(b []byte) (d *Description, groups uint32, err error) {
	switch {
	case len(b) > MaxDescription:
		return nil, 0, fmt.Errorf("%w: %d bytes, more than %d", ErrDescription, len(b), MaxDescription)
	case len(b) < descriptionHead:
		return nil, 0, fmt.Errorf("%w: %d bytes", ErrDescription, len(b))
	}
	if v := binary.BigEndian.Uint32(b); v != DescriptionVersion {
		return nil, 0, fmt.Errorf("%w: version %d, this program knows %d", ErrDescription, v, DescriptionVersion)
	}
	d = &Description{}
	b = b[4:]
	b = b[copy(d.World[:], b):]
	b = b[copy(d.Secret[:], b):]
	groups, err = d.Limits.read(b)
	return d, groups, err
}

// read decodes the words of the head, of which the last one is the number of groups.
func (l *Limits) read(b []byte) (groups uint32, err error) {
	var w [8]uint32
	for i := range w {
		w[i] = binary.BigEndian.Uint32(b[4*i:])
	}
	*l = Limits{w[0], w[1], w[2], int32(w[3]), int32(w[4]), int32(w[5]), w[6]&flagCheck != 0, w[6]&flagSurvive != 0}
	if w[6]&^(flagCheck|flagSurvive) != 0 {
		return 0, fmt.Errorf("%w: flags %#x", ErrDescription, w[6])
	}
	return w[7], l.check()
}

func (d *Description) readGroups(b []byte, n uint32) error {
	if n == 0 || int64(n) > int64(len(b)/groupHead) {
		return fmt.Errorf("%w: %d groups in %d bytes", ErrDescription, n, len(b))
	}
	total := 0
	for i := range n {
		if len(b) < groupHead {
			return fmt.Errorf("%w: it ends in group %d of %d", ErrDescription, i, n)
		}
		count, site := binary.BigEndian.Uint32(b), binary.BigEndian.Uint32(b[4:])
		text := int(binary.BigEndian.Uint16(b[8:]))
		b = b[groupHead:]
		switch {
		case count == 0 || count > MaxWorldProcs-uint32(total):
			return fmt.Errorf("%w: group %d has %d procs after %d, a world has at most %d", ErrDescription, i, count, total, MaxWorldProcs)
		case site > 1<<31-1:
			return fmt.Errorf("%w: group %d is of site %d", ErrDescription, i, site)
		case text > len(b):
			return fmt.Errorf("%w: it ends in the card of group %d", ErrDescription, i)
		}
		card, err := parseCard(b[:text])
		if err != nil {
			return fmt.Errorf("%w: group %d: %w", ErrDescription, i, err)
		}
		b, total = b[text:], total+int(count)
		d.Groups = append(d.Groups, Group{int(count), int(site), card})
	}
	if len(b) > 0 {
		return fmt.Errorf("%w: %d bytes after %d groups", ErrDescription, len(b), n)
	}
	return nil
}
