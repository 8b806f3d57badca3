package inspect

import (
	"sync"
	"time"
)

// place is a host of a site, or with anyHost the site.
type place struct{ client, host int }

// anyHost stands for the hosts of a site, one of which answers for all.
const anyHost = -1

// mute records since when questions to hosts and sites have not been answered.
type mute struct {
	mu sync.Mutex
	at map[place]time.Time
}

func (m *mute) answered(x place) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.at, x)
}

// since records that a question about x that was asked at the time asked is not answered, and
// returns when the first unanswered one was asked.
func (m *mute) since(x place, asked time.Time) time.Time {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.at == nil {
		m.at = make(map[place]time.Time)
	}
	if at, known := m.at[x]; known && at.Before(asked) {
		return at
	}
	m.at[x] = asked
	return asked
}
