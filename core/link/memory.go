package link

// Memory is a Link through memory that both sides see. Besides Send and Recv,
// which copy, it lets its user write and read where the bytes lie. The calls
// for sending count as Send, those for receiving as Recv: two of one kind must
// not overlap. None of them reports errors: Send and Recv do.
type Memory interface {
	Link

	// Reserve gives room for the next n bytes in one piece, behind what was
	// reserved before, or nil: Send has to take them then, after Commit. What was
	// reserved must be written whole before Commit.
	Reserve(n int) []byte

	// Commit sends what was reserved, and reports whether there was anything.
	Commit() bool

	// Ready reports whether Peek or Recv have something. It may say so too often, and
	// does not tell of the end.
	Ready() bool

	// Peek gives bytes that have come, as many as lie in one piece; none if there
	// is nothing, or only an error, which Recv tells of. The other side can still
	// change them: each is to be read once. They are valid until Discard or Recv.
	Peek() []byte

	// Discard says that the first n bytes of the last Peek are done with.
	Discard(n int)
}
