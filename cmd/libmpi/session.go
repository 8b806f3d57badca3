//go:build cgo && !386 && !arm

package main

// void restsNow(void);
import "C"

import (
	"errors"
	"fmt"
	"hash/fnv"
	"strings"
	"sync"

	"github.com/openimpi/impi/core/comm"
	"github.com/openimpi/impi/core/mpi"
	"github.com/openimpi/impi/core/mpierr"
	"github.com/openimpi/impi/internal/abi/handles"
	"github.com/openimpi/impi/internal/engine/proc"
)

// sessionObject is a session. All see the same job: MPI_Init and sessions together
// join it once. MPI_Finalize leaves it for good, or the last session that ends behind
// it. Where sessions end alone others may follow, and MPI_Init: the job is left
// when the process ends.
type sessionObject struct {
	object
	info     *mpi.Info
	buffer   *mpi.SendBuffer // of buffered sends on its communicators
	attached attachment
}

var sessions = handles.NewTable[*sessionObject](handles.Session)

// users are MPI_Init, and the sessions that are not finalized.
var users struct {
	sync.Mutex
	n int
}

// join joins the job for one more user.
func join() error {
	users.Lock()
	defer users.Unlock()
	if phase.Load() == finally {
		return mpi.ErrFinalized
	}
	if phase.Load() == resting {
		world.Store(rested.world)
		self.Store(rested.self)
		phase.Store(during)
	}
	if users.n == 0 && phase.Load() == before {
		if err := mpi.Init(); err != nil {
			return err
		}
		w := &commObject{Comm: mpi.World(), object: object{sort: "Comm", handle: commWorld}}
		s := &commObject{Comm: mpi.Self(), object: object{sort: "Comm", handle: commSelf}}
		commHandles.Store(w.Comm, w.handle)
		commHandles.Store(s.Comm, s.handle)
		world.Store(w)
		self.Store(s)
		shareFastPath()
		mpi.UseMemoryCheck(writable)
		phase.Store(during)
	}
	users.n++
	return nil
}

// rested are the communicators that MPI_COMM_WORLD and MPI_COMM_SELF are again if the
// job is joined once more.
var rested struct{ world, self *commObject }

// leave is the inverse of join. With good the last user leaves for good, and waits for
// those of other procs; else it rests.
func leave(good bool) error {
	users.Lock()
	defer users.Unlock()
	switch {
	case users.n == 1 && !good:
		rested.world, rested.self = world.Swap(nil), self.Swap(nil)
		proc.ForgetFastPath()
		phase.Store(resting)
		C.restsNow()
	case users.n == 1:
		if err := mpi.Finalize(); err != nil {
			return err
		}
		afterwards = handlerOf(nil)
		world.Store(nil)
		self.Store(nil)
		phase.Store(finally)
	}
	users.n--
	return nil
}

// restEnds leaves the job when a process ends whose sessions have all ended.
//
//export restEnds
func restEnds() {
	users.Lock()
	defer users.Unlock()
	if phase.CompareAndSwap(resting, finally) {
		_ = mpi.Finalize() // there is nobody to tell
	}
}

// afterwards is the handler of errors before MPI_Init and after MPI_Finalize.
var afterwards = errorsAreFatal

// The process sets that there are.
var psets = [...]string{"mpi://WORLD", "mpi://SELF"}

// onSession is a call on a session.
func onSession(fn string, which int32, h uintptr, f func(s *sessionObject) error) (code int32) {
	guard()
	p := sessions.Get(h)
	if p == nil {
		what := kindOf(h)
		if h == sessionNull {
			what = "the null handle"
		}
		return fail(fn, which, nil, fault(mpierr.Session, "argument session is %#x: %s", h, what))
	}
	defer rescue(fn, which, &(*p).object, &code)
	if err := f(*p); err != nil {
		return fail(fn, which, &(*p).object, err)
	}
	return success
}

//export abiSessionInit
func abiSessionInit(info, errh, out uintptr) int32 {
	return anytime("Session_init", func() error {
		to, err := result[uintptr]("session", out)
		if err != nil {
			return err
		}
		*to = sessionNull // before anything is done: there may be no memory
		i, err := infoOf(info)
		if err != nil {
			return err
		}
		s := &sessionObject{object: object{sort: "Session"}}
		if err := setErrhandler(&s.object, errh); err != nil {
			return err
		}
		if i == nil {
			i = mpi.NewInfo()
		}
		if s.info, err = i.Dup(); err != nil {
			return err
		}
		if err := join(); err != nil {
			return err
		}
		if s.buffer, err = mpi.NewSendBuffer(); err == nil {
			if s.handle = sessions.Add(s); s.handle == 0 {
				err = fault(mpierr.NoMem, "there are as many sessions as there can be")
			}
		}
		if err != nil {
			return errors.Join(err, leave(ended.Load()))
		}
		*to = s.handle
		return nil
	})
}

//export abiSessionFinalize
func abiSessionFinalize(p uintptr) int32 {
	return onHandle("Session_finalize", "session", p, nil, func(h *uintptr) int32 {
		return onSession("Session_finalize", 0, *h, func(*sessionObject) error {
			if err := leave(ended.Load()); err != nil {
				return err
			}
			sessions.Free(*h)
			*h = sessionNull
			return nil
		})
	})
}

//export abiSessionGetInfo
func abiSessionGetInfo(h, out uintptr) int32 {
	return onSession("Session_get_info", 0, h, func(s *sessionObject) error {
		return putInfo(out, func() (*mpi.Info, error) {
			i, err := s.info.Dup()
			if err == nil { // what is given, whatever was asked for
				err = i.Set("thread_level", "MPI_THREAD_MULTIPLE")
			}
			return i, err
		})
	})
}

//export abiSessionGetNumPsets
func abiSessionGetNumPsets(h, info, out uintptr) int32 {
	return onSession("Session_get_num_psets", 0, h, func(*sessionObject) error {
		return putInt("npset_names", out, len(psets))
	})
}

//export abiSessionGetNthPset
func abiSessionGetNthPset(h, info uintptr, n int32, length, name uintptr) int32 {
	return onSession("Session_get_nth_pset", 0, h, func(*sessionObject) error {
		if n < 0 || int(n) >= len(psets) {
			return fmt.Errorf("%w: there are %d process sets, and none with number %d", mpi.ErrArg, len(psets), n)
		}
		room, err := result[int32]("pset_len", length)
		if err != nil {
			return err
		}
		if *room > 0 {
			if _, err := putText("pset_name", name, int(*room), psets[n]); err != nil {
				return err
			}
		}
		*room = int32(len(psets[n]) + 1)
		return nil
	})
}

// pset gives the group of a process set. Programs write the names in small letters too.
func pset(p uintptr) (*mpi.Group, error) {
	name, err := text("pset_name", p, 1024)
	if err != nil {
		return nil, err
	}
	switch {
	case strings.EqualFold(name, psets[0]):
		return world.Load().Group()
	case strings.EqualFold(name, psets[1]):
		return self.Load().Group()
	}
	return nil, fmt.Errorf("%w: there is no process set %q", mpi.ErrArg, name)
}

//export abiSessionGetPsetInfo
func abiSessionGetPsetInfo(h, name, out uintptr) int32 {
	return onSession("Session_get_pset_info", 0, h, func(*sessionObject) error {
		g, err := pset(name)
		if err != nil {
			return err
		}
		return putInfo(out, func() (*mpi.Info, error) { return newInfo("mpi_size", fmt.Sprint(g.Size())) })
	})
}

//export abiGroupFromSessionPset
func abiGroupFromSessionPset(h, name, out uintptr) int32 {
	return onSession("Group_from_session_pset", 0, h, func(s *sessionObject) error {
		g, err := pset(name)
		if err != nil {
			return err
		}
		return put("newgroup", out, newGroup(g, s))
	})
}

//export abiCommCreateFromGroup
func abiCommCreateFromGroup(g, tag, info, errh, out uintptr) int32 {
	return on("Comm_create_from_group", 0, func() error {
		to, err := result[uintptr]("newcomm", out)
		if err != nil {
			return err
		}
		group, err := groupOf("group", g)
		if err != nil {
			return err
		}
		name, err := text("stringtag", tag, 1024)
		if err != nil {
			return err
		}
		e, err := errhandlerOf("Comm", errh)
		if err != nil {
			return err
		}
		if group.Size() == 0 {
			return fmt.Errorf("%w: it is empty", comm.ErrGroup)
		}
		c, err := world.Load().CreateGroup(group, tagOf(name))
		if err != nil {
			return err
		}
		*to = handledComm(c, e, sessionOf(group))
		return nil
	})
}

// tagOf is the tag of a string that tells calls apart.
func tagOf(name string) int {
	sum := fnv.New32a()
	sum.Write([]byte(name))
	return int(sum.Sum32() & (1<<15 - 1))
}

// handledComm is newComm with an error handler and a session, which may be nil.
func handledComm(c *mpi.Comm, e *errhandler, s *sessionObject) uintptr {
	h := newComm(c, nil)
	if o := commOf(h); o != nil {
		o.handler.Store(e)
		o.session = s
	}
	return h
}

//export abiIntercommCreateFromGroups
func abiIntercommCreateFromGroups(local uintptr, leader int32, remote uintptr, remoteLeader int32, tag, info, errh, out uintptr) int32 {
	return on("Intercomm_create_from_groups", 0, func() error {
		to, err := result[uintptr]("newintercomm", out)
		if err != nil {
			return err
		}
		mine, err := groupOf("local_group", local)
		if err != nil {
			return err
		}
		name, err := text("stringtag", tag, 1024)
		if err != nil {
			return err
		}
		e, err := errhandlerOf("Comm", errh)
		if err != nil {
			return err
		}
		far := 0
		if int(leader) == mine.Rank() { // whom the other group matters to
			if far, err = worldRank(remote, remoteLeader); err != nil {
				return err
			}
		}
		c, err := world.Load().CreateGroup(mine, tagOf(name))
		if err != nil {
			return err
		}
		both, err := c.IntercommCreate(int(leader), world.Load().Comm, far, tagOf(name))
		if err := errors.Join(err, c.Free()); err != nil {
			return err
		}
		*to = handledComm(both, e, sessionOf(mine))
		return nil
	})
}

// worldRank is the rank in MPI_COMM_WORLD of a member of a group.
func worldRank(h uintptr, rank int32) (int, error) {
	g, err := groupOf("remote_group", h)
	if err != nil {
		return 0, err
	}
	all, err := world.Load().Group()
	if err != nil {
		return 0, err
	}
	ranks, err := g.Translate([]int{int(rank)}, all)
	if err != nil {
		return 0, err
	}
	return ranks[0], nil
}

// sessionErrhandler is a call about the handler of a session.
func sessionErrhandler(fn string, h uintptr, f func(o *object) error) int32 {
	return onSession(fn, 0, h, func(s *sessionObject) error { return f(&s.object) })
}

//export abiSessionSetErrhandler
func abiSessionSetErrhandler(h, e uintptr) int32 {
	return sessionErrhandler("Session_set_errhandler", h, func(o *object) error { return setErrhandler(o, e) })
}

//export abiSessionGetErrhandler
func abiSessionGetErrhandler(h, out uintptr) int32 {
	return sessionErrhandler("Session_get_errhandler", h, func(o *object) error { return getErrhandler(o, out) })
}

//export abiSessionCallErrhandler
func abiSessionCallErrhandler(h uintptr, code int32) int32 {
	return sessionErrhandler("Session_call_errhandler", h, func(o *object) error {
		fail("Session_call_errhandler", 0, o, mpi.NewError(mpi.Class(code)))
		return nil
	})
}
