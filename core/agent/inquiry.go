package agent

import (
	"errors"
	"fmt"
	"slices"

	"github.com/openimpi/impi/core/wire"
)

// The nodes at both ends of a channel can ask each other, by packets that IMPI does not have (IMPI
// ch.3, Packet Protocol): a question of one packet, and an answer in parts, of which no more than a
// window is on its way. They go between packets of procs, and before those that wait, as PROTOACKs
// do; what they cost packets of procs is bounded by the window.

// ErrNoQuestion is wrapped by the errors of Ask.
var ErrNoQuestion = errors.New("the node at the other end of the channel cannot be asked")

// The reasons for which Ask refuses.
var (
	ErrAskUnknown = fmt.Errorf("%w: its site's release of impi does not know how", ErrNoQuestion)
	ErrAskClosed  = fmt.Errorf("%w: there is no channel to its host, or none any more", ErrNoQuestion)
	ErrAskBusy    = fmt.Errorf("%w: too many questions to it have no answer yet", ErrNoQuestion)
)

// maxAsked is how many questions in one direction of a channel may have no answer yet.
const maxAsked = 4

// maxQueued is how many bytes of inquiries may wait on a channel before no more questions are sent
// or taken. What is queued then is at most that and maxAsked answers of wire.AnswerWindow.
const maxQueued = wire.AnswerWindow

// Offsets in a header of the fields that only the packets of an inquiry and procs use (IMPI ch.3,
// Packet Format; docs/wire.md).
const (
	atSrcRequest = 56
	atMsgLen     = 72
)

// inquiry is what the nodes at both ends of a channel ask each other.
type inquiry struct {
	special []byte // so far of the packet that is being read, if IMPI does not have its type

	out   [][]byte // packets to send
	bytes int      // of out that were not sent yet
	mid   bool     // of the first packet a part has been sent
	lent  int      // packets at the front that the driver is writing now

	sentBytes, receivedBytes uint64 // so far, headers included

	last    uint64      // number of the last question of this host
	asked   []*question // of this host, without their answers yet
	answers []*answer   // to the other host, of which something has not left yet
}

// question is a question of this host.
type question struct {
	number uint64
	size   uint64 // of the answer, once its first part is here
	got    []byte // of the answer so far
	told   int    // how many of them the other host knows to be here
}

// answer is the answer to a question of the other host.
type answer struct {
	number uint64
	data   []byte // nil: not known yet
	sent   int    // bytes that were queued
	taken  int    // bytes that the other host says to have
	end    uint64 // inquiry.sentBytes when the last of it has left; 0: not all of it is queued
}

// waits returns how many bytes are to be sent.
func (t *inquiry) waits() int {
	if t == nil {
		return 0
	}
	return t.bytes
}

// begun appends to batch the rest of a packet that has been sent in part.
func (t *inquiry) begun(batch [][]byte) [][]byte {
	if t.lent = 0; t.mid {
		batch, t.lent = append(batch, t.out[0]), 1
	}
	return batch
}

// lend appends further packets to batch, as far as its capacity goes.
func (t *inquiry) lend(batch [][]byte) [][]byte {
	for ; t.lent < len(t.out) && len(batch) < cap(batch); t.lent++ {
		batch = append(batch, t.out[t.lent])
	}
	return batch
}

// sent removes up to n bytes of the first packets, and returns how many of the n bytes are left.
func (t *inquiry) sent(n, packets int) (left int) {
	for ; packets > 0 && n > 0; packets-- {
		k := min(n, len(t.out[0]))
		n -= k
		t.bytes -= k
		t.sentBytes += uint64(k)
		if t.out[0] = t.out[0][k:]; len(t.out[0]) > 0 {
			t.mid = true
			return 0
		}
		t.mid = false
		t.out[0] = nil
		t.out = t.out[1:]
		t.answers = slices.DeleteFunc(t.answers, func(x *answer) bool { return x.end > 0 && x.end <= t.sentBytes })
	}
	return n
}

// sentBegun is sent for the packet of which a part had been sent when Output was called. It also
// returns how many others Output has returned.
func (t *inquiry) sentBegun(n int) (left, others int) {
	others, t.lent = t.lent, 0
	if !t.mid || others == 0 {
		return n, others
	}
	return t.sent(n, 1), others - 1
}

func (t *inquiry) question(number uint64) *question {
	if i := slices.IndexFunc(t.asked, func(q *question) bool { return q.number == number }); i >= 0 {
		return t.asked[i]
	}
	return nil
}

func (t *inquiry) answer(number uint64) *answer {
	if i := slices.IndexFunc(t.answers, func(x *answer) bool { return x.number == number }); i >= 0 {
		return t.answers[i]
	}
	return nil
}

func (p *endpoint) inquiries() *inquiry {
	if p.inquiry == nil {
		p.inquiry = new(inquiry)
	}
	return p.inquiry
}

// Ask asks the node of host h, over the channel to it. The answer comes with the event Answered,
// unless Forget is called before. The errors wrap ErrNoQuestion.
func Ask(a *Agent, h wire.HostRank, data []byte) (number uint64, err error) {
	if len(data) > wire.MaxQuestion {
		return 0, fmt.Errorf("%w: a question of %d bytes; at most %d", ErrNoQuestion, len(data), wire.MaxQuestion)
	}
	if err := CanAsk(a, h); err != nil {
		return 0, err
	}
	p := a.endpoints[h]
	t := p.inquiries()
	t.last++
	t.asked = append(t.asked, &question{number: t.last})
	say(a, p, wire.PkAsk, t.last, 0, data)
	return t.last, nil
}

// CanAsk returns nil if the node of host h can be asked now, or else the error of Ask. None can be
// once either host has sent its FINI (IMPI ch.3, Finalization).
func CanAsk(a *Agent, h wire.HostRank) error {
	if h < 0 || int(h) >= len(a.hosts) || h == a.self {
		return fmt.Errorf("%w: host %d of %d", ErrNoQuestion, h, len(a.hosts))
	}
	p := a.endpoints[h]
	switch {
	case !a.hosts[h].Asks:
		return ErrAskUnknown
	case p == nil || p.state != open || p.ended || p.done || p.err != nil:
		return ErrAskClosed
	case p.inquiry != nil && (len(p.inquiry.asked) >= maxAsked || p.inquiry.bytes >= maxQueued):
		return ErrAskBusy
	}
	return nil
}

// Forget makes the agent ignore what still comes of the answer to a question.
func Forget(a *Agent, h wire.HostRank, number uint64) {
	if p := a.endpoints[h]; p != nil && p.inquiry != nil {
		p.inquiry.forget(number)
	}
}

func (t *inquiry) forget(number uint64) {
	t.asked = slices.DeleteFunc(t.asked, func(q *question) bool { return q.number == number })
}

// Reply answers a question of the node of host h, which the event Asked has brought. An empty
// answer means that there is none. One that the other host does not take is kept until Withdraw is
// called.
func Reply(a *Agent, h wire.HostRank, number uint64, data []byte) {
	p := a.endpoints[h]
	if p == nil || p.inquiry == nil {
		return
	}
	x := p.inquiry.answer(number)
	if x == nil || x.data != nil || x.end > 0 {
		return
	}
	if len(data) == 0 || len(data) > wire.MaxAnswer {
		refuse(a, p, number)
		return
	}
	x.data = data
	answerOn(a, p, x)
}

// Taken returns how many bytes of the answer to a question the node of host h has taken, and
// whether some of it waits until it has taken more.
func Taken(a *Agent, h wire.HostRank, number uint64) (bytes int, waits bool) {
	if p := a.endpoints[h]; p != nil && p.inquiry != nil {
		if x := p.inquiry.answer(number); x != nil && x.end == 0 {
			return x.taken, true
		}
	}
	return 0, false
}

// Withdraw drops what is not queued yet of the answer to a question of the node of host h, which is
// told that there is none.
func Withdraw(a *Agent, h wire.HostRank, number uint64) {
	if _, waits := Taken(a, h, number); waits {
		refuse(a, a.endpoints[h], number)
	}
}

func (t *inquiry) withdraw(number uint64) {
	t.answers = slices.DeleteFunc(t.answers, func(x *answer) bool { return x.number == number })
}

// InquiryBytes returns how many bytes the nodes at both ends of the channel to host h have sent
// each other so far, which channels count like packets of procs.
func InquiryBytes(a *Agent, h wire.HostRank) (sent, received uint64) {
	p := a.endpoints[h]
	if p == nil || p.inquiry == nil {
		return 0, 0
	}
	received = p.inquiry.receivedBytes
	if in := &p.in; in.size > 0 && isInquiry(in.kind) {
		received += uint64(in.size - in.left)
	}
	return p.inquiry.sentBytes, received
}

func isInquiry(k wire.PacketType) bool { return k >= wire.PkAsk && k <= wire.PkTold }
