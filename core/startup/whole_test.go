package startup

import (
	"bytes"
	"errors"
	"fmt"
	"reflect"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/openimpi/impi/core/wire"
	"github.com/openimpi/impi/internal/watchdog"
	"github.com/openimpi/impi/plugins/sdk/support/unproved"
)

// whole is a server and its clients, joined by byte queues. What is on its way
// is delivered in pieces that chop sizes: tests cut everywhere.
type whole struct {
	server  *Server
	clients []*Client
	up      [][]byte // on its way to the server, by client
	down    [][]byte
	closed  []bool // by the server
	sentUp  [][]byte
	sentDn  [][]byte
	chop    func(n int) int
	pick    func(n int) int // which of n directions goes on
}

func newWhole(t testing.TB, cfg ServerConfig, clients ...ClientConfig) *whole {
	cfg.Clients = len(clients)
	if cfg.Auth.Mask() == 0 {
		cfg.Auth = Auth{None: true}
	}
	s, err := NewServer(cfg, scriptStart)
	if err != nil {
		t.Fatal(err)
	}
	n := len(clients)
	w := &whole{
		server: s, up: make([][]byte, n), down: make([][]byte, n), closed: make([]bool, n),
		sentUp: make([][]byte, n), sentDn: make([][]byte, n),
		chop: func(n int) int { return n }, pick: func(int) int { return 0 },
	}
	for i, c := range clients {
		m, err := NewClient(c)
		if err != nil {
			t.Fatal(err)
		}
		w.clients = append(w.clients, m)
		s.Accept(ConnID(i), fmt.Sprintf("peer%d", i), unproved.Source{}, scriptStart)
		m.Start(scriptStart)
	}
	return w
}

// run goes on until nothing is on its way.
func (w *whole) run() {
	for {
		w.collect()
		var busy []int
		for i := range w.clients {
			if len(w.up[i]) > 0 {
				busy = append(busy, i)
			}
			if len(w.down[i]) > 0 {
				busy = append(busy, i+len(w.clients))
			}
		}
		if len(busy) == 0 {
			w.hangUp()
			return
		}
		w.deliver(busy[w.pick(len(busy))])
	}
}

// hangUp tells clients that the server has closed and all was delivered.
func (w *whole) hangUp() {
	for i, c := range w.clients {
		if w.closed[i] && c.state != clientNew {
			c.Closed(nil)
		}
	}
}

func (w *whole) deliver(way int) {
	n := len(w.clients)
	queue := &w.up[way%n]
	if way >= n {
		queue = &w.down[way%n]
	}
	piece := (*queue)[:w.chop(len(*queue))]
	*queue = (*queue)[len(piece):]
	if way >= n {
		w.clients[way-n].Receive(piece, scriptStart)
	} else {
		w.server.Receive(ConnID(way), piece, scriptStart)
	}
}

func (w *whole) collect() {
	for i, c := range w.clients {
		b := c.Output()
		w.up[i] = append(w.up[i], b...)
		w.sentUp[i] = append(w.sentUp[i], b...)
	}
	for {
		a, ok := w.server.Next()
		if !ok {
			return
		}
		switch a.Kind {
		case ActSend:
			w.down[a.Conn] = append(w.down[a.Conn], a.Bytes...)
			w.sentDn[a.Conn] = append(w.sentDn[a.Conn], a.Bytes...)
		case ActClose:
			w.closed[a.Conn] = true
		case ActEvent: // for the log
		}
	}
}

// jobs returns every client's job, which must be the same.
func (w *whole) jobs(t testing.TB) *Job {
	t.Helper()
	var first *Job
	for i, c := range w.clients {
		j, ok := c.Job()
		if !ok {
			t.Fatalf("client %d has no job: %v", i, c.Err())
		}
		if j.Self != c.cfg.Rank {
			t.Errorf("client %d thinks it is %d", c.cfg.Rank, j.Self)
		}
		k := *j
		k.Self = 0
		if want := w.secret(c, j); k.Secret != want {
			t.Errorf("client %d has the secret %x, want %x", i, k.Secret, want)
		}
		k.Secret = [TokenSize]byte{}
		if !j.AllOwn {
			k.Token, k.Procs = [TokenSize]byte{}, withoutOwn(t, c, j)
		}
		if first == nil {
			first = &k
		} else if !reflect.DeepEqual(first, &k) {
			t.Errorf("client %d knows another job:\n%s\n%s", i, describe(first), describe(&k))
		}
	}
	return first
}

// withoutOwn checks what only this client knows in a job with clients of others, its token and the
// cards of its procs, and returns the procs without it.
func withoutOwn(t testing.TB, c *Client, j *Job) (procs Procs) {
	t.Helper()
	want := ClientConfig{Rank: c.cfg.Rank} // a client that does not say that it is ours keeps nothing
	if j.Clients[c.cfg.Rank].Own {
		want.Token, want.Hosts = c.cfg.Token, c.cfg.Hosts
	}
	var cards []string
	for i := range want.Hosts {
		for _, p := range want.Hosts[i].Procs {
			cards = append(cards, string(p.Card))
		}
	}
	for _, p := range j.Procs.All() {
		if len(p.Card) > 0 {
			if p.Client != c.cfg.Rank || len(cards) == 0 || string(p.Card) != cards[0] {
				t.Errorf("client %d has the card %q of a proc of client %d", c.cfg.Rank, p.Card, p.Client)
				break
			}
			cards = cards[1:]
		}
		p.Card = nil
		procs.Add(p)
	}
	if len(cards) > 0 || j.Token != want.Token {
		t.Errorf("client %d has the token %x, want %x, and lacks the cards %q", c.cfg.Rank, j.Token, want.Token, cards)
	}
	return procs
}

// secret is what a client should share with others of ours: in a job with foreign
// clients only the key can be.
func (w *whole) secret(c *Client, j *Job) (none [TokenSize]byte) {
	switch both := c.cfg.Auth.Mask() & w.server.cfg.Auth.Mask(); {
	case j.AllOwn:
		return j.Token
	case both.Has(wire.MechKey) && !c.cfg.Foreign:
		return j.secretOf(c.cfg.Auth.Key)
	}
	return none
}

// TestWholeJob runs every mix of own and foreign clients, hosts and procs, with
// bytes cut and mixed at random.
func TestWholeJob(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		n := rapid.IntRange(1, 5).Draw(r, "clients")
		order := rapid.Permutation(ranks(n)).Draw(r, "order")
		var cfgs []ClientConfig
		allOwn := true
		for _, rank := range order {
			c := testClient(rank, rapid.SliceOfN(rapid.IntRange(1, 3), 1, 3).Draw(r, "procs")...)
			c.Foreign = rapid.Bool().Draw(r, "foreign")
			c.Auth = Auth{None: true, HasKey: rapid.Bool().Draw(r, "key"), Key: 5678}
			c.Params.DataLen = uint32(rapid.IntRange(1, 1000).Draw(r, "datalen"))
			allOwn = allOwn && !c.Foreign
			cfgs = append(cfgs, c)
		}
		w := newWhole(t, ServerConfig{Auth: Auth{None: true, HasKey: true, Key: 5678}}, cfgs...)
		w.chop = func(n int) int { return rapid.IntRange(1, n).Draw(r, "chop") }
		w.pick = func(n int) int { return rapid.IntRange(0, n-1).Draw(r, "pick") }
		w.run()
		checkJob(t, w.jobs(t), cfgs, allOwn)
		for _, c := range w.clients {
			if err := c.Finish(); err != nil {
				t.Fatal(err)
			}
		}
		w.run()
		if ended, err := w.server.Ended(); !ended || err != nil {
			t.Fatalf("ended=%v: %v", ended, err)
		}
	})
}

func ranks(n int) (r []wire.ClientRank) {
	for i := range n {
		r = append(r, wire.ClientRank(i))
	}
	return r
}

// checkJob compares a job with the configurations that it came from.
func checkJob(t testing.TB, j *Job, cfgs []ClientConfig, allOwn bool) {
	t.Helper()
	byRank := make([]ClientConfig, len(cfgs))
	dataLen := uint32(1 << 31)
	for _, c := range cfgs {
		byRank[c.Rank] = c
		dataLen = min(dataLen, c.Params.DataLen)
	}
	if j.Size() != len(cfgs) || j.DataLen != dataLen || j.AllOwn != allOwn {
		t.Fatalf("wrong job:\n%s", describe(j))
	}
	host, proc := 0, 0
	for c, cfg := range byRank {
		if ci := j.Clients[c]; int(ci.FirstHost) != host || int(ci.FirstProc) != proc || ci.Own == cfg.Foreign {
			t.Fatalf("client %d is %+v, want host %d, proc %d", c, ci, host, proc)
		}
		for h, hc := range cfg.Hosts {
			if hi := j.Hosts[host]; hi.Address != hc.Address || hi.Port != hc.Port || int(hi.FirstProc) != proc || hi.NProcs != len(hc.Procs) || int(hi.Client) != c {
				t.Fatalf("host %d is %+v", host, hi)
			}
			if j.HostOf(wire.ClientRank(c), h) != wire.HostRank(host) {
				t.Fatalf("HostOf(%d, %d)", c, h)
			}
			for _, pc := range hc.Procs {
				pi := j.Procs.At(wire.WorldRank(proc))
				if pi.ID != pc.ID || int(pi.Host) != host || int(pi.Client) != c || allOwn != bytes.Equal(pi.Card, pc.Card) {
					t.Fatalf("proc %d is %+v", proc, pi)
				}
				proc++
			}
			host++
		}
	}
	if wantToken := [TokenSize]byte{}; allOwn != (j.Token == byRank[0].Token) || !allOwn && j.Token != wantToken {
		t.Fatalf("token %x", j.Token)
	}
}

// TestMostClients: 32 clients are a job, and all bits of the mask are used.
func TestMostClients(t *testing.T) {
	var cfgs []ClientConfig
	for _, r := range ranks(wire.MaxClients) {
		cfgs = append(cfgs, testClient(r, 1, 1))
	}
	w := newWhole(t, ServerConfig{}, cfgs...)
	w.run()
	checkJob(t, w.jobs(t), cfgs, true)
}

// TestVersionPerPair: ours among each other, 0.0 with the others.
func TestVersionPerPair(t *testing.T) {
	foreign := testClient(1, 1)
	foreign.Foreign = true
	w := newWhole(t, ServerConfig{}, testClient(0, 1), foreign, testClient(2, 1))
	w.run()
	j := w.jobs(t)
	for _, c := range []struct {
		a, b wire.ClientRank
		want wire.Version
	}{{0, 1, wire.Version00}, {1, 2, wire.Version00}, {0, 2, wire.PrivateVersion}, {2, 0, wire.PrivateVersion}, {1, 1, wire.Version00}} {
		if have := j.VersionFor(c.a, c.b); have != c.want {
			t.Errorf("clients %d and %d speak %v, want %v", c.a, c.b, have, c.want)
		}
	}
}

// TestDisagreementEndsAll: clients that differ in XSIZE all say so, and so does
// the server, whatever the order of things.
func TestDisagreementEndsAll(t *testing.T) {
	a, b := testClient(0, 1), testClient(1, 1)
	a.Params.XSize, b.Params.XSize = 2048, Unchosen
	w := newWhole(t, ServerConfig{}, a, b)
	w.run()
	for i, c := range w.clients {
		if !errors.Is(c.Err(), ErrDisagree) {
			t.Errorf("client %d: %v", i, c.Err())
		}
	}
	if ended, err := w.server.Ended(); !ended || !errors.Is(err, ErrFailed) {
		t.Errorf("server: %v", err)
	}
}

// TestDefaultsAgree: -1 and the default's own value are the same.
func TestDefaultsAgree(t *testing.T) {
	a, b := testClient(0, 1), testClient(1, 1)
	a.Params.XSize, b.Params.MaxLinear = DefaultXSize, DefaultMaxLinear
	w := newWhole(t, ServerConfig{}, a, b)
	w.run()
	if j := w.jobs(t); j.XSize != 1024 || j.MaxLinear != 4 {
		t.Error(describe(j))
	}
}

// recording returns what a client of a small job sends and gets.
func recording(t testing.TB, auth Auth) (up, down [][]byte) {
	a, b := testClient(0, 2), testClient(1, 1, 1)
	a.Auth, b.Auth = auth, auth
	w := newWhole(t, ServerConfig{Auth: auth}, a, b)
	w.run()
	w.jobs(t)
	for _, c := range w.clients {
		c.Finish()
	}
	w.run()
	return w.sentUp, w.sentDn
}

// replay sends a client's bytes to a server in which the other client behaves,
// then closes the connection and lets time pass: the job must end.
func replay(t testing.TB, auth Auth, stream []byte) error {
	b := testClient(1, 1, 1)
	b.Auth = auth
	w := newWhole(t, ServerConfig{Auth: auth}, testClient(0, 2), b)
	w.clients[0] = &Client{} // its place is taken by the stream
	w.up[0] = stream
	w.run()
	w.server.Closed(0, nil)
	w.run()
	w.server.Tick(scriptStart.Add(time.Hour))
	w.run()
	w.server.Tick(scriptStart.Add(2 * time.Hour))
	w.run()
	if _, running := w.clients[1].Job(); running && w.clients[1].Err() == nil {
		w.clients[1].Finish()
		w.run()
	}
	ended, err := w.server.Ended()
	if !ended {
		t.Fatalf("the server hangs after %x", stream)
	}
	if _, ok := w.clients[1].Job(); !ok && w.clients[1].Err() == nil {
		t.Fatalf("the other client hears nothing after %x", stream)
	}
	return err
}

// TestServerTruncated: every prefix of a client's stream ends the job with an
// error, but the whole.
func TestServerTruncated(t *testing.T) {
	for _, auth := range []Auth{{None: true}, {HasKey: true, Key: 5678}} {
		up, _ := recording(t, auth)
		for n := range up[0] {
			if err := replay(t, auth, up[0][:n]); err == nil {
				t.Errorf("%d bytes of %d were enough", n, len(up[0]))
			}
		}
		if err := replay(t, auth, up[0]); err != nil {
			t.Errorf("the whole stream: %v", err)
		}
	}
}

// TestServerBitFlips: with any bit wrong the server ends, one way or another.
// The key must be right in every bit.
func TestServerBitFlips(t *testing.T) {
	auth := Auth{HasKey: true, Key: 5678}
	up, _ := recording(t, auth)
	for i := range len(up[0]) * 8 {
		flipped := bytes.Clone(up[0])
		flipped[i/8] ^= 1 << (i % 8)
		err := replay(t, auth, flipped)
		if inKey := i/8 >= 12 && i/8 < 20; inKey && err == nil {
			t.Errorf("bit %d of the key does not matter", i-96)
		}
	}
}

// TestClientTruncated: a client that gets a prefix and then nothing more ends
// with an error naming what it waited for.
func TestClientTruncated(t *testing.T) {
	_, down := recording(t, Auth{None: true})
	for n := range down[0] {
		c, _ := NewClient(testClient(0, 2))
		c.Start(scriptStart)
		c.Receive(down[0][:n], scriptStart)
		if err := c.Closed(nil); !errors.Is(err, ErrLost) {
			t.Fatalf("%d bytes: %v", n, err)
		}
	}
}

// TestClientBitFlips: with any bit wrong the client has a job or an error, and
// what it has is within bounds.
func TestClientBitFlips(t *testing.T) {
	_, down := recording(t, Auth{None: true})
	for i := range len(down[0]) * 8 {
		flipped := bytes.Clone(down[0])
		flipped[i/8] ^= 1 << (i % 8)
		c, _ := NewClient(testClient(0, 2))
		c.Start(scriptStart)
		c.Receive(flipped, scriptStart)
		if j, ok := c.Job(); ok {
			checkBounds(t, j)
		} else if c.Err() == nil && c.Tick(scriptStart.Add(time.Hour)) == nil {
			t.Fatalf("bit %d: the client hangs", i)
		}
	}
}

// checkBounds checks what every user of a job relies on.
func checkBounds(t testing.TB, j *Job) {
	t.Helper()
	if j.DataLen < 1 || j.TagUB < MinTagUB || j.AckMark < 1 || j.AckMark > j.HiWater || j.XSize < 0 || j.MaxLinear < 0 {
		t.Fatalf("values out of range: %s", describe(j))
	}
	procs := 0
	for _, h := range j.Hosts {
		if int(h.FirstProc) != procs || int(h.Client) >= j.Size() {
			t.Fatalf("hosts do not fit: %s", describe(j))
		}
		procs += h.NProcs
	}
	if procs != j.Procs.Len() {
		t.Fatalf("procs do not fit: %s", describe(j))
	}
	seen := make(map[wire.Proc]bool)
	for _, p := range j.Procs.All() {
		if seen[p.ID] || int(p.Host) >= len(j.Hosts) {
			t.Fatalf("two procs are %v", p.ID)
		}
		seen[p.ID] = true
	}
}

func FuzzServer(f *testing.F) {
	for _, auth := range []Auth{{None: true}, {HasKey: true, Key: 5678}} {
		up, _ := recording(f, auth)
		f.Add(up[0], auth.HasKey)
		f.Add(up[1], auth.HasKey)
	}
	f.Fuzz(func(t *testing.T, stream []byte, key bool) {
		defer watchdog.Start()()
		auth := Auth{None: true}
		if key {
			auth = Auth{HasKey: true, Key: 5678}
		}
		_ = replay(t, auth, stream)
	})
}

func FuzzClient(f *testing.F) {
	_, down := recording(f, Auth{None: true})
	f.Add(down[0], false)
	f.Add(down[1], true)
	f.Fuzz(func(t *testing.T, stream []byte, draft bool) {
		defer watchdog.Start()()
		cfg := testClient(0, 2)
		if draft {
			cfg.Dialect = wire.Draft
		}
		c, err := NewClient(cfg)
		if err != nil {
			t.Fatal(err)
		}
		c.Start(scriptStart)
		for len(stream) > 0 {
			n := min(len(stream), 1+int(stream[0]))
			c.Receive(stream[:n], scriptStart)
			stream = stream[n:]
		}
		if j, ok := c.Job(); ok {
			checkBounds(t, j)
		} else if c.Closed(nil) == nil {
			t.Fatal("no error and no job")
		}
	})
}
