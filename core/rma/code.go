package rma

// Code is the answer of a target that returns no data: the result of the requested operation, or of
// everything before it. It is sent as one byte.
type Code uint8

// The codes.
const (
	Done        Code = iota
	OutOfRange       // ErrRange, in cases that the origin cannot detect
	Conflicting      // ErrConflict
	codes
)

// Err returns the error that the origin reports, or nil for Done.
func (c Code) Err() error {
	switch c {
	case Done:
		return nil
	case OutOfRange:
		return ErrRange
	case Conflicting:
		return ErrConflict
	default:
		return ErrHeader
	}
}
