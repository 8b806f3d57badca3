package node

import (
	"context"
	"encoding/binary"
	"fmt"
	"net"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/openimpi/impi/core/ending"
	"github.com/openimpi/impi/core/startup"
	"github.com/openimpi/impi/core/wire"
	"github.com/openimpi/impi/internal/rendezvous"
)

// foreigner joins a job of two as client 1, with one host and one proc, as an
// implementation does that has never heard of us. It gives the job and the way out.
func foreigner(ctx context.Context, server netip.AddrPort) (*rendezvous.Client, *startup.Job, error) {
	host := wire.HostIDFrom(netip.MustParseAddr("127.0.0.3"), wire.IPv4Mapped)
	return rendezvous.Join(ctx, rendezvous.Settings{Server: server.String()}, startup.ClientConfig{
		Rank: 1, Auth: startup.Auth{HasKey: true, Key: 42}, Params: startup.DefaultParams(), Foreign: true,
		Hosts: []startup.HostConfig{{Address: host, Port: 9, Procs: []startup.ProcConfig{{ID: wire.Proc{Host: host, PID: 7}}}}},
	})
}

func TestHostThatDoesNotConnect(t *testing.T) {
	var heard error
	f, _ := endsInTime(t, 3*time.Second, func(limit time.Duration) *ending.Failure {
		job := testJob("block", 1, 1)
		serveApart(t, job)
		job.Limits.Start = limit
		alpha := startSites(t, job, job.Sites[:1])
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		go func() {
			<-alpha[0].done
			cancel() // it may never have joined
		}()
		if s, _, err := foreigner(ctx, job.Sites[1].Server.Address); err == nil {
			<-s.Lost()
			heard = s.Err()
		}
		return end(alpha)[0]
	})
	if f == nil || f.Status != ending.StatusTimeout || !strings.Contains(f.Text, "missing: site beta (client 1) at 127.0.0.3:9") {
		t.Errorf("%v", f)
	}
	if heard == nil || !strings.Contains(heard.Error(), "site beta (client 1)") {
		t.Errorf("the other side heard %v", heard)
	}
}

// TestForeignPeer is a whole job with a client that is not ours, at the other
// end of a plain socket.
func TestForeignPeer(t *testing.T) {
	job := testJob("ring", 1, 1)
	serveApart(t, job)
	job.Sites[1].Foreign = true
	alpha := startSites(t, job, job.Sites[:1])
	s, it, err := foreigner(t.Context(), job.Sites[1].Server.Address)
	if err != nil {
		t.Fatal(err)
	}
	if it.AllOwn || it.Procs.At(0).Card != nil {
		t.Error("we sent what a foreign client does not know")
	}
	from := &net.Dialer{LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 0, 0, 3)}, Timeout: patience}
	c, err := from.DialContext(t.Context(), "tcp", fmt.Sprintf("%v:%d", it.Hosts[0].Address, it.Hosts[0].Port))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	p := peer{t: t, c: c, us: it.Procs.At(1).ID, them: it.Procs.At(0).ID}
	p.write(binary.BigEndian.AppendUint32(nil, 1)) // our host rank; packets come and go at once

	first := p.data()
	if len(first) != 8 || binary.BigEndian.Uint64(first) != 1 {
		t.Errorf("the token came as %x, want external32", first)
	}
	p.send(wire.Packet{Type: wire.PkData, LSRank: 1, Len: 8, MsgLen: 8}, first)
	p.long(800000)
	p.barrier()
	if h := p.header(); h.Type != wire.PkFini {
		t.Errorf("%v where FINI should be", h.Type)
	}
	p.write(append([]byte{0, 0, 0, 7, 0, 0, 0, 128}, make([]byte, 120)...))
	_ = c.Close()
	if err := s.Finish(); err != nil {
		t.Error(err)
	}
	wantNone(t, alpha)
}

// peer speaks packets over a socket.
type peer struct {
	t        *testing.T
	c        net.Conn
	us, them wire.Proc
}

func (p *peer) write(b []byte) {
	if _, err := p.c.Write(b); err != nil {
		p.t.Fatal(err)
	}
}

func (p *peer) send(h wire.Packet, data []byte) {
	h.Src, h.Dest = p.us, p.them
	b := make([]byte, wire.HeaderSize)
	wire.Published.PutHeader(b, &h)
	p.write(append(b, data...))
}

func (p *peer) read(n int) []byte {
	b := make([]byte, n)
	for got := 0; got < n; {
		k, err := p.c.Read(b[got:])
		if err != nil {
			p.t.Fatal(err)
		}
		got += k
	}
	return b
}

func (p *peer) header() (h wire.Packet) {
	wire.Published.Header(p.read(wire.HeaderSize), &h)
	return h
}

// data returns the data of the next packet that has some.
func (p *peer) data() []byte {
	for {
		if h := p.header(); h.Type.HasData() {
			return p.read(int(h.Len))
		}
	}
}

// long takes a long message and sends it back.
func (p *peer) long(size int) {
	h := p.header()
	if h.Type != wire.PkDataSync || h.MsgLen != uint64(size) {
		p.t.Fatalf("%+v", h)
	}
	all := p.read(int(h.Len))
	p.send(wire.Packet{Type: wire.PkSyncAck, SrcReq: h.SrcReq, DestReq: 5, Len: 128}, nil) // a false length, as LAM sends it
	for len(all) < size {
		all = append(all, p.data()...)
	}
	p.send(wire.Packet{Type: wire.PkDataSync, SrcReq: 9, Len: 65536, MsgLen: uint64(size), LSRank: 1}, all[:65536])
	h = p.header()
	for h.Type == wire.PkProtoAck {
		h = p.header()
	}
	if h.Type != wire.PkSyncAck || h.SrcReq != 9 {
		p.t.Fatalf("%+v", h)
	}
	for at := 65536; at < size; {
		n := min(65536, size-at)
		p.send(wire.Packet{Type: wire.PkData, SrcReq: 9, DestReq: h.DestReq, Len: uint32(n), MsgLen: uint64(size), LSRank: 1}, all[at:at+n])
		at += n
	}
}

// barrier is the one of Finalize, between two clients: to rank 0 and back.
func (p *peer) barrier() {
	p.send(wire.Packet{Type: wire.PkData, LSRank: 1, Tag: 110, Context: 1}, nil)
	for {
		if h := p.header(); h.Type.HasData() && h.Context == 1 {
			return
		}
	}
}
