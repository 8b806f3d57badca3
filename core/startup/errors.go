package startup

import "errors"

// What can go wrong. Every error of this package wraps one of these.
var (
	ErrConfig   = errors.New("startup cannot begin")        // our own settings
	ErrTimeout  = errors.New("time limit is over")          // somebody never came or fell silent
	ErrAuth     = errors.New("authentication failed")       // wrong key, or no mechanism in common
	ErrRank     = errors.New("client rank cannot be used")  // taken, or not in the job
	ErrFull     = errors.New("job takes no more clients")   // all have come
	ErrProtocol = errors.New("startup protocol was broken") // a peer's command that has no place there
	ErrTooLong  = errors.New("length is not acceptable")    // a peer's length, or too much of something
	ErrValue    = errors.New("startup value is wrong")      // a label's values make no sense
	ErrDisagree = errors.New("clients do not agree")        // values that must be equal are not
	ErrLost     = errors.New("connection was lost")         // a peer's connection ended too early
	ErrFailed   = errors.New("ended the job")               // a peer said why it gave up
	ErrBusy     = errors.New("server is busy")              // too many connections that say nothing
)
