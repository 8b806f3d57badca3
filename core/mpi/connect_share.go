package mpi

import (
	"encoding/binary"
	"fmt"
)

// exchange has the roots tell each other something, and then all members of their
// sides, which is the next step. bad is why the root has nothing to tell.
func (m *meeting) exchange(s step, body []byte, bad error) ([]byte, error) {
	if m.c.Rank() == m.root {
		n := len(body)
		body, bad = m.far.swap(s, body, errorsFirst(bad, m.bad))
		if bad = m.because(bad); bad == nil {
			m.took(s, func() string { return fmt.Sprintf("told the other root %d bytes and heard %d", n, len(body)) })
		}
	}
	return m.share(s+1, body, bad)
}

// gather is the first half of stepBarrier: the root hears from all members whether they
// have the communicator. That all have it is what it hears in stepSync from the other
// root, and what share then tells.
func (m *meeting) gather() {
	m.label(stepBarrier)
	t := &m.near
	hear := func(rank int) {
		text, err := t.read(rank, 4)
		if err == nil {
			_, err = outcome(text)
		}
		m.ails(stepBarrier.fault(err))
	}
	var open []sending
	for _, child := range m.tree.Children(m.me) {
		hear(m.tree.Rank(child))
	}
	root := m.me == m.tree.Position(m.root)
	switch parent, below := m.tree.Parent(m.me); {
	case below:
		open = t.post(m.tree.Rank(parent), status(m.bad, nil))
		if root {
			hear(m.tree.Rank(0))
		}
	case !root:
		open = t.post(m.root, status(m.bad, nil))
	}
	m.ails(stepBarrier.fault(t.sent(open)))
}

// share tells all members what the root has, or why it has nothing.
func (m *meeting) share(s step, body []byte, bad error) ([]byte, error) {
	m.label(s)
	text, err := m.spread(status(bad, body)[lengthLen:])
	switch {
	case m.c.Rank() == m.root && bad != nil:
		return nil, bad
	case m.c.Rank() == m.root:
		return body, nil
	case err != nil:
		return nil, s.fault(err)
	}
	text, err = outcome(text)
	return text, s.fault(err)
}

// spread gets what the root says to all members: to rank 0 first, and then down the
// tree. Who cannot be told is found out by who waits for it next.
func (m *meeting) spread(text []byte) ([]byte, error) {
	t, root := &m.near, m.tree.Position(m.root)
	send := func(position int) []sending { return t.post(m.tree.Rank(position), append(letter(), text...)) }
	var open []sending
	var err error
	parent, below := m.tree.Parent(m.me)
	switch {
	case m.me == root && below:
		open = send(0)
		_, err = t.read(m.tree.Rank(parent), maxSwap)
	case below:
		text, err = t.read(m.tree.Rank(parent), maxSwap)
	case m.me != root:
		text, err = t.read(m.root, maxSwap)
	}
	switch {
	case m.me == root:
		m.ails(err)
	case err != nil:
		text = binary.BigEndian.AppendUint32(nil, faultCode(err)) // so that those below do not wait
	}
	for _, child := range m.tree.Children(m.me) {
		open = append(open, send(child)...)
	}
	m.ails(t.sent(open))
	return text, err
}
