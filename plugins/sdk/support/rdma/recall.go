package rdma

import (
	"time"

	"golang.org/x/sys/unix"

	"github.com/openimpi/impi/plugins/sdk/link"
)

// patience is how long Recall waits for a read before it ends the link, so that the plugin ends the
// read.
const patience = 10 * time.Second

// Recall returns when the plugin does not write any more to memory that Recv was given: when its read
// is complete, or has ended with the link.
func (l *Link) Recall() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if p := l.beingRead(); p != nil {
		l.awaitRead(p.direct)
		p.direct, p.asked = nil, p.at
	}
}

// beingRead returns the message that the plugin reads into the receiver's memory, or nil.
func (s *receiving) beingRead() *piece {
	if len(s.queue) == 0 || s.queue[0].direct == nil {
		return nil
	}
	return &s.queue[0]
}

// awaitRead waits until a read has ended. If that takes too long it ends the link: the plugin closes
// its socket only when nothing is read any more.
func (l *Link) awaitRead(r *read) {
	begun := time.Now()
	for !r.done && !l.dead {
		if l.poll(); r.done {
			return
		}
		if l.err != nil || l.closed.Load() || time.Since(begun) > l.patience {
			l.fail(errRecalled)
			l.hangUp()
		}
		l.in.b.readerSleeps.Swap(1)
		if !l.in.waits() || l.err != nil {
			l.sleep()
		}
		l.in.b.readerSleeps.Store(0)
	}
}

// sleep waits for a byte on the socket, but not for long.
func (l *Link) sleep() {
	fds := []unix.PollFd{{Fd: int32(l.bell.Handle()), Events: unix.POLLIN}}
	_, _ = unix.Poll(fds, 100) // whatever it says, the socket is read
	l.dead = l.bell.Drain()
}

// hangUp tells the plugin that the proc has closed the link.
func (l *Link) hangUp() {
	l.out.b.ended.Swap(1)
	l.in.b.gone.Swap(1)
	l.channelMu.Lock()
	defer l.channelMu.Unlock()
	if l.channel >= 0 {
		_ = unix.Close(l.channel)
	}
	l.channel = -1
}

// awaitLoans waits until the plugin has ended, so that nobody reads what was lent. A plugin that takes
// too long sends, of messages that are lost, what their memory has then.
func awaitLoans(l *Link) {
	for begun := time.Now(); l.owing > 0 && !l.dead && time.Since(begun) < l.patience; {
		l.poll()
		l.in.b.readerSleeps.Swap(1)
		if l.owing > 0 && (!l.in.waits() || l.err != nil) {
			l.sleep()
		}
		l.in.b.readerSleeps.Store(0)
	}
}

// Close ends both directions, and waits until the plugin does not write any more to memory that Recv
// was given, and does not read any that was lent. The plugin still sends what was in the bounce memory;
// what is lent is lost. Close may be called while other calls are in progress.
func (l *Link) Close() error {
	if l.closed.Swap(true) {
		return nil
	}
	l.hangUp()
	l.mu.Lock()
	defer l.mu.Unlock()
	if p := l.beingRead(); p != nil {
		l.awaitRead(p.direct)
	}
	awaitLoans(l)
	for _, r := range l.reads {
		l.regions.release(r.into)
	}
	for _, x := range l.loans {
		l.regions.release(x.from)
	}
	l.reads, l.loans, l.queue = nil, nil, nil
	l.bell.Close()
	if l.file >= 0 {
		_ = unix.Close(l.file)
	}
	l.file = -1
	return nil
}

var _ link.Recaller = (*Link)(nil)
