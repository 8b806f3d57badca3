package mpi

import (
	"testing"
	"time"

	"github.com/openimpi/impi/core/message"
	"github.com/openimpi/impi/core/resume"
	"github.com/openimpi/impi/internal/lasting"
	"github.com/openimpi/impi/internal/wireup"
)

// A driver that is done with a lasting link, of which the poll set says nothing,
// has made progress: Finalize may wait for just that.
func TestLeavingALastingLinkIsProgress(t *testing.T) {
	layout{procs: 1}.run(t, func(t *testing.T, c *Comm) error {
		p := c.p
		p.lock()
		defer p.unlock()
		q := &port{id: message.LinkID(len(p.ports)), peer: 0}
		k := &keeper{p: p, q: q, terms: wireup.Lasting{Limit: time.Hour}}
		k.Link = lasting.New(lasting.Config{Session: resume.Session{1}})
		k.apart, k.ended, k.leaving, k.since = true, true, true, time.Now().Add(-2*farewell)
		p.ports = append(p.ports, nil) // its user has closed it
		p.nursery.keepers = []*keeper{k}
		if !p.takeDeliveries() {
			t.Error("no progress")
		}
		if len(p.nursery.keepers) != 0 {
			t.Error("the link is still looked after")
		}
		if p.takeDeliveries() {
			t.Error("progress for nothing")
		}
		return nil
	})
}
