//go:build cgo && !386 && !arm

package main

import "C"

import (
	"fmt"
	"unsafe"

	"github.com/openimpi/impi/core/mpi"
	"github.com/openimpi/impi/core/rma"
)

// constructWin makes a window on a communicator.
func constructWin(fn string, which int32, c, info, out uintptr, f func(c *commObject, i *mpi.Info) (*mpi.Win, error)) int32 {
	return onComm(fn, which, c, func(c *commObject) error {
		to, err := result[uintptr]("win", out)
		if err != nil {
			return err
		}
		i, err := infoOf(info)
		if err != nil {
			return err
		}
		w, err := f(c, i)
		if err != nil {
			return err
		}
		o := &winObject{Win: w, object: object{sort: "Win"}, values: &winValues{}, attached: map[uintptr]mpi.Buffer{}}
		h, p := wins.New()
		if p == nil {
			return fmt.Errorf("%w: there are as many as there can be", rma.ErrWin)
		}
		o.handle = h
		*p = o
		wins.Set(h)
		winHandles.Store(w, h)
		*to = h
		return nil
	})
}

// plainBytes is memory that is no items of anything.
func plainBytes(p uintptr, n int64) mpi.Buffer {
	return mpi.At(pointer(p), int(n), namedTypes[typeByte])
}

// sizes checks the size of a window.
func sizes(n int64) error {
	if n < 0 {
		return fmt.Errorf("%w: %d", rma.ErrSize, n)
	}
	return nil
}

//export abiWinCreate
func abiWinCreate(base uintptr, size, unit int64, info, c, out uintptr, which int32) int32 {
	return constructWin("Win_create", which, c, info, out, func(c *commObject, i *mpi.Info) (*mpi.Win, error) {
		if err := sizes(size); err != nil {
			return nil, err
		}
		return c.WinCreate(plainBytes(base, size), int(unit), i)
	})
}

// allocateWin is constructWin of memory that the library allocates.
func allocateWin(fn string, size int64, info, c, base, out uintptr, which int32, f func(c *commObject, i *mpi.Info) (*mpi.Win, error)) int32 {
	return constructWin(fn, which, c, info, out, func(c *commObject, i *mpi.Info) (*mpi.Win, error) {
		if err := sizes(size); err != nil {
			return nil, err
		}
		to, err := result[uintptr]("baseptr", base)
		if err != nil {
			return nil, err
		}
		w, err := f(c, i)
		if err == nil {
			*to = uintptr(unsafe.Pointer(unsafe.SliceData(w.Memory())))
		}
		return w, err
	})
}

//export abiWinAllocate
func abiWinAllocate(size, unit int64, info, c, base, out uintptr, which int32) int32 {
	return allocateWin("Win_allocate", size, info, c, base, out, which, func(c *commObject, i *mpi.Info) (*mpi.Win, error) {
		return c.WinAllocate(size, int(unit), i)
	})
}

//export abiWinAllocateShared
func abiWinAllocateShared(size, unit int64, info, c, base, out uintptr, which int32) int32 {
	return allocateWin("Win_allocate_shared", size, info, c, base, out, which, func(c *commObject, i *mpi.Info) (*mpi.Win, error) {
		return c.WinAllocateShared(size, int(unit), i)
	})
}

//export abiWinSharedQuery
func abiWinSharedQuery(w uintptr, rank int32, size, unit, base uintptr, which int32) int32 {
	return onWin("Win_shared_query", which, w, func(w *winObject) error {
		mem, u, err := w.SharedQuery(int(rank))
		if err != nil {
			return err
		}
		if err := put("size", size, int64(len(mem))); err != nil {
			return err
		}
		if err := putWide("disp_unit", unit, which, int64(u)); err != nil {
			return err
		}
		return put("baseptr", base, uintptr(unsafe.Pointer(unsafe.SliceData(mem))))
	})
}

//export abiWinCreateDynamic
func abiWinCreateDynamic(info, c, out uintptr) int32 {
	return constructWin("Win_create_dynamic", 0, c, info, out, func(c *commObject, i *mpi.Info) (*mpi.Win, error) {
		return c.WinCreateDynamic(i)
	})
}

//export abiWinAttach
func abiWinAttach(w, base uintptr, size int64) int32 {
	return onWin("Win_attach", 0, w, func(w *winObject) error {
		if err := sizes(size); err != nil {
			return err
		}
		b := plainBytes(base, size)
		if err := w.Attach(b); err != nil {
			return err
		}
		w.mu.Lock()
		defer w.mu.Unlock()
		w.attached[base] = b
		return nil
	})
}

//export abiWinDetach
func abiWinDetach(w, base uintptr) int32 {
	return onWin("Win_detach", 0, w, func(w *winObject) error {
		w.mu.Lock()
		defer w.mu.Unlock()
		b, ok := w.attached[base]
		if !ok {
			return fmt.Errorf("%w: nothing is attached at %#x", rma.ErrAttach, base)
		}
		if err := w.Detach(b); err != nil {
			return err
		}
		delete(w.attached, base)
		return nil
	})
}

//export abiWinFree
func abiWinFree(p uintptr) int32 {
	return onHandle("Win_free", "win", p, nil, func(h *uintptr) int32 {
		return onWin("Win_free", 0, *h, func(w *winObject) error {
			if err := w.Free(); err != nil {
				return err
			}
			winHandles.Delete(w.Win)
			wins.Free(*h)
			*h = winNull
			return nil
		})
	})
}

//export abiWinGetGroup
func abiWinGetGroup(w, out uintptr) int32 {
	return onWin("Win_get_group", 0, w, func(w *winObject) error {
		g, err := w.Group()
		if err != nil {
			return err
		}
		return put("group", out, newGroup(g, nil))
	})
}

//export abiWinSetInfo
func abiWinSetInfo(w, info uintptr) int32 {
	return onWin("Win_set_info", 0, w, func(w *winObject) error {
		i, err := infoOf(info)
		if err != nil {
			return err
		}
		return w.SetInfo(i)
	})
}

//export abiWinGetInfo
func abiWinGetInfo(w, out uintptr) int32 {
	return onWin("Win_get_info", 0, w, func(w *winObject) error { return putInfo(out, w.GetInfo) })
}

//export abiWinSetName
func abiWinSetName(w, name uintptr) int32 {
	return onWin("Win_set_name", 0, w, func(w *winObject) error {
		s, err := objectName(name)
		if err != nil {
			return err
		}
		return w.SetName(s)
	})
}

//export abiWinGetName
func abiWinGetName(w, name, length uintptr) int32 {
	return onWin("Win_get_name", 0, w, func(w *winObject) error { return putName(name, length, w.Name()) })
}

//export abiWinFence
func abiWinFence(assert int32, w uintptr) int32 {
	return onWin("Win_fence", 0, w, func(w *winObject) error { return w.Fence(mpi.Assert(assert)) })
}

// open opens an epoch to a group.
func open(fn string, g, w uintptr, f func(w *winObject, g *mpi.Group) error) int32 {
	return onWin(fn, 0, w, func(w *winObject) error {
		group, err := groupOf("group", g)
		if err != nil {
			return err
		}
		return f(w, group)
	})
}

//export abiWinStart
func abiWinStart(g uintptr, assert int32, w uintptr) int32 {
	return open("Win_start", g, w, func(w *winObject, g *mpi.Group) error { return w.Start(g, mpi.Assert(assert)) })
}

//export abiWinPost
func abiWinPost(g uintptr, assert int32, w uintptr) int32 {
	return open("Win_post", g, w, func(w *winObject, g *mpi.Group) error { return w.Post(g, mpi.Assert(assert)) })
}

//export abiWinComplete
func abiWinComplete(w uintptr) int32 {
	return onWin("Win_complete", 0, w, func(w *winObject) error { return w.Complete() })
}

//export abiWinWait
func abiWinWait(w uintptr) int32 {
	return onWin("Win_wait", 0, w, func(w *winObject) error { return w.Wait() })
}

//export abiWinTest
func abiWinTest(w, flag uintptr) int32 {
	return onWin("Win_test", 0, w, func(w *winObject) error {
		done, err := w.Test()
		if err != nil {
			return err
		}
		return putFlag("flag", flag, done)
	})
}

//export abiWinLock
func abiWinLock(kind, rank, assert int32, w uintptr) int32 {
	return onWin("Win_lock", 0, w, func(w *winObject) error {
		return w.Lock(mpi.LockType(kind), int(rank), mpi.Assert(assert))
	})
}

//export abiWinLockAll
func abiWinLockAll(assert int32, w uintptr) int32 {
	return onWin("Win_lock_all", 0, w, func(w *winObject) error { return w.LockAll(mpi.Assert(assert)) })
}

//export abiWinUnlock
func abiWinUnlock(rank int32, w uintptr) int32 {
	return onWin("Win_unlock", 0, w, func(w *winObject) error { return w.Unlock(int(rank)) })
}

//export abiWinUnlockAll
func abiWinUnlockAll(w uintptr) int32 {
	return onWin("Win_unlock_all", 0, w, func(w *winObject) error { return w.UnlockAll() })
}

//export abiWinFlush
func abiWinFlush(rank int32, w uintptr) int32 {
	return onWin("Win_flush", 0, w, func(w *winObject) error { return w.Flush(int(rank)) })
}

//export abiWinFlushAll
func abiWinFlushAll(w uintptr) int32 {
	return onWin("Win_flush_all", 0, w, func(w *winObject) error { return w.FlushAll() })
}

//export abiWinFlushLocal
func abiWinFlushLocal(rank int32, w uintptr) int32 {
	return onWin("Win_flush_local", 0, w, func(w *winObject) error { return w.FlushLocal(int(rank)) })
}

//export abiWinFlushLocalAll
func abiWinFlushLocalAll(w uintptr) int32 {
	return onWin("Win_flush_local_all", 0, w, func(w *winObject) error { return w.FlushLocalAll() })
}

//export abiWinSync
func abiWinSync(w uintptr) int32 {
	return onWin("Win_sync", 0, w, func(w *winObject) error { return w.Sync() })
}
