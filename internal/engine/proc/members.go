package proc

import (
	"fmt"
	"slices"

	"github.com/openimpi/impi/core/comm"
	"github.com/openimpi/impi/core/datatype"
	"github.com/openimpi/impi/core/message"
	"github.com/openimpi/impi/core/wire"
	"github.com/openimpi/impi/internal/wireup"
)

// MemberTable is what a rank has to know of all ranks of the job. It does not change
// and is the only thing that grows with the job: where a program has many ranks,
// those of one client share one.
type MemberTable struct {
	directory *message.Directory
	clients   *comm.Clients
	hosts     *comm.Clients // host ranks for client ranks; nil if no client has several hosts
	world     *comm.Group
	masters   *comm.Masters // of world

	data        reps                      // of user data
	kinds       []datatype.Representation // the different ones of data
	homogeneous bool                      // all of data is Native
	plain       uint64                    // bit k: elements of kind k travel as they lie in memory, whoever sends
	common      datatype.Representation   // of what all read as one stream of bytes: items of several kinds in collectives
	foreign     []bool                    // by client: some of its ranks run, or may run, another library, in whatever form they exchange data
}

// reps are the representations of the ranks' user data.
type reps struct {
	list   []datatype.Representation // by world rank; nil: as the table has it
	table  *wireup.Table
	number []datatype.Representation // by Table.Data; only those that the table has
}

// size is the number of ranks.
func (d *reps) size() int {
	if d.table != nil {
		return d.table.Size()
	}
	return len(d.list)
}

// At is the representation of a rank of the job.
func (d *reps) At(rank int) datatype.Representation {
	if d.table != nil {
		return d.number[d.table.Data(rank)]
	}
	return d.list[rank]
}

// NewMemberTable makes the table of the ranks to which a job's procs look like this. What it has in
// common with like, if there is one, is shared.
func NewMemberTable(procs []wireup.Proc, like *MemberTable) (*MemberTable, error) {
	r := &MemberTable{}
	if err := r.readData(&wireup.Job{Procs: procs}); err != nil {
		return nil, err
	}
	if like != nil && like.sameProcs(procs) {
		r.directory, r.clients, r.hosts, r.world, r.masters = like.directory, like.clients, like.hosts, like.world, like.masters
		return r, nil
	}
	ids := make([]wire.Proc, len(procs))
	for i := range procs {
		ids[i] = procs[i].Identity()
	}
	var err error
	if r.directory, err = message.NewDirectory(ids); err != nil {
		return nil, err
	}
	r.readPlaces(&wireup.Job{Procs: procs})
	return r, nil
}

// membersOf makes the member table of a proc of its own.
func membersOf(job *wireup.Job) (*MemberTable, error) {
	t := job.Table()
	if t == nil {
		return NewMemberTable(job.Procs, nil)
	}
	r := &MemberTable{directory: message.DirectoryOf(t)}
	if err := r.readData(job); err != nil {
		return nil, err
	}
	r.readPlaces(job)
	return r, nil
}

// readPlaces takes out of the procs where they are.
func (r *MemberTable) readPlaces(job *wireup.Job) {
	several := false
	var before wireup.Proc
	r.clients = comm.ClientsBy(job.Size(), func(i int) wire.ClientRank {
		p := job.Proc(wire.WorldRank(i))
		several = several || i > 0 && p.Client == before.Client && p.Node != before.Node
		before = p
		return p.Client
	})
	if several {
		r.hosts = comm.ClientsBy(job.Size(), func(i int) wire.ClientRank { return wire.ClientRank(job.Proc(wire.WorldRank(i)).Node) })
	}
	r.world = comm.NewGroup(0, job.Size())
	r.masters = comm.NewMasters(r.world, r.clients)
}

// readData takes the representations out of the procs.
func (r *MemberTable) readData(job *wireup.Job) error {
	if r.data.table = job.Table(); r.data.table == nil {
		r.data.list = make([]datatype.Representation, job.Size())
	}
	r.homogeneous, r.common = true, commonForm(job)
	last, rep := "", datatype.Native
	for i := range job.Size() {
		p := job.Proc(wire.WorldRank(i))
		if c := p.Client; c < 0 || c >= wire.MaxClients {
			return fmt.Errorf("rank %d: %w: client %d, a job has at most %d", i, ErrNode, c, wire.MaxClients)
		}
		if i == 0 || p.Data != last {
			var err error
			if rep, err = datatype.ParseRepresentation(p.Data); err != nil {
				return fmt.Errorf("rank %d: %w", i, err)
			}
			last = p.Data
		}
		r.setData(i, rep)
		r.homogeneous = r.homogeneous && rep == datatype.Native
		if !slices.Contains(r.kinds, rep) {
			r.kinds = append(r.kinds, rep)
		}
		for int(p.Client) >= len(r.foreign) {
			r.foreign = append(r.foreign, false)
		}
		r.foreign[p.Client] = r.foreign[p.Client] || p.Foreign
	}
	for k := datatype.Byte; k.Valid(); k++ {
		if !slices.ContainsFunc(r.kinds, func(rep datatype.Representation) bool { return !rep.Identity(k) }) {
			r.plain |= 1 << k
		}
	}
	return nil
}

// setData notes the representation of a rank.
func (r *MemberTable) setData(rank int, rep datatype.Representation) {
	d := &r.data
	if d.table == nil {
		d.list[rank] = rep
		return
	}
	for n := d.table.Data(rank); n >= len(d.number); {
		d.number = append(d.number, datatype.Native)
	}
	d.number[d.table.Data(rank)] = rep
}

// commonForm is the representation that all procs of the job can read: that of the other
// libraries if they have the same, as this one reads any, or else external32. If all run this
// library it is one that keeps all bits of a long.
func commonForm(job *wireup.Job) datatype.Representation {
	common := datatype.Native
	for i := range job.Size() {
		p := job.Proc(wire.WorldRank(i))
		if !p.Foreign {
			continue
		}
		rep, err := datatype.ParseRepresentation(p.Data)
		if err != nil {
			continue
		}
		if common != datatype.Native && common != rep {
			return datatype.External32
		}
		common = rep
	}
	if common == datatype.Native {
		return datatype.NativeLE
	}
	return common
}

// sameProcs reports whether the table was made of these procs.
func (r *MemberTable) sameProcs(procs []wireup.Proc) bool {
	if r.directory.Len() != len(procs) {
		return false
	}
	for i := range procs {
		if r.directory.Proc(message.Peer(i)) != procs[i].Identity() || r.clients.Of(comm.Proc(i)) != procs[i].Client ||
			r.hosts != nil && r.hosts.Of(comm.Proc(i)) != wire.ClientRank(procs[i].Node) {
			return false
		}
	}
	return true
}

// Clients gives the site of each rank.
func (r *MemberTable) Clients() *comm.Clients { return r.clients }

// Hosts gives the host of each rank, with host ranks in place of client ranks. It is nil if no site of
// the job has several hosts.
func (r *MemberTable) Hosts() *comm.Clients { return r.hosts }

// Common is the representation that all ranks can read.
func (r *MemberTable) Common() datatype.Representation { return r.common }

// DataOf is the representation of a rank's user data.
func (r *MemberTable) DataOf(rank int) datatype.Representation { return r.data.At(rank) }

// Directory identifies the ranks.
func (r *MemberTable) Directory() *message.Directory { return r.directory }

// Foreign reports by site whether some of its ranks run another library.
func (r *MemberTable) Foreign() []bool { return r.foreign }

// Masters are the first ranks of the sites.
func (r *MemberTable) Masters() *comm.Masters { return r.masters }

// World is the group of all ranks.
func (r *MemberTable) World() *comm.Group { return r.world }
