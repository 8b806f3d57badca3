package node

import (
	"time"

	"github.com/openimpi/impi/core/mpierr"
	"github.com/openimpi/impi/internal/wireup"
)

// expires closes a port after its lifetime, if it has one. The caller has mu.
func (m *meetings) expires(c *callPort, lifetime time.Duration) {
	if lifetime > 0 {
		c.timer = time.AfterFunc(lifetime, func() { m.expire(c) })
	}
}

// expire refuses those who wait at a port whose time is over, and ends it.
func (m *meetings) expire(c *callPort) {
	m.mu.Lock()
	there := m.ports[c.key.World()] == c
	if there {
		delete(m.ports, c.key.World())
	}
	m.mu.Unlock()
	if !there {
		return
	}
	for _, request := range c.hangUp() {
		m.refuse(c.owner, wireup.KindCaller, request, mpierr.Port, "the lifetime of the port is over")
	}
}
