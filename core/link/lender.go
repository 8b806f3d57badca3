package link

// Lender is a Link that can let the other side take bytes from where they lie,
// without a copy on this side.
type Lender interface {
	Link

	// Lend is Send, but may keep long slices of batch until the other side has taken
	// them. n counts only bytes that are the caller's again. The caller leaves all
	// others as they are, and begins the next batch with them: it may be longer
	// then, not different. Who has begun with Lend uses nothing else to send until
	// all bytes are his again. Close ends the loan: what was not taken is lost.
	Lend(batch [][]byte) (n int, err error)
}
