//go:build cgo && !386 && !arm

package main

import "C"

import (
	"github.com/openimpi/impi/core/mpi"
)

// onStatus is a call about the status at p and a datatype.
func onStatus(fn string, which int32, p, t uintptr, f func(s *status, dt *mpi.Datatype) error) int32 {
	return on(fn, which, func() error {
		s, err := takeStatus(p)
		if err != nil {
			return err
		}
		dt, err := takeType("datatype", t)
		if err != nil {
			return err
		}
		return f(s, dt)
	})
}

//export abiGetCount
func abiGetCount(st, t, count uintptr, which int32) int32 {
	return onStatus("Get_count", which, st, t, func(s *status, dt *mpi.Datatype) error {
		n, err := s.load().Count(dt)
		if err != nil {
			return err
		}
		return putWide("count", count, which, int64(n))
	})
}

//export abiGetElements
func abiGetElements(st, t, count uintptr, which int32) int32 {
	return onStatus("Get_elements", which, st, t, func(s *status, dt *mpi.Datatype) error {
		n, err := s.load().Elements(dt)
		if err != nil {
			return err
		}
		return putWide("count", count, which, int64(n))
	})
}

//export abiGetElementsX
func abiGetElementsX(st, t, count uintptr) int32 { return abiGetElements(st, t, count, oldWide) }

//export abiStatusSetElements
func abiStatusSetElements(st, t uintptr, count int64, which int32) int32 {
	return onStatus("Status_set_elements", which, st, t, func(s *status, dt *mpi.Datatype) error {
		v := s.load()
		if err := v.SetElements(dt, int(count)); err != nil {
			return err
		}
		s.store(&v)
		return nil
	})
}

//export abiStatusSetElementsX
func abiStatusSetElementsX(st, t uintptr, count int64) int32 {
	return abiStatusSetElements(st, t, count, oldWide)
}

//export abiStatusSetCancelled
func abiStatusSetCancelled(st uintptr, flag int32) int32 {
	return anytime("Status_set_cancelled", func() error {
		s, err := takeStatus(st)
		if err == nil {
			v := s.load()
			v.SetCancelled(flag != 0)
			s.store(&v)
		}
		return err
	})
}

//export abiTestCancelled
func abiTestCancelled(st, flag uintptr) int32 {
	return anytime("Test_cancelled", func() error {
		s, err := takeStatus(st)
		if err != nil {
			return err
		}
		return putFlag("flag", flag, s.load().Cancelled())
	})
}

// getWord and setWord are the accessors of the public words of a status.
func getWord(fn string, word int, st, out uintptr) int32 {
	return anytime(fn, func() error {
		s, err := takeStatus(st)
		if err != nil {
			return err
		}
		return put("the result", out, s[word])
	})
}

func setWord(fn string, word int, st uintptr, v int32) int32 {
	return anytime(fn, func() error {
		s, err := takeStatus(st)
		if err == nil {
			s[word] = v
		}
		return err
	})
}

//export abiStatusGetSource
func abiStatusGetSource(st, out uintptr) int32 {
	return getWord("Status_get_source", statusSource, st, out)
}

//export abiStatusGetTag
func abiStatusGetTag(st, out uintptr) int32 { return getWord("Status_get_tag", statusTag, st, out) }

//export abiStatusGetError
func abiStatusGetError(st, out uintptr) int32 {
	return getWord("Status_get_error", statusError, st, out)
}

//export abiStatusSetSource
func abiStatusSetSource(st uintptr, v int32) int32 {
	return setWord("Status_set_source", statusSource, st, v)
}

//export abiStatusSetTag
func abiStatusSetTag(st uintptr, v int32) int32 { return setWord("Status_set_tag", statusTag, st, v) }

//export abiStatusSetError
func abiStatusSetError(st uintptr, v int32) int32 {
	return setWord("Status_set_error", statusError, st, v)
}
