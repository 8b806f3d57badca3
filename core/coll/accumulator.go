package coll

// accumulator is the running value of a reduction. It starts as the process's own operand, which it
// never overwrites. Operands are combined in an order that MPI lets the library choose if the
// operation is commutative, and in rank order otherwise (MPI-4.1, 6.9.1).
type accumulator struct {
	reductions
	cur []byte
	// mine is true if cur may be overwritten; spare is free memory of the same length.
	mine  bool
	spare []byte
}

// accumulate returns an accumulator with the value own. If result is other memory it is used for
// the value as soon as that must not stay in own, so that in the end it is likely to be in result
// already.
func (p reductions) accumulate(own, result []byte) accumulator {
	a := accumulator{reductions: p, cur: own}
	if !same(own, result) && len(result) == len(own) {
		a.spare = result
	}
	return a
}

// buffer returns memory to receive an operand into. It stays in use until the operand is combined.
func (a *accumulator) buffer() []byte {
	b := a.spare
	a.spare = nil
	if b == nil {
		b = a.scratch.get(len(a.cur))
	}
	return b
}

// before makes the value x ∘ value. x must come from buffer; its memory is free afterwards.
func (a *accumulator) before(x []byte) {
	a.operand(x)
	a.spare = x
}

// operand makes the value x ∘ value and does not change x.
func (a *accumulator) operand(x []byte) {
	if !a.mine {
		b := a.buffer()
		a.copy(b, a.cur)
		a.cur, a.mine = b, true
	}
	a.apply(x, a.cur)
}

// after makes the value value ∘ x. x must come from buffer.
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

// apply adds the step inout = in ∘ inout, the order of arguments of MPI_User_function (MPI-4.1,
// 6.9.5).
func (p reductions) apply(in, inout []byte) {
	if len(in) > 0 {
		p.add(Step{Action: Reduce, Op: p.op, Kind: p.k, Count: len(in) / p.k.Size(), Src: in, Dst: inout})
	}
}

// fold receives operands from count processes and combines each as x ∘ value. While one is combined
// the next is being received already.
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
