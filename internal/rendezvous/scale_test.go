package rendezvous

import (
	"errors"
	"io"
	"net"
	"testing"

	"github.com/openimpi/impi/core/startup"
	"github.com/openimpi/impi/core/wire"
	"github.com/openimpi/impi/internal/allocs"
)

// configsOf returns the configurations of clients with each procs, which are not shown to be
// ours.
func configsOf(clients, each int) (cfgs []startup.ClientConfig) {
	for r := range clients {
		c := client(wire.ClientRank(r))
		c.Foreign = true
		h := &c.Hosts[0]
		h.Procs = make([]startup.ProcConfig, each)
		for i := range h.Procs {
			h.Procs[i].ID = wire.Proc{Host: h.Address, PID: int64(i + 1)}
		}
		cfgs = append(cfgs, c)
	}
	return cfgs
}

// TestManyProcs: 32 clients over TCP. What server and clients take together grows
// with the procs that each client has to know, and is a few times those: twice the
// procs are about twice the memory.
func TestManyProcs(t *testing.T) {
	cost := func(each int) uint64 {
		cfgs := configsOf(wire.MaxClients, each)
		return allocs.BytesExact(func() {
			srv := serve(t, startup.ServerConfig{Clients: len(cfgs)})
			results := join(t.Context(), srv.addr, cfgs...)
			for i, r := range results {
				if r.err != nil {
					t.Fatalf("client %d: %v", i, r.err)
				}
				if last := r.j.Procs.At(wire.WorldRank(r.j.Procs.Len() - 1)); r.j.Procs.Len() != 32*each || last.Client != 31 || last.ID.PID != int64(each) {
					t.Errorf("client %d: %d procs, the last is %+v", i, r.j.Procs.Len(), last)
				}
			}
			for _, r := range results {
				_ = r.s.Finish()
			}
			if err := <-srv.result; err != nil {
				t.Error(err)
			}
		})
	}
	small, large := cost(256), cost(2048)
	t.Logf("%d bytes for 8,192 procs, %d for 65,536", small, large)
	if large > 12*small {
		t.Errorf("8 times the procs take %d times the memory", large/small)
	}
	// A client's job is 56 bytes for each proc; answers and buffers are as much again.
	if each := large / 32 / 65536; each > 200 {
		t.Errorf("each client takes %d bytes for each proc", each)
	}
}

// readerless is a client that has sent everything and reads nothing.
func readerless(t *testing.T, addr string, cfg startup.ClientConfig) net.Conn {
	t.Helper()
	nc := dialRaw(t, addr)
	t.Cleanup(func() { nc.Close() })
	if err := nc.(*net.TCPConn).SetReadBuffer(4 << 10); err != nil {
		t.Fatal(err)
	}
	alone := serve(t, startup.ServerConfig{Clients: 1}) // what it says does not depend on the others
	said := &tapped{}
	cfg.Rank = 0
	s, _, err := Join(t.Context(), Settings{Server: alone.addr, Dial: said.dial}, cfg)
	if err != nil {
		t.Fatal(err)
	}
	head := len(wire.AppendIMPI(wire.AppendAuth(nil, wire.AuthNone), 0))
	all := append(wire.AppendIMPI(wire.AppendAuth(nil, wire.AuthNone), 2), said.out[head:]...)
	if err := errors.Join(s.Finish(), <-alone.result); err != nil {
		t.Fatal(err)
	}
	go func() { _, _ = nc.Write(all) }()
	return nc
}

// TestClientThatNeverReads: megabytes wait for it, and the other clients complete startup.
func TestClientThatNeverReads(t *testing.T) {
	cfgs := configsOf(3, 1<<17) // answers of 9 MiB, more than a socket holds
	srv := serve(t, startup.ServerConfig{Clients: 3})
	nc := readerless(t, srv.addr, cfgs[2])
	results := join(t.Context(), srv.addr, cfgs[:2]...)
	for i, r := range results {
		if r.err != nil {
			t.Fatalf("client %d: %v", i, r.err)
		}
		if r.j.Procs.Len() != 3<<17 {
			t.Errorf("client %d knows %d procs", i, r.j.Procs.Len())
		}
	}
	nc.Close() // in the middle of what is written to it
	for i, r := range results {
		<-r.s.Lost()
		wantError(t, "client "+string(rune('0'+i)), r.s.Err(), startup.ErrFailed, "client 2 (127.0.0.1:")
	}
	wantError(t, "server", <-srv.result, startup.ErrLost, "client 2 (127.0.0.1:")
}

// TestMoreProcsThanThereAre: a client that announces 2^31 procs makes nobody allocate
// memory for them; all are told which client it was.
func TestMoreProcsThanThereAre(t *testing.T) {
	srv := serve(t, startup.ServerConfig{Clients: 2})
	nc := dialRaw(t, srv.addr)
	b := wire.AppendIMPI(wire.AppendAuth(nil, wire.AuthNone), 1)
	for _, c := range []struct {
		l wire.Label
		v []byte
	}{
		{wire.LabelVersion, make([]byte, 8)}, {wire.LabelNHosts, []byte{0, 0, 0, 1}}, {wire.LabelNProcs, []byte{0x80, 0, 0, 0}},
	} {
		b = wire.AppendColl(b, c.l, c.v)
	}
	b = wire.AppendCommand(b, wire.CmdColl, startup.MaxSubmission) // and never comes
	if n := allocs.Bytes(func() {
		if _, err := nc.Write(b); err != nil {
			t.Fatal(err)
		}
		r := join(t.Context(), srv.addr, client(0))
		wantError(t, "client 0", r[0].err, startup.ErrValue, "C_NPROCS: client 1: startup value is wrong: 2147483648 is not in 1 to 1048576")
		wantError(t, "server", <-srv.result, startup.ErrFailed, "2147483648 is not in 1 to 1048576")
	}); n > allocs.MaxError+4<<20 {
		t.Errorf("%d bytes were taken", n)
	}
	_, _ = io.Copy(io.Discard, nc)
	nc.Close()
}
