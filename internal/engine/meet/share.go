package meet

import (
	"cmp"
	"encoding/binary"
	"fmt"

	"github.com/openimpi/impi/internal/engine/construct"
)

// exchange exchanges bodies between the roots in step s; in the next step the roots send their
// members what they have received. bad is why the root has no body.
func (m *Meeting) exchange(s Step, body []byte, bad error) ([]byte, error) {
	if m.C.Rank() == m.Root {
		n := len(body)
		body, bad = m.remoteRoot.swap(s, body, cmp.Or(bad, m.bad))
		if bad = m.because(bad); bad == nil {
			m.TraceStep(s, func() string { return fmt.Sprintf("told the other root %d bytes and heard %d", n, len(body)) })
		}
	}
	return m.share(s+1, body, bad)
}

// gather is the first half of StepBarrier: the root learns whether all members of its side have the
// communicator. The roots exchange that in StepSync, and share tells the members.
func (m *Meeting) gather() {
	m.label(StepBarrier)
	t := &m.near
	hear := func(rank int) {
		text, err := t.RecvSized(rank, 4)
		if err == nil {
			_, err = outcome(text)
		}
		m.recordError(StepBarrier.fault(err))
	}
	var open []construct.Sending
	for _, child := range m.tree.Children(m.me) {
		hear(m.tree.Rank(child))
	}
	root := m.me == m.tree.Position(m.Root)
	switch parent, below := m.tree.Parent(m.me); {
	case below:
		open = t.IsendSized(m.tree.Rank(parent), status(m.bad, nil))
		if root {
			hear(m.tree.Rank(0))
		}
	case !root:
		open = t.IsendSized(m.Root, status(m.bad, nil))
	}
	m.recordError(StepBarrier.fault(t.WaitSends(open)))
}

func (m *Meeting) share(s Step, body []byte, bad error) ([]byte, error) {
	m.label(s)
	text, err := m.spread(status(bad, body)[construct.SizedHeader:])
	switch {
	case m.C.Rank() == m.Root && bad != nil:
		return nil, bad
	case m.C.Rank() == m.Root:
		return body, nil
	case err != nil:
		return nil, s.fault(err)
	}
	text, err = outcome(text)
	return text, s.fault(err)
}

// spread sends the root's text to all members: first to rank 0, and from there down the tree. A
// member that cannot be reached is noticed by the next one that waits for it.
func (m *Meeting) spread(text []byte) ([]byte, error) {
	t, root := &m.near, m.tree.Position(m.Root)
	send := func(position int) []construct.Sending {
		return t.IsendSized(m.tree.Rank(position), append(construct.NewSizedMessage(), text...))
	}
	var open []construct.Sending
	var err error
	parent, below := m.tree.Parent(m.me)
	switch {
	case m.me == root && below:
		open = send(0)
		_, err = t.RecvSized(m.tree.Rank(parent), maxSwap)
	case below:
		text, err = t.RecvSized(m.tree.Rank(parent), maxSwap)
	case m.me != root:
		text, err = t.RecvSized(m.Root, maxSwap)
	}
	switch {
	case m.me == root:
		m.recordError(err)
	case err != nil:
		text = binary.BigEndian.AppendUint32(nil, construct.FaultCode(err)) // passed on, so that the children do not wait
	}
	for _, child := range m.tree.Children(m.me) {
		open = append(open, send(child)...)
	}
	m.recordError(t.WaitSends(open))
	return text, err
}
