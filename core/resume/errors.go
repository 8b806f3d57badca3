package resume

import "errors"

// The ways in which a peer or the network may break the protocol. ErrChecksum is the
// network's fault: it ends the underlying link, and the next one replays. ErrSession,
// ErrStale and any error in the first frame also end only the underlying link. All others
// end the Link, with an error that wraps link.ErrBroken too
// (docs/decisions/0015-link-resume.md: a peer that miscounts would do so again).
var (
	ErrVersion  = errors.New("another version of the resume protocol")
	ErrFrame    = errors.New("malformed frame")
	ErrSequence = errors.New("wrong place in the stream")
	ErrAck      = errors.New("impossible acknowledgement")
	ErrWindow   = errors.New("more bytes than the window allows")
	ErrChecksum = errors.New("wrong checksum")
	ErrSession  = errors.New("another session")
	ErrStale    = errors.New("not newer than the link in use")
	ErrGone     = errors.New("the peer has closed it")
)

// ErrNotResumed is wrapped by the error of a resumable link for which there will be no further link
// below.
var ErrNotResumed = errors.New("it was lost and not resumed")

// errLent is the reason for giving up a Link whose user has ended its stream while bytes
// were lent.
var errLent = errors.New("it was ended while some of its bytes were lent")
