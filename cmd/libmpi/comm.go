//go:build cgo && !386 && !arm

package main

import "C"

import (
	"strings"

	"github.com/openimpi/impi/core/mpi"
)

const (
	maxObjectName = 128
	unequal       = 204
)

// comparisons are MPI_IDENT and so on.
var comparisons = map[mpi.Comparison]int{mpi.Identical: 201, mpi.Congruent: 202, mpi.Similar: 203, mpi.Unequal: unequal}

//export abiCommRank
func abiCommRank(c, rank uintptr) int32 {
	return onComm("Comm_rank", 0, c, func(c *commObject) error { return putInt("rank", rank, c.Rank()) })
}

//export abiCommSize
func abiCommSize(c, size uintptr) int32 {
	return onComm("Comm_size", 0, c, func(c *commObject) error { return putInt("size", size, c.Size()) })
}

//export abiCommRemoteSize
func abiCommRemoteSize(c, size uintptr) int32 {
	return onComm("Comm_remote_size", 0, c, func(c *commObject) error {
		n, err := c.RemoteSize()
		if err != nil {
			return err
		}
		return putInt("size", size, n)
	})
}

//export abiCommTestInter
func abiCommTestInter(c, flag uintptr) int32 {
	return onComm("Comm_test_inter", 0, c, func(c *commObject) error {
		is, err := c.TestInter()
		if err != nil {
			return err
		}
		return putFlag("flag", flag, is)
	})
}

//export abiCommCompare
func abiCommCompare(a, b, out uintptr) int32 {
	return onComm("Comm_compare", 0, a, func(c *commObject) error {
		d, err := takeComm("comm2", b)
		if err != nil {
			return err
		}
		how, err := c.Compare(d.Comm)
		if err != nil {
			return err
		}
		return putInt("result", out, comparisons[how])
	})
}

// group gives the group of a communicator.
func group(fn string, h, out uintptr, f func(c *mpi.Comm) (*mpi.Group, error)) int32 {
	return onComm(fn, 0, h, func(c *commObject) error {
		g, err := f(c.Comm)
		if err != nil {
			return err
		}
		return put("group", out, newGroup(g, c.session))
	})
}

//export abiCommGroup
func abiCommGroup(c, out uintptr) int32 { return group("Comm_group", c, out, (*mpi.Comm).Group) }

//export abiCommRemoteGroup
func abiCommRemoteGroup(c, out uintptr) int32 {
	return group("Comm_remote_group", c, out, (*mpi.Comm).RemoteGroup)
}

// construct makes a communicator of another.
func construct(fn string, h, out uintptr, f func(c *commObject) (*mpi.Comm, error)) int32 {
	return onComm(fn, 0, h, func(c *commObject) error {
		to, err := result[uintptr]("newcomm", out)
		if err != nil {
			return err
		}
		n, err := f(c)
		if err != nil {
			return err
		}
		*to = newComm(n, c)
		return nil
	})
}

//export abiCommDup
func abiCommDup(c, out uintptr) int32 {
	return construct("Comm_dup", c, out, func(c *commObject) (*mpi.Comm, error) { return c.Dup() })
}

//export abiCommDupWithInfo
func abiCommDupWithInfo(c, info, out uintptr) int32 {
	return construct("Comm_dup_with_info", c, out, func(c *commObject) (*mpi.Comm, error) {
		i, err := infoOf(info)
		if err != nil {
			return nil, err
		}
		return c.DupWithInfo(i)
	})
}

// constructLater is construct of what has a request.
func constructLater(fn string, h, out, q uintptr, f func(c *commObject) (*mpi.Comm, mpi.Request, error)) int32 {
	return onComm(fn, 0, h, func(c *commObject) error {
		to, err := result[uintptr]("newcomm", out)
		if err != nil {
			return err
		}
		if q < firstAddress {
			return missing("request", q)
		}
		n, r, err := f(c)
		if err != nil {
			return err
		}
		*to = newComm(n, c)
		return newRequest(&c.object, r, q)
	})
}

//export abiCommIdup
func abiCommIdup(c, out, q uintptr) int32 {
	return constructLater("Comm_idup", c, out, q, func(c *commObject) (*mpi.Comm, mpi.Request, error) { return c.Idup() })
}

//export abiCommIdupWithInfo
func abiCommIdupWithInfo(c, info, out, q uintptr) int32 {
	return constructLater("Comm_idup_with_info", c, out, q, func(c *commObject) (*mpi.Comm, mpi.Request, error) {
		i, err := infoOf(info)
		if err != nil {
			return nil, mpi.Request{}, err
		}
		return c.IdupWithInfo(i)
	})
}

//export abiCommCreate
func abiCommCreate(c, g, out uintptr) int32 {
	return construct("Comm_create", c, out, func(c *commObject) (*mpi.Comm, error) {
		group, err := groupOf("group", g)
		if err != nil {
			return nil, err
		}
		return c.Create(group)
	})
}

//export abiCommCreateGroup
func abiCommCreateGroup(c, g uintptr, tag int32, out uintptr) int32 {
	return construct("Comm_create_group", c, out, func(c *commObject) (*mpi.Comm, error) {
		group, err := groupOf("group", g)
		if err != nil {
			return nil, err
		}
		return c.CreateGroup(group, int(tag))
	})
}

//export abiCommSplit
func abiCommSplit(c uintptr, color, key int32, out uintptr) int32 {
	return construct("Comm_split", c, out, func(c *commObject) (*mpi.Comm, error) {
		return c.Split(int(color), int(key))
	})
}

//export abiCommSplitType
func abiCommSplitType(c uintptr, kind, key int32, info, out uintptr) int32 {
	return construct("Comm_split_type", c, out, func(c *commObject) (*mpi.Comm, error) {
		i, err := infoOf(info)
		if err != nil {
			return nil, err
		}
		return c.SplitType(int(kind), int(key), i)
	})
}

//export abiIntercommCreate
func abiIntercommCreate(c uintptr, local int32, peer uintptr, remote, tag int32, out uintptr) int32 {
	return construct("Intercomm_create", c, out, func(c *commObject) (*mpi.Comm, error) {
		var p *mpi.Comm
		if int(local) == c.Rank() {
			o, err := takeComm("peer_comm", peer)
			if err != nil {
				return nil, err
			}
			p = o.Comm
		}
		return c.IntercommCreate(int(local), p, int(remote), int(tag))
	})
}

//export abiIntercommMerge
func abiIntercommMerge(c uintptr, high int32, out uintptr) int32 {
	return construct("Intercomm_merge", c, out, func(c *commObject) (*mpi.Comm, error) { return c.Merge(high != 0) })
}

// end ends the communicator at p.
func end(fn string, p uintptr, f func(c *mpi.Comm) error) int32 {
	return onHandle(fn, "comm", p, nil, func(h *uintptr) int32 {
		return onComm(fn, 0, *h, func(c *commObject) error {
			if err := f(c.Comm); err != nil {
				return err
			}
			commHandles.Delete(c.Comm)
			comms.Free(*h)
			*h = commNull
			return nil
		})
	})
}

//export abiCommFree
func abiCommFree(p uintptr) int32 { return end("Comm_free", p, (*mpi.Comm).Free) }

//export abiCommDisconnect
func abiCommDisconnect(p uintptr) int32 { return end("Comm_disconnect", p, (*mpi.Comm).Disconnect) }

//export abiCommSetInfo
func abiCommSetInfo(c, info uintptr) int32 {
	return onComm("Comm_set_info", 0, c, func(c *commObject) error {
		i, err := infoOf(info)
		if err != nil {
			return err
		}
		return c.SetInfo(i)
	})
}

//export abiCommGetInfo
func abiCommGetInfo(c, out uintptr) int32 {
	return onComm("Comm_get_info", 0, c, func(c *commObject) error { return putInfo(out, c.GetInfo) })
}

// putInfo stores new info.
func putInfo(out uintptr, f func() (*mpi.Info, error)) error {
	to, err := result[uintptr]("info", out)
	if err != nil {
		return err
	}
	i, err := f()
	if err == nil {
		*to = infos.Add(i)
	}
	return err
}

//export abiCommSetName
func abiCommSetName(c, name uintptr) int32 {
	return onComm("Comm_set_name", 0, c, func(c *commObject) error {
		s, err := objectName(name)
		if err != nil {
			return err
		}
		return c.SetName(s)
	})
}

// objectName is the name at p, as much of it as objects have.
func objectName(p uintptr) (string, error) {
	s, err := text("name", p, 1<<16)
	return strings.Clone(s[:min(len(s), maxObjectName-1)]), err
}

// putName stores a name and its length.
func putName(out, length uintptr, s string) error {
	n, err := putText("name", out, maxObjectName, s)
	if err != nil {
		return err
	}
	return putInt("resultlen", length, n)
}

//export abiCommGetName
func abiCommGetName(c, name, length uintptr) int32 {
	return onComm("Comm_get_name", 0, c, func(c *commObject) error { return putName(name, length, c.Name()) })
}
