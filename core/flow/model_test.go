package flow

import (
	"fmt"
	"testing"
)

// The kinds of packet on a wire.
const (
	counted = 'd'
	ack     = 'a'
)

// world is the whole state of two procs that send packets to each other: their real
// windows, and wires that keep the order.
type world struct {
	windows [2]Window
	left    [2]int    // packets that each still wants to send
	wires   [2]string // what is on its way to each
	got     [2]int    // packets that each has received
	acks    [2]int    // PROTOACKs that each has sent
	heard   [2]int    // and received
	owes    [2]int    // PROTOACKs that each owes but has not sent
}

// move is something that can happen: one end sends a packet, sends a PROTOACK that
// it owes, or takes the next packet from its wire.
type move struct {
	end  int
	what string
}

// TestModel explores all interleavings of two windows under all pairs of small
// limits: ten packets one way, then eight each way. In each state the counters
// must be exact and no more than hiwater packets out; a state without a next one
// must be the end of everything.
func TestModel(t *testing.T) {
	states, ends := 0, 0
	for hiwater := uint32(1); hiwater <= 4; hiwater++ {
		for ackmark := uint32(1); ackmark <= hiwater; ackmark++ {
			for _, packets := range [][2]int{{10, 0}, {8, 8}} {
				e := explorer{t: t, limits: Limits{ackmark, hiwater}, packets: packets, seen: make(map[world]bool)}
				e.visit(world{windows: [2]Window{New(e.limits), New(e.limits)}, left: packets})
				if e.ends != 1 {
					t.Errorf("%+v, %v packets: %d ways to end", e.limits, packets, e.ends)
				}
				states += len(e.seen)
				ends += e.ends
			}
		}
	}
	t.Logf("%d states, %d of them final", states, ends)
}

type explorer struct {
	t       *testing.T
	limits  Limits
	packets [2]int
	seen    map[world]bool
	path    []move
	ends    int
}

// visit explores what follows a state, depth first.
func (e *explorer) visit(w world) {
	e.t.Helper()
	if e.seen[w] {
		return
	}
	e.seen[w] = true
	if err := e.check(&w); err != nil {
		e.t.Fatalf("%+v: %v\nafter %v: %+v", e.limits, err, e.path, w)
	}
	moves := w.moves()
	for _, m := range moves {
		e.path = append(e.path, m)
		e.visit(w.after(m))
		e.path = e.path[:len(e.path)-1]
	}
	if len(moves) > 0 {
		return
	}
	e.ends++
	if w.left != [2]int{} || w.got != [2]int{e.packets[1], e.packets[0]} {
		e.t.Fatalf("%+v: stuck after %v: %+v", e.limits, e.path, w)
	}
}

func (w *world) moves() (ms []move) {
	for end := range w.windows {
		if w.left[end] > 0 && w.windows[end].Open() {
			ms = append(ms, move{end, "send"})
		}
		if w.owes[end] > 0 {
			ms = append(ms, move{end, "ack"})
		}
		if w.wires[end] != "" {
			ms = append(ms, move{end, "take"})
		}
	}
	return ms
}

// after is the state that a move leads to.
func (w world) after(m move) world {
	me, other := m.end, 1-m.end
	switch {
	case m.what == "send":
		w.windows[me].Sent()
		w.left[me]--
		w.wires[other] += string(counted)
	case m.what == "ack":
		w.owes[me]--
		w.acks[me]++
		w.wires[other] += string(ack)
	default:
		packet := w.wires[me][0]
		w.wires[me] = w.wires[me][1:]
		if packet == ack {
			w.windows[me].Acked()
			w.heard[me]++
			break
		}
		w.got[me]++
		if w.windows[me].Received() {
			w.owes[me]++
		}
	}
	return w
}

// check compares the windows with what the model knows.
func (e *explorer) check(w *world) error {
	mark, high := int(e.limits.AckMark), int(e.limits.HiWater)
	for end := range w.windows {
		window, sent := &w.windows[end], e.packets[end]-w.left[end]
		switch {
		case int(window.Unacknowledged()) != sent-mark*w.heard[end]:
			return fmt.Errorf("end %d counts %d unacknowledged packets, but sent %d and has %d acks", end, window.Unacknowledged(), sent, w.heard[end])
		case sent-mark*w.heard[end] > high || sent-w.got[1-end] > high:
			return fmt.Errorf("end %d has %d packets out, %d of them are acknowledged", end, sent, mark*w.heard[end])
		case w.acks[end]+w.owes[end] != w.got[end]/mark:
			return fmt.Errorf("end %d has received %d packets and acknowledged %d times", end, w.got[end], w.acks[end]+w.owes[end])
		case int(window.ReceivedSinceAck()) != w.got[end]%mark:
			return fmt.Errorf("end %d has received %d packets and counts %d without ack", end, w.got[end], window.ReceivedSinceAck())
		case w.heard[end] > w.acks[1-end]:
			return fmt.Errorf("end %d has more acks than were sent", end)
		}
	}
	return nil
}
