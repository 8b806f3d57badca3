package link

// Lender is a Link from which the other side can copy bytes out of this side's memory, so
// that this side does not copy them.
type Lender interface {
	Link

	// Lend is like Send, but may keep long slices of batch until the other side has taken them. n
	// counts only bytes that are the caller's again. The caller must not change the other bytes,
	// and must begin the next batch with them; it may append to it. After Lend the caller must not
	// use another method to send until all bytes are its own again. Close ends the loans: bytes
	// that were not taken are lost.
	Lend(batch [][]byte) (n int, err error)
}

// Recaller is a Link that may still write to memory which Recv was given when Recv has returned:
// hardware fills it. It writes only bytes that the next Recv delivers, if that begins with the same
// memory. Close ends that too.
type Recaller interface {
	Link

	// Recall returns when the link does not write any more to memory that Recv was given. Whoever
	// wants to use that memory for something else calls it first. It waits for what is under way,
	// and breaks the link if that takes too long.
	Recall()
}
