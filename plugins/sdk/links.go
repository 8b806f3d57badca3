package sdk

import (
	"context"
	"sync"

	"golang.org/x/sys/unix"

	"github.com/openimpi/impi/plugins/sdk/link"
	"github.com/openimpi/impi/plugins/sdk/proto"
)

// held is a link that waits for OpenDataPlane.
type held struct {
	link     link.Link
	listener uint64 // that accepted it; 0: dialled
	piped    bool   // it was opened, in mode grpc, and waits for Pipe
}

// links are the links that wait until the node opens them.
type links struct {
	room     chan struct{} // has an element per link
	accepted chan struct{} // has an element per link that was accepted
	events   *events

	mu   sync.Mutex
	byID map[uint64]*held
}

func newLinks(e *events) *links {
	return &links{
		room: make(chan struct{}, proto.MaxWaiting), accepted: make(chan struct{}, maxAccepted()),
		events: e, byID: make(map[uint64]*held),
	}
}

// maxAccepted is how many links that peers have made may wait. It is less than the limit of
// all links, so that dialling is always possible, and at most a quarter of the file
// descriptors of the process.
func maxAccepted() int {
	most := proto.MaxWaiting * 3 / 4
	var files unix.Rlimit
	if unix.Getrlimit(unix.RLIMIT_NOFILE, &files) == nil {
		most = int(min(uint64(most), max(8, files.Cur/4)))
	}
	return most
}

// holdDialled keeps a link until it is opened. It returns false if there is no room for it.
func (t *links) holdDialled(id uint64, l link.Link) bool {
	select {
	case t.room <- struct{}{}:
		t.add(id, &held{link: l})
		return true
	default:
		return false
	}
}

// holdAccepted is holdDialled for a link that a listener has accepted. It waits for room,
// and returns false if ctx ends before.
func (t *links) holdAccepted(ctx context.Context, id uint64, l link.Link, listener uint64) bool {
	if !enter(ctx, t.accepted) {
		return false
	}
	if !enter(ctx, t.room) {
		<-t.accepted
		return false
	}
	t.add(id, &held{link: l, listener: listener})
	return true
}

// enter waits for a free place in room and takes it. It returns false if ctx ends before.
func enter(ctx context.Context, room chan struct{}) bool {
	select {
	case room <- struct{}{}:
		return true
	case <-ctx.Done():
		return false
	}
}

func (t *links) add(id uint64, h *held) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.byID[id] = h
}

// get returns a link that waits, or nil, and whether it waits for Pipe.
func (t *links) get(id uint64) (h *held, piped bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	h = t.byID[id]
	return h, h != nil && h.piped
}

// pipe makes a link, which still takes its place, wait for Pipe. It returns false if the link was
// closed meanwhile.
func (t *links) pipe(id uint64) bool {
	t.settle(id)
	t.mu.Lock()
	defer t.mu.Unlock()
	h := t.byID[id]
	if h != nil {
		h.piped = true
	}
	return h != nil
}

// release takes the link of that number out of the table and returns it, or nil.
func (t *links) release(id uint64) *held {
	return t.releaseIf(id, func(*held) bool { return true })
}

func (t *links) releaseIf(id uint64, wanted func(*held) bool) *held {
	t.mu.Lock()
	h := t.byID[id]
	if h == nil || !wanted(h) {
		t.mu.Unlock()
		return nil
	}
	delete(t.byID, id)
	t.mu.Unlock()
	<-t.room
	if h.listener != 0 {
		<-t.accepted
	}
	t.settle(id)
	return h
}

// settle removes the event that announced a link.
func (t *links) settle(id uint64) {
	t.events.settle(func(e *proto.Event) bool { return e.GetAccepted().GetLinkId() == id })
}

func (t *links) close(id uint64) {
	if h := t.release(id); h != nil {
		h.link.Close()
	}
}

// closeFrom closes the links of a listener that were not opened. One that was opened in mode grpc
// is the node's, although its Pipe has not come yet.
func (t *links) closeFrom(listener uint64) {
	t.mu.Lock()
	var ids []uint64
	for id, h := range t.byID {
		if h.listener == listener {
			ids = append(ids, id)
		}
	}
	t.mu.Unlock()
	for _, id := range ids {
		if h := t.releaseIf(id, func(h *held) bool { return !h.piped }); h != nil {
			h.link.Close()
		}
	}
}

func (t *links) closeAll() {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, h := range t.byID {
		h.link.Close()
	}
}

func (t *links) count() uint32 {
	t.mu.Lock()
	defer t.mu.Unlock()
	return uint32(len(t.byID))
}
