//go:build cgo && !386 && !arm

package main

import "github.com/openimpi/impi/core/mpi"

// setElements sets how many elements of t the status at p reports.
func setElements(p uintptr, t *mpi.Datatype, n int) error {
	s, err := takeStatus(p)
	if err != nil {
		return err
	}
	v := s.load()
	if err = v.SetElements(t, n); err == nil {
		s.store(&v)
	}
	return err
}

func setCancelled(p uintptr, flag bool) error {
	s, err := takeStatus(p)
	if err == nil {
		v := s.load()
		v.SetCancelled(flag)
		s.store(&v)
	}
	return err
}

func getWord(word int, p, out uintptr) error {
	s, err := takeStatus(p)
	if err != nil {
		return err
	}
	return put("the result", out, s[word])
}

func setWord(word int, p uintptr, v int) error {
	s, err := takeStatus(p)
	if err == nil {
		s[word] = int32(v)
	}
	return err
}
