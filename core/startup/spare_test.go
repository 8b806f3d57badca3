package startup

import (
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/openimpi/impi/core/wire"
	"github.com/openimpi/impi/internal/allocs"
	"github.com/openimpi/impi/internal/watchdog"
	"github.com/openimpi/impi/plugins/sdk/support/unproved"
)

// come adds a spare site to a job, and returns its number among the connections.
func (w *whole) come(t testing.TB, auth Auth) int {
	t.Helper()
	m, err := NewClient(ClientConfig{Spare: true, Auth: auth})
	if err != nil {
		t.Fatal(err)
	}
	i := len(w.clients)
	w.clients = append(w.clients, m)
	w.up, w.down, w.closed = append(w.up, nil), append(w.down, nil), append(w.closed, false)
	w.sentUp, w.sentDn = append(w.sentUp, nil), append(w.sentDn, nil)
	w.server.Accept(ConnID(i), fmt.Sprintf("peer%d", i), unproved.Source{}, scriptStart)
	m.Start(scriptStart)
	return i
}

// sameJob wants spare site i to know the job as client 0 does.
func (w *whole) sameJob(t testing.TB, i int) {
	t.Helper()
	want, _ := w.clients[0].Job()
	have, ok := w.clients[i].Job()
	if !ok || want == nil {
		t.Fatalf("spare site %d has no job: %v", i, w.clients[i].Err())
	}
	x, y := *want, *have
	if y.Self != NoClient || y.Secret != y.Token || y.Token == [TokenSize]byte{} {
		t.Errorf("spare site: client %d, secret %x, token %x", y.Self, y.Secret, y.Token)
	}
	x.Self = NoClient
	if !reflect.DeepEqual(x, y) {
		t.Errorf("spare site %d knows another job:\n%s\n%s", i, describe(&x), describe(&y))
	}
}

// finish ends a job of n clients, and wants the spare sites to hear that it went well.
func (w *whole) finish(t testing.TB, n int, spares ...int) {
	t.Helper()
	for _, c := range w.clients[:n] {
		if err := c.Finish(); err != nil {
			t.Fatal(err)
		}
	}
	w.run()
	if ended, err := w.server.Ended(); !ended || err != nil {
		t.Fatalf("the server has ended: %t: %v", ended, err)
	}
	for _, i := range spares {
		if err := w.clients[i].Closed(nil); err != nil || w.clients[i].state != clientFinished {
			t.Errorf("spare site %d has not heard that the job went well: %v", i, err)
		}
	}
}

// TestSpareSitesLearnTheJob: whenever they come, and however bytes are cut and mixed.
func TestSpareSitesLearnTheJob(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		n := rapid.IntRange(1, 4).Draw(r, "clients")
		var cfgs []ClientConfig
		for _, rank := range rapid.Permutation(ranks(n)).Draw(r, "order") {
			c := testClient(rank, rapid.SliceOfN(rapid.IntRange(1, 3), 1, 3).Draw(r, "procs")...)
			c.Auth = Auth{HasKey: true, Key: 5678}
			if rapid.Bool().Draw(r, "omits") {
				c.Omit = []wire.Label{wire.LabelAckMark, wire.LabelHiWater}
			}
			cfgs = append(cfgs, c)
		}
		w := newWhole(t, ServerConfig{Auth: Auth{HasKey: true, Key: 5678}, Spares: 3}, cfgs...)
		w.chop = func(n int) int { return rapid.IntRange(1, n).Draw(r, "chop") }
		w.pick = func(n int) int { return rapid.IntRange(0, n-1).Draw(r, "pick") }
		var spares []int
		for range 2 { // come at any time
			for range rapid.IntRange(0, 60).Draw(r, "steps") {
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
				if len(busy) > 0 {
					w.deliver(busy[w.pick(len(busy))])
				}
			}
			w.collect()
			spares = append(spares, w.come(t, Auth{HasKey: true, Key: 5678}))
		}
		w.run()
		late := w.come(t, Auth{HasKey: true, Key: 5678})
		w.run()
		for _, i := range append(spares, late) {
			w.sameJob(t, i)
		}
		w.finish(t, n, append(spares, late)...)
	})
}

// TestSpareIsNoMatter: however the connection of a spare site ends, and whatever is said there, the
// job goes on.
func TestSpareIsNoMatter(t *testing.T) {
	for name, end := range map[string]func(w *whole, i int){
		"closed": func(w *whole, i int) { w.server.Closed(ConnID(i), errors.New("reset")) },
		"leaves": func(w *whole, i int) { w.clients[i].Fail(errors.New("the operator ended it")) },
		"moves":  func(w *whole, i int) { w.clients[i].Fail(ErrMoved) },
		"met":    func(w *whole, i int) { w.clients[i].Fail(ErrMet) },
		"finishes": func(w *whole, i int) {
			w.server.Receive(ConnID(i), wire.AppendCommand(nil, wire.CmdFini, 0), scriptStart)
		},
		"submits": func(w *whole, i int) {
			w.server.Receive(ConnID(i), wire.AppendColl(nil, wire.LabelNHosts, []byte{0, 0, 0, 1}), scriptStart)
		},
		"becomes a client": func(w *whole, i int) { w.server.Receive(ConnID(i), wire.AppendIMPI(nil, 0), scriptStart) },
		"a long command": func(w *whole, i int) {
			w.server.Receive(ConnID(i), wire.AppendCommand(nil, wire.CmdColl, 1<<20), scriptStart)
		},
	} {
		for _, early := range []bool{true, false} {
			t.Run(fmt.Sprintf("%s early %t", name, early), func(t *testing.T) {
				clients := []ClientConfig{testClient(0, 1), testClient(1, 1)}
				w := newWhole(t, ServerConfig{Spares: 1}, clients...)
				var i int
				if early {
					later := w.clients[1].out // client 1 has not come yet
					w.clients[1].out = nil
					i = w.come(t, Auth{None: true})
					w.run()
					w.clients[1].out = later
				} else {
					w.run()
					i = w.come(t, Auth{None: true})
					w.run()
				}
				if c := w.server.conn(ConnID(i)); c == nil || c.state != connSpare {
					t.Fatal("it is not there: the test would prove nothing")
				}
				end(w, i)
				w.run()
				if w.server.conn(ConnID(i)) != nil {
					t.Error("its connection is there still")
				}
				again := w.come(t, Auth{None: true}) // there is room for it
				w.run()
				w.sameJob(t, again)
				w.finish(t, 2, again)
			})
		}
	}
}

// TestSparesThatAreRefused: by a server that expects none, or no more, that has another key, or in
// a job with a client of another MPI. The job goes on.
func TestSparesThatAreRefused(t *testing.T) {
	key := Auth{HasKey: true, Key: 5678}
	foreign := testClient(1, 1)
	foreign.Foreign, foreign.Auth = true, key
	for _, c := range []struct {
		name   string
		spares int
		before int // that are there
		auth   Auth
		other  ClientConfig
		says   string
	}{
		{"none expected", 0, 0, key, testClient(1, 1), "job takes no more clients"},
		{"too many", 2, 2, key, testClient(1, 1), "it has 2 already"},
		{"wrong key", 1, 0, Auth{HasKey: true, Key: 1}, testClient(1, 1), "wrong key"},
		{"foreign", 1, 0, key, foreign, "takes no spare sites"},
	} {
		t.Run(c.name, func(t *testing.T) {
			first := testClient(0, 1)
			first.Auth, c.other.Auth = key, key
			w := newWhole(t, ServerConfig{Auth: key, Spares: c.spares}, first, c.other)
			w.run()
			for range c.before {
				i := w.come(t, key)
				w.run()
				w.sameJob(t, i)
			}
			i := w.come(t, c.auth)
			w.run()
			if err := w.clients[i].Err(); err == nil || !strings.Contains(err.Error(), c.says) || !strings.HasPrefix(err.Error(), "startup: spare site: ") {
				t.Errorf("%v; want %q", err, c.says)
			}
			w.finish(t, 2)
		})
	}
}

// TestSpareWithoutExpectation: while clients are awaited a server that expects no spare site says
// what to do.
func TestSpareWithoutExpectation(t *testing.T) {
	w := newWhole(t, ServerConfig{}, testClient(0, 1), testClient(1, 1))
	w.clients[1].out = nil // it does not come
	i := w.come(t, Auth{None: true})
	w.run()
	if err := w.clients[i].Err(); err == nil || !strings.Contains(err.Error(), "-spares 1") {
		t.Errorf("%v", err)
	}
}

// TestSpareHearsOfFailure: also one that has come when the job runs.
func TestSpareHearsOfFailure(t *testing.T) {
	w := newWhole(t, ServerConfig{Spares: 1}, testClient(0, 1), testClient(1, 1))
	w.run()
	i := w.come(t, Auth{None: true})
	w.run()
	w.clients[1].Fail(errors.New("rank 1 was killed"))
	w.run()
	if err := w.clients[i].Err(); !errors.Is(err, ErrFailed) || !strings.Contains(err.Error(), "rank 1 was killed") || OutcomeAtServer(err) != JobFailed {
		t.Errorf("%v", err)
	}
}

// TestSpareWaits: however long the clients take, while the server has its limit.
func TestSpareWaits(t *testing.T) {
	w := newWhole(t, ServerConfig{Spares: 1}, testClient(0, 1))
	w.clients[0].out = nil
	i := w.come(t, Auth{None: true})
	w.run()
	if at, ok := w.clients[i].Deadline(); ok {
		t.Errorf("it waits until %v", at)
	}
	if err := w.clients[i].Tick(scriptStart.Add(time.Hour)); err != nil {
		t.Error(err)
	}
	w.server.Tick(scriptStart.Add(time.Hour))
	w.run()
	if err := w.clients[i].Err(); err == nil || !strings.Contains(err.Error(), "did not come") {
		t.Errorf("%v", err)
	}
}

// TestSpareDistrustsTheServer: answers out of order, or not all of them, make no job.
func TestSpareDistrustsTheServer(t *testing.T) {
	number := func(l wire.Label) []byte {
		return append(wire.AppendAnswer(nil, l, 1, 4), 0, 0, 0, 1)
	}
	cards := wire.AppendAnswer(nil, wire.LabelCards, 1, 0)
	done := wire.AppendCommand(nil, wire.CmdDone, 0)
	for name, said := range map[string][]byte{
		"done at once":   done,
		"cards first":    cards,
		"procs first":    number(wire.LabelNProcs),
		"twice":          append(number(wire.LabelNHosts), number(wire.LabelNHosts)...),
		"back":           append(append(number(wire.LabelNHosts), number(wire.LabelNProcs)...), number(wire.LabelNHosts)...),
		"the end":        wire.AppendCommand(nil, wire.CmdFini, 0),
		"too many sites": wire.AppendIMPI(nil, 33),
	} {
		c, err := NewClient(ClientConfig{Spare: true, Auth: Auth{None: true}})
		if err != nil {
			t.Fatal(err)
		}
		c.Start(scriptStart)
		_ = c.Receive(wire.AppendAuthChoice(nil, wire.MechNone), scriptStart)
		if name != "too many sites" {
			said = append(wire.AppendIMPI(nil, 1), said...)
		}
		if err := c.Receive(said, scriptStart); err == nil {
			t.Errorf("%s: no error", name)
		}
		if _, ok := c.Job(); ok {
			t.Errorf("%s makes a job", name)
		}
	}
}

// FuzzSpare feeds a spare site what a server might say.
func FuzzSpare(f *testing.F) {
	w := newWhole(f, ServerConfig{Spares: 1}, testClient(0, 1), testClient(1, 2))
	i := w.come(f, Auth{None: true})
	w.run()
	all := w.sentDn[i]
	f.Add(all)
	f.Add(all[:len(all)/2])
	f.Add(append(append([]byte(nil), all...), wire.AppendCommand(nil, wire.CmdFini, 0)...))
	f.Fuzz(func(t *testing.T, b []byte) {
		defer watchdog.Start()()
		c, err := NewClient(ClientConfig{Spare: true, Auth: Auth{None: true}})
		if err != nil {
			t.Fatal(err)
		}
		c.Start(scriptStart)
		cost := allocs.Bytes(func() {
			for len(b) > 0 {
				n := min(len(b), 1+int(b[0]))
				_ = c.Receive(b[:n], scriptStart)
				b = b[n:]
			}
		})
		if cost > uint64(allocs.MaxError+1<<20) && cost > uint64(1<<10)*uint64(len(b)+1<<10) {
			t.Fatalf("%d bytes took %d bytes of memory", len(b), cost)
		}
		if j, ok := c.Job(); ok {
			checkBounds(t, j)
		}
		if c.Closed(nil) == nil && c.state != clientFinished {
			t.Fatal("no end")
		}
	})
}
