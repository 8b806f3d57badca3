package comm

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"slices"
)

// Part describes a communicator of some members of another one: their ranks, in the order
// of the new ranks. With Remote, ranks in the remote group, it is an intercommunicator.
type Part struct {
	Color         int32
	Group, Remote *Group
}

// Partition describes how members of a communicator are divided into parts, which have no
// member in common.
type Partition []Part

// Choice is a member's colour and key in Split. A negative colour means that the member joins no
// part (MPI-4.1, 7.4.2; IMPI ch.4, Comm_split).
type Choice struct{ Color, Key int32 }

// ChoiceSize is the size of an encoded choice in bytes.
const ChoiceSize = 8

// Append appends the ChoiceSize bytes that ReadChoice decodes: colour and key, big-endian.
func (c Choice) Append(b []byte) []byte {
	return binary.BigEndian.AppendUint32(binary.BigEndian.AppendUint32(b, uint32(c.Color)), uint32(c.Key))
}

// ReadChoice decodes the first ChoiceSize bytes of b.
func ReadChoice(b []byte) Choice {
	return Choice{int32(binary.BigEndian.Uint32(b)), int32(binary.BigEndian.Uint32(b[4:]))}
}

// Divide makes a part for each colour, in ascending order of colours; in each part, ranks are
// ordered by key and then by rank (MPI-4.1, 7.4.2).
func Divide(choices []Choice) Partition {
	ranks := make([]int32, 0, len(choices))
	for r, c := range choices {
		if c.Color >= 0 {
			ranks = append(ranks, int32(r))
		}
	}
	slices.SortStableFunc(ranks, func(a, b int32) int {
		return cmp.Or(cmp.Compare(choices[a].Color, choices[b].Color), cmp.Compare(choices[a].Key, choices[b].Key))
	})
	var parts Partition
	for len(ranks) > 0 {
		color := choices[ranks[0]].Color
		n := slices.IndexFunc(ranks, func(r int32) bool { return choices[r].Color != color })
		if n < 0 {
			n = len(ranks)
		}
		parts = append(parts, partOf(color, ranks[:n]))
		ranks = ranks[n:]
	}
	return parts
}

func partOf(color int32, ranks []int32) Part {
	b := builder{}
	for _, r := range ranks {
		b.add(Proc(r))
	}
	return Part{Color: color, Group: b.group()}
}

// PartOf returns the part of a rank among the results of Divide; ok is false without a colour.
func PartOf(choices []Choice, rank int) (part Part, ok bool) {
	color := choices[rank].Color
	if color < 0 {
		return Part{}, false
	}
	var few [16]int32
	ranks := few[:0]
	for r, c := range choices {
		if c.Color == color {
			ranks = append(ranks, int32(r))
		}
	}
	slices.SortStableFunc(ranks, func(a, b int32) int { return cmp.Compare(choices[a].Key, choices[b].Key) })
	return partOf(color, ranks), true
}

// Join combines each part with the group of the same colour on the other side. Parts without such a
// group are left out: an intercommunicator needs members on both sides (MPI-4.1, 7.4.2).
func (p Partition) Join(others Partition) Partition {
	var joined Partition
	for _, part := range p {
		i, ok := slices.BinarySearchFunc(others, part.Color, func(o Part, color int32) int { return cmp.Compare(o.Color, color) })
		if ok {
			joined = append(joined, Part{part.Color, part.Group, others[i].Group})
		}
	}
	return joined
}

// PartsOf returns the parts that contain at least one of the ranks.
func (p Partition) PartsOf(ranks *Group) (some Partition) {
	for _, part := range p {
		if _, ok := part.Group.CommonMember(ranks); ok {
			some = append(some, part)
		}
	}
	return some
}

// Append appends the parts in the form that ReadPartition decodes, at most PartitionLimit bytes.
func (p Partition) Append(b []byte) []byte {
	b = binary.BigEndian.AppendUint32(b, uint32(len(p)))
	for _, part := range p {
		b = binary.BigEndian.AppendUint32(b, uint32(part.Color))
		b = AppendGroup(b, part.Group)
		remote := part.Remote
		if remote == nil {
			remote = Empty
		}
		b = AppendGroup(b, remote)
	}
	return b
}

// PartitionLimit returns the maximum encoded size of a partition of a communicator, in bytes.
func PartitionLimit(size, remote int) int { return 4 + (size+remote)*(12+runSize) }

// ReadPartition decodes all of b, which need not be trusted, as a partition of ranks below size and
// remote. The error is ErrMessage if b is not a valid partition.
func ReadPartition(b []byte, size, remote int) (p Partition, err error) {
	if len(b) < 4 {
		return nil, fmt.Errorf("comm: %w: a partition of %d bytes", ErrMessage, len(b))
	}
	n := int(binary.BigEndian.Uint32(b))
	b = b[4:]
	if n > size {
		return nil, fmt.Errorf("comm: %w: %d parts of %d members", ErrMessage, n, size)
	}
	for range n {
		var part Part
		if len(b) < 4 {
			return nil, fmt.Errorf("comm: %w: it ends after %d of %d parts", ErrMessage, len(p), n)
		}
		part.Color = int32(binary.BigEndian.Uint32(b))
		if part.Group, b, err = ReadGroup(b[4:], size); err != nil {
			return nil, err
		}
		if part.Remote, b, err = ReadGroup(b, remote); err != nil {
			return nil, err
		}
		if part.Remote.size == 0 {
			part.Remote = nil
		}
		p = append(p, part)
	}
	if len(b) > 0 {
		return nil, fmt.Errorf("comm: %w: %d bytes after %d parts", ErrMessage, len(b), n)
	}
	return p, nil
}
