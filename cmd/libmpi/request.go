//go:build cgo && !386 && !arm

package main

import "C"

import (
	"fmt"
	"sync/atomic"
	"unsafe"

	"github.com/openimpi/impi/core/mpi"
	"github.com/openimpi/impi/internal/fastpath"
)

func newRequest(owner *object, q mpi.Request, out uintptr) error {
	to, err := result[uintptr]("request", out)
	if err != nil {
		return err
	}
	if q.Null() {
		*to = requestNull
		return nil
	}
	h, r := requests.New()
	if r == nil {
		return fmt.Errorf("too many requests: %w", mpi.ErrRequest)
	}
	r.q, r.owner = q, owner
	requests.Set(h)
	*to = h
	return nil
}

func drop(h *uintptr, r *requestObject) {
	*r = requestObject{}
	if !isFastPath(*h) { // a request of the C code frees itself
		requests.Free(*h)
	}
	*h = requestNull
}

// onRequestAt executes a call on the request at p; r is nil for MPI_REQUEST_NULL.
func onRequestAt(fn string, p uintptr, f func(r *requestObject) error) (code int32) {
	guard()
	defer rescue(fn, 0, nil, &code)
	var r *requestObject
	h, err := result[uintptr]("request", p)
	if err == nil {
		if r = requestOf(*h); r == nil && *h != requestNull {
			err = bad(mpi.ErrRequest, "request", *h, requestNull)
		} else if r == nil {
			err = usable()
		}
	}
	var owner *object
	if err == nil {
		if r != nil {
			owner = r.owner
		}
		if err = f(r); r != nil && r.q.Null() && r.again == nil {
			drop(h, r)
		}
	}
	if err != nil {
		return fail(fn, 0, owner, err)
	}
	return success
}

// empty is the status of a null request.
var empty = mpi.Status{Source: mpi.AnySource, Tag: mpi.AnyTag}

//export abiWait
func abiWait(request, st uintptr) int32 {
	return onRequestAt("Wait", request, func(r *requestObject) error {
		s, err := empty, error(nil)
		if r != nil {
			s, err = r.q.Wait()
		}
		putStatus(st, &s)
		learnMemory(st, int64(unsafe.Sizeof(status{})), true)
		return err
	})
}

//export abiTest
func abiTest(request, flag, st uintptr) int32 {
	return onRequestAt("Test", request, func(r *requestObject) error {
		s, done, err := empty, true, error(nil)
		if r != nil {
			done, s, err = r.q.Test()
		}
		if done {
			putStatus(st, &s)
			learnMemory(st, int64(unsafe.Sizeof(status{})), true)
		}
		if err != nil {
			if done { // it is complete: a program that continues must not wait for it again
				_ = putFlag("flag", flag, true) // err is returned in any case
			}
			return err
		}
		if err = putFlag("flag", flag, done); err == nil {
			learnMemory(flag, int64(unsafe.Sizeof(int32(0))), true)
		}
		return err
	})
}

var errNullRequest = fmt.Errorf("%w: argument request is the null handle", mpi.ErrRequest)

func (r *requestObject) free() (err error) {
	if r == nil {
		return errNullRequest
	}
	if r.again == nil || !r.q.Null() {
		err = r.q.Free()
	}
	if err == nil && r.again != nil {
		r.again = nil
		r.kept.free()
	}
	return err
}

func (r *requestObject) cancel() error {
	if r == nil {
		return errNullRequest
	}
	return r.q.Cancel()
}

func (r *requestObject) start() (err error) {
	if r == nil {
		return errNullRequest
	}
	if r.again == nil {
		return r.q.Start()
	}
	if !r.q.Null() {
		return fmt.Errorf("%w: it is active", mpi.ErrRequest)
	}
	r.q, err = r.again()
	return err
}

// onRequest executes a call on a request that it leaves as it is.
func onRequest(fn string, which int32, h uintptr, f func(r *requestObject) error) (code int32) {
	return onRequestOrNull(fn, h, func(r *requestObject) error {
		if r == nil {
			return errNullRequest
		}
		return f(r)
	})
}

// onRequestOrNull is onRequest, but r is nil for MPI_REQUEST_NULL.
func onRequestOrNull(fn string, h uintptr, f func(r *requestObject) error) (code int32) {
	guard()
	defer rescue(fn, 0, nil, &code)
	r, err := requestOf(h), usable()
	if r == nil && h != requestNull {
		err = bad(mpi.ErrRequest, "request", h, requestNull)
	}
	var owner *object
	if err == nil {
		if r != nil {
			owner = r.owner
		}
		err = f(r)
	}
	if err != nil {
		return fail(fn, 0, owner, err)
	}
	return success
}

//export abiParrived
func abiParrived(h uintptr, i int32, flag uintptr) int32 {
	return onRequestOrNull("Parrived", h, func(r *requestObject) error {
		arrived := true
		if r != nil {
			var err error
			if arrived, err = r.q.Parrived(int(i)); err != nil {
				return err
			}
		}
		return putFlag("flag", flag, arrived)
	})
}

//export abiRequestGetStatus
func abiRequestGetStatus(h, flag, st uintptr) int32 {
	return onRequestOrNull("Request_get_status", h, func(r *requestObject) error {
		s, done, err := empty, true, error(nil)
		if r != nil {
			done, s, err = r.q.Status()
		}
		if err != nil {
			return err
		}
		if done {
			putStatus(st, &s)
		}
		return putFlag("flag", flag, done)
	})
}

type batch struct {
	handles  []uintptr // in the program's memory
	reqs     []mpi.Request
	statuses []mpi.Status
	active   bool // at least one handle is not null
}

// spare is the batch of the last call, for the next one. A sync.Pool would lose it at every garbage
// collection. Concurrent calls that find none make their own.
var spare atomic.Pointer[batch]

// most is how many requests the spare batch may have room for.
const most = 4096

// aBatch returns a batch, which the call owns until keep.
func aBatch() *batch {
	if b := spare.Swap(nil); b != nil {
		return b
	}
	return new(batch)
}

// keep ends the call's use of b, and keeps it for another call.
func (b *batch) keep() {
	clear(b.reqs)
	b.handles = nil
	if cap(b.reqs) <= most && cap(b.statuses) <= most {
		spare.Store(b)
	}
}

func (b *batch) take(n int32, p uintptr) (err error) {
	if n < 0 {
		return fmt.Errorf("%w: count is %d", mpi.ErrArg, n)
	}
	if b.handles, err = array[uintptr]("array_of_requests", p, int(n)); err != nil {
		return err
	}
	b.reqs, b.active = b.reqs[:0], false
	for i, h := range b.handles {
		r := requestOf(h)
		switch {
		case r != nil:
			b.reqs, b.active = append(b.reqs, r.q), true
		case h == requestNull:
			b.reqs = append(b.reqs, mpi.Request{})
		default:
			return fmt.Errorf("array_of_requests[%d]: %w", i, bad(mpi.ErrRequest, "request", h, requestNull))
		}
	}
	return usable()
}

func (b *batch) put() {
	for i := range b.reqs {
		if isFastPath(b.handles[i]) {
			if b.reqs[i].Null() {
				b.handles[i] = requestNull
			}
			continue
		}
		r := requestOf(b.handles[i])
		switch {
		case r == nil:
		case b.reqs[i].Null() && r.again == nil:
			drop(&b.handles[i], r)
		default:
			r.q = b.reqs[i]
		}
	}
}

func (b *batch) owner() *object {
	for _, h := range b.handles {
		if r := requestOf(h); r != nil {
			return r.owner
		}
	}
	return nil
}

// room returns memory for a status of each request, nil if the program ignores them.
func (b *batch) room(p uintptr) []mpi.Status {
	if p < firstAddress {
		return nil
	}
	if cap(b.statuses) < len(b.reqs) {
		b.statuses = make([]mpi.Status, len(b.reqs))
	}
	return b.statuses[:len(b.reqs)]
}

func putStatuses(p uintptr, sts []mpi.Status, err error) {
	to, bad := array[status]("array_of_statuses", p, len(sts))
	if bad != nil {
		return // the program ignores statuses
	}
	failed := err != nil && mpi.ErrorClass(err) == inStatus
	for i := range sts {
		to[i].store(&sts[i])
		if failed {
			to[i][statusError] = int32(mpi.ErrorCode(sts[i].Err))
		}
		sts[i].Err = nil
	}
}

const inStatus mpi.Class = 19

func onBatch(fn string, n int32, p uintptr, f func(b *batch) error) (code int32) {
	guard()
	defer rescue(fn, 0, nil, &code)
	b := aBatch()
	err := b.take(n, p)
	var owner *object
	if err == nil {
		if err = f(b); err != nil {
			owner = b.owner()
		}
		b.put()
	}
	b.keep()
	if err != nil {
		return fail(fn, 0, owner, err)
	}
	return success
}

//export abiWaitall
func abiWaitall(n int32, reqs, statuses uintptr) int32 {
	code := onBatch("Waitall", n, reqs, func(b *batch) error {
		sts := b.room(statuses)
		err := mpi.Waitall(b.reqs, sts)
		putStatuses(statuses, sts, err)
		return err
	})
	if code == success && n > 0 && n <= fastpath.Requests {
		learnMemory(reqs, int64(n)*int64(unsafe.Sizeof(reqs)), true)
		learnMemory(statuses, int64(n)*int64(unsafe.Sizeof(status{})), true)
	}
	return code
}

//export abiWaitany
func abiWaitany(n int32, reqs, index, st uintptr) int32 {
	return onBatch("Waitany", n, reqs, func(b *batch) error {
		i, s, err := mpi.Waitany(b.reqs)
		putStatus(st, &s)
		if bad := putInt("index", index, i); bad != nil {
			return bad
		}
		return err
	})
}

// testAll is Testall, or the like that leaves the requests as they are.
func testAll(fn string, n int32, reqs, flag, statuses uintptr, test func([]mpi.Request, []mpi.Status) (bool, error)) int32 {
	return onBatch(fn, n, reqs, func(b *batch) error {
		sts := b.room(statuses)
		done, err := test(b.reqs, sts)
		if done {
			putStatuses(statuses, sts, err)
		}
		if bad := putFlag("flag", flag, done); bad != nil {
			return bad
		}
		return err
	})
}

// testAny is Testany, or its like that leaves the requests as they are.
func testAny(fn string, n int32, reqs, index, flag, st uintptr, test func([]mpi.Request) (int, bool, mpi.Status, error)) int32 {
	return onBatch(fn, n, reqs, func(b *batch) error {
		i, done, s, err := test(b.reqs)
		if done {
			putStatus(st, &s)
		}
		if bad := putInt("index", index, i); bad != nil {
			return bad
		}
		if bad := putFlag("flag", flag, done); bad != nil {
			return bad
		}
		return err
	})
}

// testSome is Testsome, or its like that waits or leaves the requests as they are.
func testSome(fn string, n int32, reqs, outcount, indices, statuses uintptr, test func([]mpi.Request, []mpi.Status) ([]int, bool, error)) int32 {
	return onBatch(fn, n, reqs, func(b *batch) error {
		sts := b.room(statuses)
		which, done, err := test(b.reqs, sts)
		count := len(which)
		if count == 0 && done {
			count = mpi.Undefined
		}
		if sts != nil {
			putStatuses(statuses, sts[:len(which)], err)
		}
		if bad := putInts("array_of_indices", indices, len(b.reqs), which); bad != nil {
			return bad
		}
		if bad := putInt("outcount", outcount, count); bad != nil {
			return bad
		}
		return err
	})
}

func waitSome(reqs []mpi.Request, sts []mpi.Status) ([]int, bool, error) {
	which, err := mpi.Waitsome(reqs, sts)
	return which, true, err
}

//export abiStartall
func abiStartall(n int32, reqs uintptr) int32 {
	return onBatch("Startall", n, reqs, func(b *batch) error {
		for i, h := range b.handles {
			r := requestOf(h)
			if r == nil {
				return fmt.Errorf("%w: array_of_requests[%d] is the null handle", mpi.ErrRequest, i)
			}
			if err := r.start(); err != nil {
				return fmt.Errorf("array_of_requests[%d]: %w", i, err)
			}
			b.reqs[i] = r.q
		}
		return nil
	})
}

func startGeneralized(query, free, cancel, extra uintptr) (mpi.Request, error) {
	var g mpi.Generalized
	if query >= firstAddress {
		g.Query = func(st *mpi.Status) error {
			var s status
			s.store(st)
			code := callQuery(query, extra, &s)
			*st = s.load()
			return codeError(code)
		}
	}
	if free >= firstAddress {
		g.Free = func() error { return codeError(callFree(free, extra)) }
	}
	if cancel >= firstAddress {
		g.Cancel = func(complete bool) error { return codeError(callCancel(cancel, extra, complete)) }
	}
	return mpi.GrequestStart(g)
}

func codeError(code int32) error {
	if code == success {
		return nil
	}
	return mpi.NewError(mpi.Class(code))
}
