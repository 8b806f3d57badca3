package meet

import (
	"encoding/binary"
	"fmt"

	"github.com/openimpi/impi/core/comm"
	"github.com/openimpi/impi/core/dynamic"
	"github.com/openimpi/impi/internal/engine/proc"
)

const maxWorldsOfGroup = 1 << 12

// extent has the sizes of the other side's next messages, and its proposal.
type extent struct {
	comm.Proposal
	members, worlds int
}

const extentLen = comm.ProposalSize + 2*4

// String returns the text for a trace.
func (s *extent) String() string {
	return fmt.Sprintf("%d members of %d worlds, context IDs up to %d in use", s.members, s.worlds, s.Max)
}

func (s *extent) append(b []byte) []byte {
	b = append(b, make([]byte, comm.ProposalSize)...)
	s.Put(b[len(b)-comm.ProposalSize:])
	b = binary.BigEndian.AppendUint32(b, uint32(s.members))
	return binary.BigEndian.AppendUint32(b, uint32(s.worlds))
}

func readExtent(b []byte) (s extent, err error) {
	if len(b) != extentLen {
		return s, fmt.Errorf("%w: %d bytes of sizes, want %d", comm.ErrMessage, len(b), extentLen)
	}
	if s.Proposal, err = comm.ReadProposal(b); err != nil {
		return s, err
	}
	members, worlds := binary.BigEndian.Uint32(b[comm.ProposalSize:]), binary.BigEndian.Uint32(b[comm.ProposalSize+4:])
	if members == 0 || members > dynamic.MaxWorldProcs || worlds == 0 || worlds > min(members, maxWorldsOfGroup) {
		return s, fmt.Errorf("%w: %d members of %d worlds", comm.ErrMessage, members, worlds)
	}
	s.members, s.worlds = int(members), int(worlds)
	return s, nil
}

// catalogue describes a group to procs of other worlds: its worlds, in the order in which members
// of them first appear, and their procs, numbered in a row over all of these worlds.
type catalogue struct {
	g      *comm.Group
	worlds []*dynamic.Description // nil: this job's own
	own    []byte                 // description of this job's world
	first  []comm.Proc            // the first proc of each world, in this process's numbering
	size   []int
}

func newCatalogue(p *proc.Process, g *comm.Group) *catalogue {
	k := &catalogue{g: g, own: p.Job.Describe()}
	for proc := range g.All() {
		if k.find(proc) >= 0 {
			continue
		}
		if w := p.Worlds.WorldOf(proc); w != nil {
			k.add(w.Description, w.First, w.Members)
		} else {
			k.add(nil, 0, p.Job.Size())
		}
	}
	return k
}

func (k *catalogue) add(d *dynamic.Description, first comm.Proc, size int) {
	k.worlds, k.first, k.size = append(k.worlds, d), append(k.first, first), append(k.size, size)
}

// find returns the index of the world that a proc is of, or -1.
func (k *catalogue) find(proc comm.Proc) int {
	for i, first := range k.first {
		if proc >= first && int(proc-first) < k.size[i] {
			return i
		}
	}
	return -1
}

func (k *catalogue) describe() ([]byte, error) {
	var b []byte
	for _, d := range k.worlds {
		at := len(b)
		b = append(b, 0, 0, 0, 0)
		if d == nil {
			b = append(b, k.own...)
		} else if c, err := d.Append(b); err != nil {
			return nil, StepWorlds.fault(err)
		} else {
			b = c
		}
		binary.BigEndian.PutUint32(b[at:], uint32(len(b)-at-4))
	}
	return b, nil
}

func (k *catalogue) group() []byte {
	g := k.g.Map(func(proc comm.Proc) comm.Proc {
		i := k.find(proc)
		for _, n := range k.size[:i] {
			proc += comm.Proc(n)
		}
		return proc - k.first[i]
	})
	return comm.Partition{{Group: g}}.Append(nil)
}

// learn reads the descriptions of the other side's worlds, and makes those known that are new here.
func (m *Meeting) learn(text []byte) error {
	for range m.theirs.worlds {
		if len(text) < 4 || uint64(binary.BigEndian.Uint32(text)) > uint64(len(text)-4) {
			return StepTellWorlds.fault(fmt.Errorf("%w: it ends after %d of %d worlds", comm.ErrMessage, len(m.worlds), m.theirs.worlds))
		}
		n := 4 + int(binary.BigEndian.Uint32(text))
		d, err := dynamic.ReadDescription(text[4:n])
		if err != nil {
			return StepTellWorlds.fault(err)
		}
		if text = text[n:]; d.World != m.P.Worlds.Description.World {
			if _, err := m.P.Worlds.Register(d); err != nil {
				return StepTellWorlds.fault(err)
			}
		}
		m.worlds = append(m.worlds, d)
	}
	m.TraceStep(StepTellWorlds, func() string {
		text := "known to all members:"
		for _, d := range m.worlds {
			text += fmt.Sprintf(" world %s of %d procs", d.World.String()[:8], d.Size())
		}
		return text
	})
	return nil
}

func (m *Meeting) read(text []byte) error {
	p, total := m.P, 0
	k := &catalogue{}
	for _, d := range m.worlds {
		first := comm.Proc(0)
		if w := p.Worlds.Known(d.World); w != nil {
			first = w.First
		}
		k.add(d, first, d.Size())
		total += d.Size()
	}
	parts, err := comm.ReadPartition(text, total, 0)
	if err == nil && (len(parts) != 1 || parts[0].Group.Size() != m.theirs.members) {
		err = fmt.Errorf("%w: the other side is no group of %d", comm.ErrMessage, m.theirs.members)
	}
	if err != nil {
		return StepTellGroups.fault(err)
	}
	m.remote = parts[0].Group.Map(func(n comm.Proc) comm.Proc {
		i := 0
		for ; int(n) >= k.size[i]; i++ {
			n -= comm.Proc(k.size[i])
		}
		return k.first[i] + n
	})
	if proc, overlap := m.C.Comm.Group().CommonMember(m.remote); overlap {
		rank, _ := m.C.Comm.Group().Rank(proc)
		return StepTellGroups.fault(fmt.Errorf("%w: rank %d is in both groups", comm.ErrComm, rank))
	}
	m.TraceStep(StepTellGroups, func() string {
		first, _ := m.remote.At(0)
		return fmt.Sprintf("known to all members: the other group has %d, the first is %v", m.remote.Size(), m.P.Worlds.Member(first))
	})
	return nil
}
