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
	"github.com/openimpi/impi/internal/native"
)

// sessionObject is a session. All sessions are of the same job, which MPI_Init or the first session
// joins. MPI_Finalize leaves it for good, or the last session that ends after it. Without
// MPI_Finalize other sessions may follow the last one, and MPI_Init too: the job is left when the
// process ends.
type sessionObject struct {
	object
	info     *mpi.Info
	buffer   *mpi.SendBuffer // for buffered sends on its communicators
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
		if err := native.Alone(); err != nil {
			return err
		}
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

// rested keeps MPI_COMM_WORLD and MPI_COMM_SELF while nobody uses MPI but the process stays in the
// job: the next join makes them valid again.
var rested struct{ world, self *commObject }

// leave is the inverse of join. The last user leaves the job if good is set, and waits for the
// other procs; else the process stays in it, resting.
func leave(good bool) error {
	users.Lock()
	defer users.Unlock()
	switch {
	case users.n == 1 && !good:
		rested.world, rested.self = world.Swap(nil), self.Swap(nil)
		proc.ResetFastPathComms()
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
		_ = mpi.Finalize() // no caller can get the error
	}
}

// afterwards is the handler of errors before MPI_Init and after MPI_Finalize.
var afterwards = errorsAreFatal

var psets = [...]string{"mpi://WORLD", "mpi://SELF"}

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

func initializeSession(fn string, info, errh, out uintptr) int32 {
	return anytime(fn, func() error {
		to, err := result[uintptr]("session", out)
		if err != nil {
			return err
		}
		*to = sessionNull // first of all, since the memory may not exist
		i, err := infoOf(info)
		if err != nil {
			return err
		}
		s := &sessionObject{object: object{sort: "Session"}}
		if err := s.setErrhandler(errh); err != nil {
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
		proc.SeveralThreads() // each session may have threads of its own
		if s.buffer, err = mpi.NewSendBuffer(); err == nil {
			if s.handle = sessions.Add(s); s.handle == 0 {
				err = fault(mpierr.NoMem, "too many sessions")
			}
		}
		if err != nil {
			return errors.Join(err, leave(ended.Load()))
		}
		*to = s.handle
		return nil
	})
}

func finalizeSession(fn string, p uintptr) int32 {
	return onHandle(fn, "session", p, nil, func(h *uintptr) int32 {
		return onSession(fn, 0, *h, func(*sessionObject) error {
			if err := leave(ended.Load()); err != nil {
				return err
			}
			sessions.Free(*h)
			*h = sessionNull
			return nil
		})
	})
}

// getInfo returns the info that the session was made with, and the thread level that it provides,
// whatever was asked for.
func (s *sessionObject) getInfo() (*mpi.Info, error) {
	i, err := s.info.Dup()
	if err == nil {
		err = i.Set("thread_level", "MPI_THREAD_MULTIPLE")
	}
	return i, err
}

// nthPset stores the name of a process set, cut to the *length bytes that there are, and sets
// *length to the bytes that it needs.
func nthPset(n int, length, name uintptr) error {
	if n < 0 || n >= len(psets) {
		return fmt.Errorf("%w: there are %d process sets, and none with number %d", mpi.ErrArg, len(psets), n)
	}
	room, err := result[int32]("pset_len", length)
	if err == nil && *room > 0 {
		err = putText("pset_name", name, int(*room), psets[n])
	}
	if err == nil {
		*room = int32(len(psets[n]) + 1)
	}
	return err
}

// pset returns the group of a process set. Programs may write the names in lower case.
func pset(name string) (*mpi.Group, error) {
	switch {
	case strings.EqualFold(name, psets[0]):
		return world.Load().Group()
	case strings.EqualFold(name, psets[1]):
		return self.Load().Group()
	}
	return nil, fmt.Errorf("%w: there is no process set %q", mpi.ErrArg, name)
}

func psetInfo(name string) (*mpi.Info, error) {
	g, err := pset(name)
	if err != nil {
		return nil, err
	}
	return newInfo("mpi_size", fmt.Sprint(g.Size()))
}

func commOfGroup(g *mpi.Group, tag string, e *errhandler) (uintptr, error) {
	if g.Size() == 0 {
		return 0, fmt.Errorf("%w: it is empty", comm.ErrGroup)
	}
	c, err := world.Load().CreateGroup(g, tagOf(tag))
	if err != nil {
		return 0, err
	}
	return handledComm(c, e, sessionOf(g)), nil
}

// tagOf returns a tag for the string by which a program tells calls apart.
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

// commOfGroups makes the intercommunicator of two groups and gives its handle. The remote one
// matters at the leader.
func commOfGroups(local *mpi.Group, leader int, remote uintptr, remoteLeader int, tag string, e *errhandler) (uintptr, error) {
	far := 0
	if leader == local.Rank() {
		var err error
		if far, err = worldRank(remote, remoteLeader); err != nil {
			return 0, err
		}
	}
	c, err := world.Load().CreateGroup(local, tagOf(tag))
	if err != nil {
		return 0, err
	}
	both, err := c.IntercommCreate(leader, world.Load().Comm, far, tagOf(tag))
	if err := errors.Join(err, c.Free()); err != nil {
		return 0, err
	}
	return handledComm(both, e, sessionOf(local)), nil
}

// worldRank is the rank in MPI_COMM_WORLD of a member of a group.
func worldRank(h uintptr, rank int) (int, error) {
	g, err := groupOf("remote_group", h)
	if err != nil {
		return 0, err
	}
	all, err := world.Load().Group()
	if err != nil {
		return 0, err
	}
	ranks, err := g.Translate([]int{rank}, all)
	if err != nil {
		return 0, err
	}
	return ranks[0], nil
}
