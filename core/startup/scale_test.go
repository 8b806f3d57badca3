package startup

import (
	"fmt"
	"testing"

	"github.com/openimpi/impi/core/wire"
	"github.com/openimpi/impi/internal/allocs"
)

// large is 32 clients with 64 procs on each of their hosts, about n procs in
// all, which have cards if there are any bytes of them.
func large(n, card int) []ClientConfig {
	var cfgs []ClientConfig
	for _, r := range ranks(wire.MaxClients) {
		each := n / wire.MaxClients
		var hosts []int
		for ; each > 0; each -= 64 {
			hosts = append(hosts, min(each, 64))
		}
		c := testClient(r, hosts...)
		c.Foreign = card == 0
		for h := range c.Hosts {
			c.Hosts[h].Address = wire.HostID{12: 10, 13: byte(r), 14: byte(h >> 8), 15: byte(h)}
			for i := range c.Hosts[h].Procs {
				p := &c.Hosts[h].Procs[i]
				p.ID.Host, p.Card = c.Hosts[h].Address, make([]byte, card)
			}
		}
		cfgs = append(cfgs, c)
	}
	return cfgs
}

// startLarge brings a job up and gives the bytes that the server has sent.
func startLarge(tb testing.TB, cfgs []ClientConfig) (sent int) {
	w := newWhole(tb, ServerConfig{}, cfgs...)
	w.chop = func(n int) int { return min(n, 64<<10) } // as sockets do
	w.run()
	for i, c := range w.clients {
		if _, ok := c.Job(); !ok {
			tb.Fatalf("client %d: %v", i, c.Err())
		}
		sent += len(w.sentDn[i])
	}
	return sent
}

// TestLargeJobsCostTheirSize: twice the procs are about twice the memory, with
// cards of a size that jobs have.
func TestLargeJobsCostTheirSize(t *testing.T) {
	for _, card := range []int{0, 200} {
		cost := func(n int) uint64 {
			cfgs := large(n, card)
			return allocs.BytesExact(func() { startLarge(t, cfgs) })
		}
		small, large := cost(2048), cost(16384)
		t.Logf("cards of %d bytes: %d bytes for 2,048 procs, %d for 16,384", card, small, large)
		if large > 12*small { // 8, and a little more for buffers that have grown
			t.Errorf("cards of %d bytes: 8 times the procs take %d times the memory", card, large/small)
		}
	}
}

// BenchmarkLargeJob is startup of all clients and the server together.
func BenchmarkLargeJob(b *testing.B) {
	for _, card := range []int{0, 200} {
		for _, n := range []int{3_200, 100_000} {
			b.Run(fmt.Sprintf("procs=%d/card=%d", n, card), func(b *testing.B) {
				cfgs := large(n, card)
				sent := 0
				for b.Loop() {
					sent = startLarge(b, cfgs)
				}
				b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*n), "ns/proc")
				b.ReportMetric(float64(sent)/wire.MaxClients/1e6, "MB/client")
			})
		}
	}
}
