package main

import (
	"crypto/rand"
	"encoding/binary"
	"sync"
	"time"

	sdkfabric "github.com/openimpi/impi/plugins/sdk/transports/fabric"
)

// Bounds of what peers can make a node keep.
const (
	maxPeers    = 4096
	maxStreams  = 16384
	maxHalfOpen = 256 // links that an unknown peer's connect has begun, not confirmed yet
	maxRefusals = 16  // answers to one peer that wait
	backlog     = 1024

	halfOpenTime = 10 * time.Second
	removeAfter  = 2 * time.Second // until a peer's address is removed, after its last link
	lingerTime   = 10 * time.Second
	resendFirst  = 250 * time.Millisecond
	resendLast   = 2 * time.Second
	tickTime     = 50 * time.Millisecond
	idleTime     = 3 * time.Second // until a node for dialling ends, after its last link

	mostReceives = 128     // posted at a time
	receiveRoom  = 1 << 20 // bytes that they have room for: with more than the caches have, streams are slower
	mostBatches  = 4       // of completions that are handled in a row

	polledTime = 10 * time.Millisecond  // between looks after links whose users poll
	leastNap   = 100 * time.Microsecond // where there is no descriptor to wait for, at first
	mostNap    = 2 * time.Millisecond   // and when nothing has come for long
)

// node is an endpoint and the goroutine that moves its messages. Nothing that it does waits for
// one peer: messages to it wait in the links' own queues, which are bounded.
type node struct {
	set   settings
	f     *fabric
	claim *claim // of its name, while it lives

	mu       sync.Mutex
	peers    map[string]*peer
	streams  map[uint64]*stream
	incoming map[connectKey]*stream // streams made by a connect, which may come again
	half     int
	arrived  chan *stream // nil: it only dials
	open     bool         // a listener or a transport uses it
	users    int          // number of dials under way
	inserted int          // addresses that the provider has
	unused   time.Time    // since when there is nothing to do
	free     [2][]*slot   // small slots, and slots with room for data
	made     [2]int
	starved  []*slot // receives that could not be posted
	again    bool    // the provider had no room for a message
	polled   int     // links whose users poll, and the node with them
	looks    uint64  // number of their polls
	ended    bool
	done     chan struct{}
	failed   error
	cache    *sdkfabric.Cache // of memory that procs lend

	orphans      map[*view]bool // what is still read into, of links that have ended
	retired      []span         // memory that was given back, which may still be read
	retiredBytes int
}

type connectKey struct {
	blob   string
	number uint64
}

type endpoint struct {
	host, service string // for libfabric; empty: any
	listens       bool
	claim         *claim // nil: none is needed
}

// newNode makes a node, which frees the claim when it ends. After an error the caller still has
// that.
func newNode(set settings, at endpoint) (*node, error) {
	f, err := openFabric(set, at.host, at.service)
	if err != nil {
		return nil, err
	}
	n := &node{set: set, f: f, peers: map[string]*peer{}, streams: map[uint64]*stream{},
		incoming: map[connectKey]*stream{}, open: true, done: make(chan struct{})}
	if at.listens {
		n.arrived = make(chan *stream, backlog)
	}
	n.cache, n.orphans = sdkfabric.NewCache(n, set.registered), map[*view]bool{}
	n.known()
	list, err := f.grow(min(mostReceives, receiveRoom/set.fragment), headSize+set.fragment, true)
	for _, s := range list {
		if err == nil {
			err = f.receive(s)
		}
	}
	if err != nil {
		n.close()
		return nil, err
	}
	n.claim = at.claim
	go n.run()
	return n, nil
}

// run moves messages until nobody needs the node. While users of links poll, these do it, and run
// does only what is due at its time.
func (n *node) run() {
	defer close(n.done)
	var last time.Time
	var looks uint64
	nap := leastNap
	for {
		n.mu.Lock()
		now := time.Now()
		if now.Sub(last) >= tickTime {
			last = now
			n.tick(now)
		}
		found := n.progress(nil)
		wait := n.push()
		if n.finished(now) {
			n.ended = true
			n.mu.Unlock()
			n.close()
			return
		}
		polled := n.polled > 0 && n.looks != looks
		looks = n.looks
		n.mu.Unlock()
		switch {
		case polled:
			wait = polledTime
		case found > 0:
			nap = leastNap
			continue
		case n.f.file == nil:
			nap = min(nap+nap/4, mostNap)
			wait = min(wait, nap)
		}
		n.f.sleep(wait, !polled, func() bool { return !n.f.mayWait() })
	}
}

// progress handles what has completed, until there is nothing more or the reader of l has enough.
// It returns how much that was.
func (n *node) progress(l *stream) (found int) {
	for range mostBatches {
		list := n.f.read()
		for _, e := range list {
			n.event(e)
		}
		found += len(list)
		if len(list) < cap(list) || l != nil && l.served() {
			break
		}
	}
	if n.again || len(n.starved) > 0 {
		n.push()
	}
	return found
}

// finished reports whether the node can go. Links that were closed may have bytes under way.
func (n *node) finished(now time.Time) bool {
	for _, s := range n.streams {
		if s.state != abandoned {
			n.unused = time.Time{}
			return false
		}
	}
	if n.open && n.arrived != nil || n.users > 0 {
		n.unused = time.Time{}
		return false
	}
	if n.unused.IsZero() {
		n.unused = now
	}
	if n.open {
		return now.Sub(n.unused) > idleTime
	}
	for _, p := range n.peers {
		if p.busy() && now.Sub(n.unused) < time.Second {
			return false // an answer is under way
		}
	}
	return true
}

// push posts what can be posted, and returns how long the loop may wait.
func (n *node) push() time.Duration {
	wait := tickTime
	if len(n.streams) == 0 {
		wait = time.Second
	}
	n.again = false
	for len(n.starved) > 0 && n.f.receive(n.starved[0]) == nil {
		n.starved = n.starved[1:]
	}
	for _, p := range n.peers {
		if p.push(n); n.again {
			wait = time.Millisecond
		} else if p.posted > 0 {
			wait = min(wait, 5*time.Millisecond) // the provider's own resends need progress
		} else if p.idle != (time.Time{}) {
			wait = min(wait, tickTime)
		}
	}
	if len(n.starved) > 0 {
		wait = time.Millisecond
	}
	return wait
}

// slot returns one to send with: 0 small, 1 with room for data. They are bounded by what links
// may have under way.
func (n *node) slot(size int) *slot {
	if len(n.free[size]) == 0 {
		room, count := smallRoom, 64
		if size == 1 {
			room, count = headSize+n.set.fragment, 8
		}
		list, err := n.f.grow(count, room, false)
		if err != nil {
			return nil // tried again with the next event
		}
		n.free[size] = append(n.free[size], list...)
	}
	s := n.free[size][len(n.free[size])-1]
	n.free[size] = n.free[size][:len(n.free[size])-1]
	return s
}

func (n *node) release(s *slot) {
	s.peer, s.link, s.read = nil, nil, nil
	size := 0
	if len(s.data) > smallRoom {
		size = 1
	}
	n.free[size] = append(n.free[size], s)
}

// number draws a number for a link. Whoever does not know it cannot send to the link.
func (n *node) number() uint64 {
	for {
		var b [8]byte
		_, _ = rand.Read(b[:]) // it never fails
		if x := binary.LittleEndian.Uint64(b[:]); x != 0 && n.streams[x] == nil {
			return x
		}
	}
}

func (n *node) event(e event) {
	s := e.slot
	if s == nil {
		return
	}
	switch {
	case s.read != nil:
		n.wasRead(s, e.err)
		return
	case s.c.receives == 0:
		n.sent(s, e.err)
		return
	}
	if e.err == 0 && e.len <= len(s.data) {
		if h, rest, ok := parse(s.data[:e.len]); ok {
			n.message(h, rest)
		}
	}
	if n.f.receive(s) != nil {
		n.starved = append(n.starved, s)
	}
}

func (n *node) sent(s *slot, code int) {
	p, l := s.peer, s.link
	p.posted--
	p.stuck = time.Time{}
	if code == 0 {
		p.ready = true
	}
	if l != nil && s.kind == kindData {
		l.posted--
		l.wakeup()
	}
	n.release(s)
	if code != 0 {
		p.fail(n, &fabricError{"fi_send", code})
		return
	}
	p.push(n)
}

// message handles a message that has come. Its content is not trusted: it is compared with what
// this side knows, and otherwise ignored, or ends the link.
func (n *node) message(h head, rest []byte) {
	if h.kind == kindConnect {
		n.connect(h, rest)
		return
	}
	l := n.streams[h.to]
	if l == nil {
		return
	}
	l.heard = time.Now()
	l.message(h, rest)
	l.peer.push(n)
}

// connect begins a link, if it is not a repetition.
func (n *node) connect(h head, rest []byte) {
	room, ok := window(rest)
	if !ok || h.value == 0 || !n.f.validBlob(rest[4:]) {
		return
	}
	key := connectKey{string(rest[4:]), h.value}
	if l := n.incoming[key]; l != nil {
		if l.state == halfOpen {
			l.want(todoAccept)
			l.peer.push(n)
		}
		return
	}
	p := n.peer(key.blob)
	if p == nil || p.dead != nil {
		return
	}
	switch {
	case !n.open || n.arrived == nil:
		p.refuse(n, h.value, refusedClosed)
		return
	case n.half >= maxHalfOpen || len(n.streams) >= maxStreams || len(n.arrived) == cap(n.arrived):
		p.refuse(n, h.value, refusedFull)
		return
	}
	l := newStream(n, p)
	l.state, l.far, l.allowed, l.key = halfOpen, h.value, room, key
	if h.flags == flagMessages && n.set.rdma {
		l.m = newMessages(l, room)
	}
	n.half++
	n.incoming[key] = l
	l.resend, l.pause = time.Now().Add(resendFirst), resendFirst
	l.want(todoAccept)
	p.push(n)
}

func (n *node) tick(now time.Time) {
	for _, l := range n.streams {
		l.tick(now)
	}
	for _, p := range n.peers {
		p.tick(n, now)
	}
}

// stop says that the node has no users any more. It ends when its links have ended.
func (n *node) stop() {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.open {
		n.open = false
		for _, l := range n.streams {
			if l.state == halfOpen {
				l.breakOff(errReset)
			}
		}
	}
	if !n.ended {
		n.f.wake()
	}
}
