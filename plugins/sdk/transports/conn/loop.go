package conn

// Near and far ends of a Loop: what its owner needs of them beside passing bytes.
type (
	// LoopNear is the side that leads to the user of the link. Its methods may be called at any time
	// and repeatedly.
	LoopNear interface {
		Alive() bool // the user still has the link
		Break()      // closes this side so that the user's link is broken
		Close() error
	}
	// LoopFar is the side that leads to the peer.
	LoopFar interface {
		CloseWrite() error
		Close() error
	}
)

// NewLoop makes a pump whose bytes pass passes, in both directions: until the user has closed the
// link and its bytes were passed on, or an error, which breaks both sides. Break of near must end
// pass. The pump owns both sides.
func NewLoop(near LoopNear, far LoopFar, pass func() error) *Pump {
	p := &Pump{near: near, far: far}
	p.pass = func() {
		err := pass()
		p.fail(err)
		p.left.Store(err == nil)
	}
	return p
}
