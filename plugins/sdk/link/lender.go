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
