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

// MemberTable contains what a rank must know about all ranks of the job. It does not change, and
// only it grows with the job, so several ranks of one program share one table.
type MemberTable struct {
	directory *message.Directory
	clients   *comm.Clients
	hosts     *comm.Clients // host of each rank, as Clients with host ranks; nil if no client has several hosts; see readHosts
	world     *comm.Group
	masters   *comm.Masters // masters of world

	data        reps                      // the representation of each rank's user data
	kinds       []datatype.Representation // the different representations in data
	homogeneous bool                      // all ranks have the representation Native
	plain       uint64                    // bit k: elements of kind k need no conversion, whoever the peer is
	common      datatype.Representation   // the representation that all ranks can read as one stream: for items of several kinds in collectives
	foreign     []bool                    // by client: some of its ranks run another library
}

type reps struct {
	list   []datatype.Representation // by world rank; nil: see number
	table  *wireup.Table
	number []datatype.Representation // by the numbers of Table.Data; only those in use
}

func (d *reps) size() int {
	if d.table != nil {
		return d.table.Size()
	}
	return len(d.list)
}

// At returns the representation of the user data of a rank of the job.
func (d *reps) At(rank int) datatype.Representation {
	if d.table != nil {
		return d.number[d.table.Data(rank)]
	}
	return d.list[rank]
}

// NewMemberTable makes the table for ranks that have the description procs of a job's procs. It
// shares memory with the table like, if that is not nil, where both are equal.
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
	r.readHosts(&wireup.Job{Procs: procs}, everySite)
	return r, nil
}

func membersOf(job *wireup.Job) (*MemberTable, error) {
	t := job.Table()
	if t == nil {
		return NewMemberTable(job.Procs, nil)
	}
	r := &MemberTable{directory: message.DirectoryOf(t)}
	if err := r.readData(job); err != nil {
		return nil, err
	}
	r.readHosts(job, job.Proc(job.Rank).Client)
	return r, nil
}

const (
	everySite = wire.ClientRank(-1)
	otherSite = wire.HostRank(-1)
)

// readHosts finds out from the procs' descriptions where they are. Of hosts it keeps those of one
// site, or of everySite: collective operations go by the hosts of the proc's own.
func (r *MemberTable) readHosts(job *wireup.Job, site wire.ClientRank) {
	several, first := false, true
	var before wireup.Proc
	r.clients = comm.ClientsByRuns(func(yield func(int, wire.ClientRank) bool) {
		for x := range job.Runs() {
			several = several || !first && x.Proc.Client == before.Client && x.Proc.Node != before.Node
			before, first = x.Proc, false
			if !yield(x.N, x.Proc.Client) {
				return
			}
		}
	})
	if several {
		r.hosts = comm.ClientsByRuns(func(yield func(int, wire.ClientRank) bool) {
			for x := range job.Runs() {
				host := x.Proc.Node
				if site != everySite && x.Proc.Client != site {
					host = otherSite
				}
				if !yield(x.N, wire.ClientRank(host)) {
					return
				}
			}
		})
	}
	r.world = comm.NewGroup(0, job.Size())
	r.masters = comm.NewMasters(r.world, r.clients)
}

func (r *MemberTable) readData(job *wireup.Job) error {
	if r.data.table = job.Table(); r.data.table == nil {
		r.data.list = make([]datatype.Representation, job.Size())
	}
	r.homogeneous, r.common = true, commonForm(job)
	last, rep := "", datatype.Native
	for x := range job.Runs() {
		if c := x.Proc.Client; c < 0 || c >= wire.MaxClients {
			return fmt.Errorf("rank %d: %w: client %d, a job has at most %d", x.First, ErrNode, c, wire.MaxClients)
		}
		if x.First == 0 || x.Proc.Data != last {
			var err error
			if rep, err = datatype.ParseRepresentation(x.Proc.Data); err != nil {
				return fmt.Errorf("rank %d: %w", x.First, err)
			}
			last = x.Proc.Data
		}
		r.setData(x, rep)
		r.homogeneous = r.homogeneous && rep == datatype.Native
		if !slices.Contains(r.kinds, rep) {
			r.kinds = append(r.kinds, rep)
		}
		for int(x.Proc.Client) >= len(r.foreign) {
			r.foreign = append(r.foreign, false)
		}
		r.foreign[x.Proc.Client] = r.foreign[x.Proc.Client] || x.Proc.Foreign
	}
	for k := datatype.Byte; k.Valid(); k++ {
		if !slices.ContainsFunc(r.kinds, func(rep datatype.Representation) bool { return !rep.Identity(k) }) {
			r.plain |= 1 << k
		}
	}
	return nil
}

func (r *MemberTable) setData(x wireup.ProcRun, rep datatype.Representation) {
	d := &r.data
	if d.table == nil {
		for i := range x.N {
			d.list[int(x.First)+i] = rep
		}
		return
	}
	n := d.table.Data(int(x.First))
	for n >= len(d.number) {
		d.number = append(d.number, datatype.Native)
	}
	d.number[n] = rep
}

// commonForm returns the representation that all procs of the job can read: that of the other
// libraries if they have one, as this library reads all, or else external32. If all procs run this
// library it is one that keeps all bits of a long.
func commonForm(job *wireup.Job) datatype.Representation {
	common := datatype.Native
	for x := range job.Runs() {
		if !x.Proc.Foreign {
			continue
		}
		rep, err := datatype.ParseRepresentation(x.Proc.Data)
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

// sameProcs reports whether the table was made of equal descriptions.
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

// Clients returns the site of each rank.
func (r *MemberTable) Clients() *comm.Clients { return r.clients }

// Hosts returns the host of each rank of this proc's site, with host ranks in place of client
// ranks; nil if no site of the job has several hosts.
func (r *MemberTable) Hosts() *comm.Clients { return r.hosts }

// Common returns the representation that all ranks can read.
func (r *MemberTable) Common() datatype.Representation { return r.common }

// DataOf returns the representation of a rank's user data.
func (r *MemberTable) DataOf(rank int) datatype.Representation { return r.data.At(rank) }

// Directory returns the identities of the ranks.
func (r *MemberTable) Directory() *message.Directory { return r.directory }

// Foreign reports by site whether some of its ranks run another library.
func (r *MemberTable) Foreign() []bool { return r.foreign }

// Masters returns the masters of World, by which collectives go between sites.
func (r *MemberTable) Masters() *comm.Masters { return r.masters }

// World returns the group of MPI_COMM_WORLD.
func (r *MemberTable) World() *comm.Group { return r.world }
