package nativelaunch

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"time"

	"github.com/openimpi/impi/core/ending"
	"github.com/openimpi/impi/internal/hostlist"
	"github.com/openimpi/impi/internal/site/client"
)

type agreed struct {
	Socket string `json:"socket,omitempty"` // empty: not known yet at the head; ask again
	Shim   string `json:"shim,omitempty"`
	MPI    string `json:"mpi,omitempty"`
}

// question is what a host sends the head: a request for orders or, with Ready set, that it is ready.
type question struct {
	Host  int  `json:"host"`
	Ready bool `json:"ready,omitempty"`
}

// turn is how long the head lets a host wait for one answer. The host asks again.
const turn = 20 * time.Second

// meeting is where the nodes of all hosts find out, at the head, that all are ready for the procs.
type meeting struct {
	mu    sync.Mutex
	known chan struct{} // closed when agreed is set
	agreed
	ready map[int]bool  // other hosts that are ready
	all   chan struct{} // closed when all hosts are ready
	hosts int
}

// open makes the head answer; it must be called before other hosts can ask.
func (m *meeting) open(o *client.Cluster) {
	m.known, m.all, m.ready, m.hosts = make(chan struct{}), make(chan struct{}), make(map[int]bool), len(o.Hosts)
	if o.IsHead() {
		o.AnswerBy(client.Starting, m.answer)
	}
}

func (m *meeting) answer(ctx context.Context, b []byte) []byte {
	var q question
	if err := json.Unmarshal(b, &q); err != nil || q.Host < 1 || q.Host >= m.hosts {
		return []byte(`"malformed"`)
	}
	if q.Ready {
		m.mu.Lock()
		defer m.mu.Unlock()
		if m.ready[q.Host] = true; len(m.ready) == m.hosts-1 {
			select {
			case <-m.all:
			default:
				close(m.all)
			}
		}
		return []byte("{}")
	}
	limit := time.NewTimer(turn)
	defer limit.Stop()
	select {
	case <-m.known:
		m.mu.Lock()
		defer m.mu.Unlock()
		b, _ = json.Marshal(m.agreed) // strings
		return b
	case <-limit.C:
	case <-ctx.Done():
	}
	return []byte("{}")
}

func (m *meeting) ask(ctx context.Context, o *client.Cluster) (a agreed, err error) {
	for a.Socket == "" && err == nil {
		err = m.tell(ctx, o, question{Host: o.Self}, &a)
	}
	return a, err
}

func (m *meeting) tell(ctx context.Context, o *client.Cluster, q question, to *agreed) error {
	b, err := json.Marshal(q)
	if err == nil {
		b, err = o.Ask(ctx, client.Starting, 0, b)
	}
	if err != nil {
		return o.Failed(ctx, err)
	}
	if err := json.Unmarshal(b, to); err != nil {
		return fmt.Errorf("the head says %.100q: %w", b, err)
	}
	return nil
}

// together announces that this host is ready. At the head it waits until all are.
func (m *meeting) together(ctx context.Context, o *client.Cluster, a agreed) error {
	switch {
	case o == nil:
		return nil
	case !o.IsHead():
		return m.tell(ctx, o, question{Host: o.Self, Ready: true}, &agreed{})
	}
	m.mu.Lock()
	m.agreed = a
	m.mu.Unlock()
	close(m.known)
	if m.hosts == 1 {
		return nil
	}
	select {
	case <-m.all:
		return nil
	case <-ctx.Done():
		return ending.TimedOut("site %s: the start took too long, and %s not ready for procs", o.Routes.Site.Name, m.late(o))
	}
}

func (m *meeting) late(o *client.Cluster) string {
	m.mu.Lock()
	defer m.mu.Unlock()
	var names []string
	for i := 1; i < m.hosts; i++ {
		if !m.ready[i] {
			names = append(names, o.Address(i))
		}
	}
	if len(names) == 1 {
		return "host " + names[0] + " is"
	}
	return "hosts " + hostlist.Compress(names) + " are"
}
