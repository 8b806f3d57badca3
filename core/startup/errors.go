package startup

import "errors"

// Errors of startup. Every error of this package wraps one of these.
var (
	ErrConfig   = errors.New("startup cannot begin")                                  // the own settings are not valid
	ErrTimeout  = errors.New("time limit is over")                                    // a peer never came or stopped answering
	ErrAuth     = errors.New("authentication failed")                                 // wrong key, or no mechanism in common
	ErrRank     = errors.New("client rank cannot be used")                            // taken, or outside the job
	ErrFull     = errors.New("job takes no more clients")                             // all clients have joined
	ErrProtocol = errors.New("startup protocol was broken")                           // a command of a peer that is not allowed there
	ErrTooLong  = errors.New("length is not acceptable")                              // a length from a peer, or too many of something
	ErrValue    = errors.New("startup value is wrong")                                // a label's values are not valid
	ErrDisagree = errors.New("clients do not agree")                                  // values that must be equal are not
	ErrLost     = errors.New("connection was lost")                                   // a peer's connection ended too early
	ErrFailed   = errors.New("ended the job")                                         // a peer has sent the reason why it gave up
	ErrLeft     = errors.New("the server has left the job, which goes on without it") // by Leave
	ErrMoved    = errors.New("the site tries another server")                         // another one of a list; may come back
	ErrMet      = errors.New("the sites have met at another server")                  // another one of a list
	ErrBusy     = errors.New("server is busy")                                        // too many connections that have not named a client
)
