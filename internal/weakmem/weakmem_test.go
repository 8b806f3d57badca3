package weakmem

import (
	"strings"
	"testing"
)

// all runs a program and returns the sets of values that it noted.
func all(t *testing.T, build func(p *Program, note func(int, uint64))) map[string]bool {
	t.Helper()
	found := map[string]bool{}
	_, err := Run(func(p *Program) {
		var values [4]byte
		n := 0
		build(p, func(i int, v uint64) { values[i] = byte('0' + v); n = max(n, i+1) })
		p.After(func() error {
			found[string(values[:n])] = true
			return nil
		})
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// TestLitmus compares what is found with what is known of these programs, in C11 and on arm64.
func TestLitmus(t *testing.T) {
	for _, c := range []struct {
		name        string
		build       func(*Program, func(int, uint64))
		want, never string
	}{
		{"store buffering", buffering(Release, Acquire), "00 01 10 11", ""},
		{"store buffering, sequential", buffering(Sequential, Sequential), "01 10 11", "00"},
		{"store buffering, one relaxed", buffering(Sequential, Relaxed), "00 01 10 11", ""},
		{"message passing", passing(Release, Acquire), "00 01 11", "10"},
		{"message passing, store relaxed", passing(Relaxed, Acquire), "00 01 10 11", ""},
		{"message passing, load relaxed", passing(Release, Relaxed), "00 01 10 11", ""},
		{"message passing by three", chain(AcquireRelease), "0 1", ""},
		{"coherence", coherence, "00 01 02 11 12 22", "10 20 21"},
		{"independent reads", independent(Release, Acquire), "1010", ""},
		{"independent reads, sequential", independent(Sequential, Sequential), "1011", "1010"},
		{"exchanges", exchanges, "01 10", "00 11"},
	} {
		t.Run(c.name, func(t *testing.T) {
			found := all(t, c.build)
			for v := range strings.FieldsSeq(c.want) {
				if !found[v] {
					t.Errorf("%s was not found, of %v", v, found)
				}
			}
			for v := range strings.FieldsSeq(c.never) {
				if found[v] {
					t.Errorf("%s was found", v)
				}
			}
		})
	}
}

func buffering(store, load Order) func(*Program, func(int, uint64)) {
	return func(p *Program, note func(int, uint64)) {
		x := p.Words("x", 2)
		for i := range 2 {
			p.Thread("t", func(t *Thread) {
				t.Store(x[i], 1, store)
				note(i, t.Load(x[1-i], load))
			})
		}
	}
}

func passing(store, load Order) func(*Program, func(int, uint64)) {
	return func(p *Program, note func(int, uint64)) {
		x := p.Words("x", 2)
		p.Thread("writes", func(t *Thread) {
			t.Store(x[1], 1, Relaxed)
			t.Store(x[0], 1, store)
		})
		p.Thread("reads", func(t *Thread) {
			note(0, t.Load(x[0], load))
			note(1, t.Load(x[1], Relaxed))
		})
	}
}

// chain has a thread pass on what it knows; a third must know it, too.
func chain(o Order) func(*Program, func(int, uint64)) {
	return func(p *Program, note func(int, uint64)) {
		x, d := p.Words("x", 2), p.Data("d")
		p.Thread("a", func(t *Thread) { t.Write(d, 1); t.Exchange(x[0], 1, o) })
		p.Thread("b", func(t *Thread) { t.Store(x[1], t.Load(x[0], o), o) })
		p.Thread("c", func(t *Thread) {
			v := t.Load(x[1], o)
			if v == 1 {
				t.Read(d)
			}
			note(0, v)
		})
	}
}

func coherence(p *Program, note func(int, uint64)) {
	x := p.Word("x", 0)
	p.Thread("writes", func(t *Thread) { t.Store(x, 1, Relaxed); t.Store(x, 2, Relaxed) })
	p.Thread("reads", func(t *Thread) { note(0, t.Load(x, Relaxed)); note(1, t.Load(x, Relaxed)) })
}

func independent(store, load Order) func(*Program, func(int, uint64)) {
	return func(p *Program, note func(int, uint64)) {
		x := p.Words("x", 2)
		for i := range 2 {
			p.Thread("writes", func(t *Thread) { t.Store(x[i], 1, store) })
			p.Thread("reads", func(t *Thread) { note(2*i, t.Load(x[i], load)); note(2*i+1, t.Load(x[1-i], load)) })
		}
	}
}

func exchanges(p *Program, note func(int, uint64)) {
	x := p.Word("x", 0)
	for i := range 2 {
		p.Thread("t", func(t *Thread) { note(i, t.Exchange(x, 1, Relaxed)) })
	}
}

// TestFaults: what is wrong with a program is said, with the steps that lead there.
func TestFaults(t *testing.T) {
	for _, c := range []struct {
		name  string
		build func(*Program)
		want  string
	}{
		{"read early", func(p *Program) {
			x, d := p.Word("x", 0), p.Data("d")
			p.Thread("a", func(t *Thread) { t.Write(d, 7); t.Store(x, 1, Relaxed) })
			p.Thread("b", func(t *Thread) { t.Await(x, Acquire, is(1)); t.Read(d) })
		}, "b reads d, which a may not have written yet"},
		{"overwritten early", func(p *Program) {
			x, d := p.Word("x", 0), p.Data("d")
			p.Thread("a", func(t *Thread) { t.Await(x, Relaxed, is(1)); t.Write(d, 7) })
			p.Thread("b", func(t *Thread) { t.Read(d); t.Store(x, 1, Release) })
		}, "a writes d while b may still read it"},
		{"both write", func(p *Program) {
			d := p.Data("d")
			p.Thread("a", func(t *Thread) { t.Write(d, 1); t.Choose(1, "rest") })
			p.Thread("b", func(t *Thread) { t.Choose(1, "rest"); t.Write(d, 2) })
		}, "b writes d, which a may not have written yet"},
		{"wake-up lost", func(p *Program) { // it looks, and announces its sleep after that
			x, sleeps, bell := p.Word("x", 0), p.Word("sleeps", 0), p.Bell("bell")
			p.Thread("a", func(t *Thread) {
				t.Exchange(x, 1, Sequential)
				if t.Load(sleeps, Sequential) != 0 {
					t.Ring(bell)
				}
			})
			p.Thread("b", func(t *Thread) {
				if t.Load(x, Sequential) == 0 {
					t.Exchange(sleeps, 1, Sequential)
					t.Sleep(bell)
				}
			})
		}, "for ever wait b: await bell"},
		{"one of three", func(p *Program) {
			p.Thread("a", func(t *Thread) {
				if t.Choose(3, "which") == 2 {
					t.Failf("it is 2")
				}
			})
		}, "it is 2, after\n  a: which: 2"},
	} {
		if _, err := Run(c.build); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %s", c.name, err, c.want)
		}
	}
}

func is(want uint64) func(uint64) bool { return func(v uint64) bool { return v == want } }
