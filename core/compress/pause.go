package compress

const (
	firstPause = 256 << 10
	lastPause  = 16 << 20
)

// pause decides when to try to compress, by how the last tries went.
type pause struct {
	left int // bytes still to be sent plain, without a try
	last int // bytes of the last pause; 0: the last try made the data smaller
}

func (p *pause) tries() bool { return p.left <= 0 }

func (p *pause) passed(n int) { p.left -= min(n, p.left) }

func (p *pause) tried(worth bool) {
	if worth {
		p.last = 0
		return
	}
	p.last = min(max(firstPause, 2*p.last), lastPause)
	p.left = p.last
}

func worth(size, compressed int) bool { return compressed <= size-size/8 && compressed < size }
