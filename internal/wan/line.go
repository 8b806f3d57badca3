package wan

import (
	"container/heap"
	"math/bits"
	"math/rand/v2"
	"time"
)

// Line is one direction of a link of a wide area. Times are since any moment, and never decrease.
// For each packet the line holds a T: an index or a pointer of the caller, who owns the bytes. It
// is not safe for concurrent use.
type Line[T any] struct {
	shape   Shape
	entropy *rand.Rand

	idle     time.Duration // when the transmitter has sent all packets that it was given
	fraction uint64        // further part of a nanosecond, in units of 1/Rate
	wire     queue[T]      // packets in order of arrival
	last     time.Duration // when the last of these arrives
	behind   late[T]       // reordered packets and duplicates
	serial   uint64        // number of late packets, which keeps packets of one moment in order
	out      time.Duration // when the next outage begins
	counts   Counts
}

// Counts are the numbers of a line's packets, by what became of them.
type Counts struct {
	Offered      uint64 `json:"offered"`    // packets offered
	Bytes        uint64 `json:"bytes"`      // bytes of the packets offered
	Dropped      uint64 `json:"dropped"`    // no room in the queue
	Lost         uint64 `json:"lost"`       // packets lost on the wire
	LostInOutage uint64 `json:"out"`        // packets offered during outages
	Duplicated   uint64 `json:"duplicated"` // packets that arrive twice
	Reordered    uint64 `json:"reordered"`
}

// NewLine makes a line; the same seed gives the same line. The shape must be one that Check
// accepts.
func NewLine[T any](shape Shape, seed uint64) *Line[T] {
	l := &Line[T]{shape: shape, entropy: rand.New(rand.NewPCG(seed, 0x77616e))}
	l.out = l.next(0)
	return l
}

// next draws when the next outage after a moment begins.
func (l *Line[T]) next(after time.Duration) time.Duration {
	if l.shape.OutageInterval == 0 {
		return 1<<63 - 1
	}
	return after + time.Duration(l.entropy.ExpFloat64()*float64(l.shape.OutageInterval))
}

// Counts returns the counts of the packets so far.
func (l *Line[T]) Counts() Counts { return l.counts }

// Shape returns the shape that NewLine or the last Reshape has set.
func (l *Line[T]) Shape() Shape { return l.shape }

// Reshape changes the shape of the line. Packets that it holds arrive as they would have; the queue
// is measured by the new rate.
func (l *Line[T]) Reshape(now time.Duration, shape Shape) error {
	if err := shape.Check(); err != nil {
		return err
	}
	l.shape, l.fraction = shape, 0
	l.out = l.next(now)
	return nil
}

// Room reports whether the queue has room now for a packet of size bytes.
func (l *Line[T]) Room(now time.Duration, size int) bool {
	return l.shape.Queue == 0 || l.backlog(now)+uint64(size) <= uint64(l.shape.Queue)
}

// Offer gives a packet of size bytes to the line. It returns how many times Take will return the
// packet: 0 means that it will not arrive, so that its bytes are the caller's again, 2 that it is
// duplicated.
func (l *Line[T]) Offer(now time.Duration, packet T, size int) (times int) {
	l.counts.Offered++
	l.counts.Bytes += uint64(size)
	if l.isOut(now) {
		l.counts.LostInOutage++
		return 0
	}
	if !l.Room(now, size) {
		l.counts.Dropped++
		return 0
	}
	arrives := l.transmit(now, size) + l.shape.Delay
	if l.shape.Jitter > 0 {
		arrives += time.Duration(l.entropy.Int64N(int64(l.shape.Jitter) + 1))
	}
	if l.happens(l.shape.Loss) {
		l.counts.Lost++
		return 0
	}
	times = 1
	if l.happens(l.shape.Duplicate) {
		l.counts.Duplicated++
		l.late(arrives, packet)
		times++
	}
	if l.happens(l.shape.Reorder) {
		l.counts.Reordered++
		l.late(arrives+l.shape.ReorderDelay, packet)
		return times
	}
	l.last = max(l.last, arrives)
	l.wire.push(arrival[T]{at: l.last, packet: packet})
	return times
}

// happens draws an event of a probability; what cannot happen takes no entropy.
func (l *Line[T]) happens(p float64) bool { return p > 0 && l.entropy.Float64() < p }

func (l *Line[T]) isOut(now time.Duration) bool {
	for now >= l.out {
		if now < l.out+l.shape.OutageLength {
			return true
		}
		l.out = l.next(l.out + l.shape.OutageLength)
	}
	return false
}

// backlog is how many bytes are left to be transmitted; a part of a byte counts as a whole one.
func (l *Line[T]) backlog(now time.Duration) uint64 {
	if l.idle <= now || l.shape.Rate == 0 {
		return 0
	}
	high, low := bits.Mul64(uint64(l.idle-now), uint64(l.shape.Rate))
	n, rest := bits.Div64(high, low, 8e9)
	if rest > 0 {
		n++
	}
	return n
}

// transmit returns when a packet has been transmitted. Fractions of nanoseconds are kept, so that
// the rate is exact.
func (l *Line[T]) transmit(now time.Duration, size int) time.Duration {
	if l.shape.Rate == 0 {
		return now
	}
	if l.idle < now {
		l.idle, l.fraction = now, 0
	}
	whole, rest := bits.Div64(0, uint64(size)*8e9+l.fraction, uint64(l.shape.Rate))
	l.idle, l.fraction = l.idle+time.Duration(whole), rest
	return l.idle
}

func (l *Line[T]) late(at time.Duration, packet T) {
	l.serial++
	heap.Push(&l.behind, delayed[T]{arrival[T]{at, packet}, l.serial})
}

// Next returns when the next packet arrives; ok is false if none is under way.
func (l *Line[T]) Next() (at time.Duration, ok bool) {
	switch {
	case len(l.behind) == 0 && l.wire.empty():
		return 0, false
	case len(l.behind) == 0 || !l.wire.empty() && l.wire.first().at <= l.behind[0].at:
		return l.wire.first().at, true
	}
	return l.behind[0].at, true
}

// Take returns the first packet that has arrived; ok is false if there is none.
func (l *Line[T]) Take(now time.Duration) (packet T, ok bool) {
	at, under := l.Next()
	if !under || at > now {
		return packet, false
	}
	if !l.wire.empty() && l.wire.first().at == at {
		return l.wire.pop().packet, true
	}
	return heap.Pop(&l.behind).(delayed[T]).packet, true
}

type arrival[T any] struct {
	at     time.Duration
	packet T
}

// queue is a ring of arrivals. It grows and does not shrink, so that a busy line allocates nothing.
type queue[T any] struct {
	ring        []arrival[T] // its length is a power of two
	begin, size int
}

func (q *queue[T]) empty() bool { return q.size == 0 }

// first returns the first arrival; the queue must not be empty.
func (q *queue[T]) first() *arrival[T] { return &q.ring[q.begin] }

func (q *queue[T]) push(a arrival[T]) {
	if q.size == len(q.ring) {
		ring := make([]arrival[T], max(64, 2*len(q.ring)))
		n := copy(ring, q.ring[q.begin:])
		copy(ring[n:], q.ring[:q.begin])
		q.ring, q.begin = ring, 0
	}
	q.ring[(q.begin+q.size)&(len(q.ring)-1)] = a
	q.size++
}

func (q *queue[T]) pop() arrival[T] {
	a := q.ring[q.begin]
	q.ring[q.begin] = arrival[T]{}
	q.begin = (q.begin + 1) & (len(q.ring) - 1)
	q.size--
	return a
}

type delayed[T any] struct {
	arrival[T]
	serial uint64
}

// late is a heap.Interface of such arrivals, the earliest first. They are few: it may allocate.
type late[T any] []delayed[T]

func (h late[T]) Len() int { return len(h) }

func (h late[T]) Less(i, j int) bool {
	return h[i].at < h[j].at || h[i].at == h[j].at && h[i].serial < h[j].serial
}

func (h late[T]) Swap(i, j int) { h[i], h[j] = h[j], h[i] }

func (h *late[T]) Push(x any) { *h = append(*h, x.(delayed[T])) }

func (h *late[T]) Pop() any {
	n := len(*h) - 1
	x := (*h)[n]
	*h = (*h)[:n]
	return x
}
