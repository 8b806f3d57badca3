package resume

import "errors"

// What a peer may have done wrong. ErrChecksum is the network's fault: the
// underlying link is given up, and the next one replays. ErrSession, ErrStale
// and any fault of the first frame concern that underlying link only. All others
// end the Link, with an error that wraps link.ErrBroken too.
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

// errLent is why a Link is given up whose user ends it in the middle.
var errLent = errors.New("it was ended while some of its bytes were lent")
