package link

// Memory is a Link through memory that both sides see. In addition to Send and Recv, which copy, it
// lets its user write and read bytes in place. The calls for sending count as Send, those for
// receiving as Recv: two of one kind must not overlap. None of them returns errors; Send and Recv
// do.
type Memory interface {
	Link

	// Reserve returns room for the next n bytes in one piece, after what was reserved
	// before, or nil; then Send has to be used, after Commit. All reserved bytes must be
	// written before Commit.
	Reserve(n int) []byte

	// Commit sends what was reserved, and reports whether there was anything.
	Commit() bool

	// Ready reports whether Peek or Recv may have something. It may return true although
	// they have nothing, and does not report the end of the stream.
	Ready() bool

	// Peek returns bytes that have come, as many as are in one piece; none if nothing has
	// come, or only an error, which Recv returns. The other side can still change them, so
	// each must be read only once. They are valid until Discard or Recv.
	Peek() []byte

	// Discard releases the first n bytes of the last Peek, which are not needed any more.
	Discard(n int)
}
