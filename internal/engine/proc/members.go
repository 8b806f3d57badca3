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

	data        []datatype.Representation // of user data, by world rank
	kinds       []datatype.Representation // the different ones of data
	homogeneous bool                      // all of data is Native
	plain       uint64                    // bit k: elements of kind k travel as they lie in memory, whoever sends
	common      datatype.Representation   // of what all read as one stream of bytes: items of several kinds in collectives
	foreign     []bool                    // by client: some of its ranks run, or may run, another library
}

func NewMemberTable(procs []wireup.Proc, like *MemberTable) (*MemberTable, error) {
	r := &MemberTable{}
	if err := r.readData(procs); err != nil {
		return nil, err
	}
	if like != nil && like.sameProcs(procs) {
		r.directory, r.clients, r.hosts, r.world, r.masters = like.directory, like.clients, like.hosts, like.world, like.masters
		return r, nil
	}
	ids, clients, hosts := make([]wire.Proc, len(procs)), make([]wire.ClientRank, len(procs)), make([]wire.ClientRank, len(procs))
	several := false
	for i := range procs {
		ids[i], clients[i], hosts[i] = procs[i].Identity(), procs[i].Client, wire.ClientRank(procs[i].Node)
		several = several || i > 0 && clients[i] == clients[i-1] && hosts[i] != hosts[i-1]
	}
	var err error
	if r.directory, err = message.NewDirectory(ids); err != nil {
		return nil, err
	}
	r.clients = comm.NewClients(clients)
	if several {
		r.hosts = comm.NewClients(hosts)
	}
	r.world = comm.NewGroup(0, len(procs))
	r.masters = comm.NewMasters(r.world, r.clients)
	return r, nil
}

// readData takes the representations out of the procs.
func (r *MemberTable) readData(procs []wireup.Proc) error {
	r.data = make([]datatype.Representation, len(procs))
	r.homogeneous, r.common = true, commonForm(procs)
	for i := range procs {
		rep, err := datatype.ParseRepresentation(procs[i].Data)
		if err != nil {
			return fmt.Errorf("rank %d: %w", i, err)
		}
		r.data[i] = rep
		r.homogeneous = r.homogeneous && rep == datatype.Native
		if !slices.Contains(r.kinds, rep) {
			r.kinds = append(r.kinds, rep)
		}
		if c := procs[i].Client; c < 0 || c >= wire.MaxClients {
			return fmt.Errorf("rank %d: %w: client %d, a job has at most %d", i, ErrNode, c, wire.MaxClients)
		}
		for int(procs[i].Client) >= len(r.foreign) {
			r.foreign = append(r.foreign, false)
		}
		if rep == datatype.External32 || procs[i].Foreign {
			r.foreign[procs[i].Client] = true
		}
	}
	for k := datatype.Byte; k.Valid(); k++ {
		if !slices.ContainsFunc(r.kinds, func(rep datatype.Representation) bool { return !rep.Identity(k) }) {
			r.plain |= 1 << k
		}
	}
	return nil
}

// commonForm is the representation that all procs of the job can read: that of the other
// libraries if they have the same, as this one reads any, or else external32. If all run this
// library it is one that keeps all bits of a long.
func commonForm(procs []wireup.Proc) datatype.Representation {
	common := datatype.Native
	for i := range procs {
		rep, err := datatype.ParseRepresentation(procs[i].Data)
		if !procs[i].Foreign || err != nil {
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
