package rma

// Code is the answer of a target that returns no data: how the requested operation, or everything
// before it, has ended. It is sent as one byte.
type Code uint8

// The codes.
const (
	Done        Code = iota
	OutOfRange       // ErrRange, where the origin could not know
	Conflicting      // ErrConflict
	codes
)

// Err returns the error that the origin reports, nil for Done.
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
