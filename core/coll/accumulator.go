package coll

// accumulator is the running value of a reduction. It starts as the process's
// own operand, which it never overwrites.
type accumulator struct {
	reductions
	cur []byte
	// mine says that cur may be overwritten; spare is memory of the same length
	// that is free.
	mine  bool
	spare []byte
}

// accumulate starts with own. result, if not the same memory, is used where
// memory is needed, so that the value is likely to end there.
func (p reductions) accumulate(own, result []byte) accumulator {
	a := accumulator{reductions: p, cur: own}
	if !same(own, result) && len(result) == len(own) {
		a.spare = result
	}
	return a
}

// buffer is memory for an operand. It stays in use until it is combined.
func (a *accumulator) buffer() []byte {
	b := a.spare
	a.spare = nil
	if b == nil {
		b = a.scratch.get(len(a.cur))
	}
	return b
}

// before makes the value x ∘ value; x is one of buffer's and free afterwards.
func (a *accumulator) before(x []byte) {
	a.operand(x)
	a.spare = x
}

// operand makes the value x ∘ value and leaves x alone.
func (a *accumulator) operand(x []byte) {
	if !a.mine {
		b := a.buffer()
		a.copy(b, a.cur)
		a.cur, a.mine = b, true
	}
	a.apply(x, a.cur)
}

// after makes the value value ∘ x; x is one of buffer's.
func (a *accumulator) after(x []byte) {
	if a.mine && a.op.Commutative() {
		a.before(x)
		return
	}
	a.strictlyAfter(x)
}

// strictlyAfter is after for when the operands must not be exchanged even if
// the operation is commutative, so that two processes compute the same to the
// last bit.
func (a *accumulator) strictlyAfter(x []byte) {
	a.apply(a.cur, x)
	if a.mine {
		a.spare = a.cur
	}
	a.cur, a.mine = x, true
}

// apply adds inout = in ∘ inout.
func (p reductions) apply(in, inout []byte) {
	if len(in) > 0 {
		p.add(Step{Action: Reduce, Op: p.op, Kind: p.k, Count: len(in) / p.k.Size(), Src: in, Dst: inout})
	}
}

// fold receives operands from count processes, one ahead of the one that is
// being combined, each as x ∘ value.
func (a *accumulator) fold(count int, recv func(i int, into []byte)) {
	if count == 0 {
		return
	}
	next := a.buffer()
	recv(0, next)
	a.wait()
	for i := 1; i <= count; i++ {
		x := next
		if i < count {
			next = a.buffer()
			recv(i, next)
		}
		a.before(x)
		a.wait()
	}
}
