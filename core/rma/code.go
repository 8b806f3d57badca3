package rma

// Code is an answer that is no data: how what a header asked for, or everything
// before it, has ended. It travels as one byte.
type Code uint8

// The codes.
const (
	Done        Code = iota
	OutOfRange       // ErrRange, where the origin could not know
	Conflicting      // ErrConflict
	codes
)

// Err is the error that the origin reports; nil of Done.
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
