package mpi

import (
	"fmt"
	"runtime/debug"
)

// UseMemoryCheck is for programs whose memory is not Go's, so that what they give for a message
// may not be there: there tells whether all of b can be written, and changes nothing. It is
// called after Init, before anything else. Where there is no memory a receive fails with
// ErrBuffer when its message comes, which is dropped, and the link goes on.
func UseMemoryCheck(there func(b []byte) bool) {
	if p, err := current(); err == nil {
		p.guard(there)
	}
}

func (p *process) guard(there func(b []byte) bool) {
	p.lock()
	defer p.unlock()
	p.guarded = true
	p.eng.CheckMemory(there)
}

// packGuarded is Pack where the items may lie where there is no memory. What is missing of a
// message that has begun travels as zeros, so that the link keeps step.
func (s *stream) packGuarded(dst []byte, off int64) {
	if s.fault != nil {
		clear(dst)
		return
	}
	defer s.rescue(debug.SetPanicOnFault(true), dst)
	s.buf.typ.Encode(s.rep, dst, s.buf.mem, s.buf.count, off)
}

// unpackGuarded is Unpack where the items may lie where there is no memory. What comes after is
// dropped.
func (s *stream) unpackGuarded(src []byte, off int64) {
	if s.fault != nil {
		return
	}
	defer s.rescue(debug.SetPanicOnFault(true), nil)
	s.buf.typ.Decode(s.rep, s.buf.mem, s.buf.count, off, src, &s.carry)
}

// rescue makes an error of a fault of memory.
func (s *stream) rescue(before bool, dst []byte) {
	debug.SetPanicOnFault(before)
	r := recover()
	if r == nil {
		return
	}
	at, ok := r.(interface{ Addr() uintptr })
	if !ok {
		panic(r)
	}
	s.fault = fmt.Errorf("%w: there is no memory at %#x", ErrBuffer, at.Addr())
	clear(dst)
}

// verdict is how a message ended whose items s has moved, if there is an s.
func (s *stream) verdict(err error) error {
	if s != nil && s.fault != nil {
		return s.fault
	}
	return err
}
