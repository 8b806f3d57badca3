package calls

import (
	"bytes"
	"testing"
)

// pingPong has m note n calls of MPI_Send and n of MPI_Recv in turn, each of 100 ns, from a time
// on, as the one proc that has the run does it. It returns when the last was over, and how often
// the clock was looked at.
func pingPong(m *Memory, from int64, n int) (until int64, looks int) {
	return pingPongOf(m, from, n, 100)
}

// pingPongOf is pingPong with calls that take so many nanoseconds each.
func pingPongOf(m *Memory, from int64, n int, each int64) (until int64, looks int) {
	send, receive := sent(Send, 1, 5, 8), sent(Recv, 1, 5, 8)
	at := from
	for range n {
		at += each
		if !countOf(m, Sends, send) {
			m.called(send, late, at, true)
			looks++
		}
		if !countOf(m, Receives, receive) {
			m.pends(receive, at, true)
			m.Burst.open.Store(0)
			looks++
		}
		at += each
	}
	return at, looks
}

func countOf(m *Memory, k int, w about) bool {
	return m.Burst.run.Count(k, int(w.peer), int(w.tag), int(w.size), w.comm)
}

// totals are the calls of all entries, and of those with a pause.
func totals(list []entry) (calls, afterPause uint32) {
	for _, e := range list {
		for _, c := range e.calls {
			calls += c.times
			if e.paused {
				afterPause += c.times
			}
		}
	}
	return calls, afterPause
}

// TestRun: of short calls that follow each other closely for long few are looked at, and all are in
// entries as before.
func TestRun(t *testing.T) {
	m := byMicroseconds()
	const n = 20000
	until, looks := pingPong(m, 1e6, n)
	if most := MinStreak + 2 + 2*n/UntimedCalls; looks < MinStreak || looks > most {
		t.Errorf("the clock was looked at %d times for %d calls, which is not %d to %d", looks, 2*n, MinStreak, most)
	}
	m.idle(until+10001, false)
	list := entries(t, m)
	for i, e := range list {
		if length := e.ended - e.begun; e.paused != (i == len(list)-1) || length > 200000 || i < len(list)-2 && length < 190000 {
			t.Errorf("entry %d of %d: %+v", i, len(list), e)
		}
	}
	if calls, _ := totals(list); calls != 2*n {
		t.Errorf("%d calls of %d", calls, 2*n)
	}
	if first, last := list[0].begun, list[len(list)-2].ended; first > 1e6+100 || last < until-100*2*MaxUntimedCalls || last > until {
		t.Errorf("from %d to %d: the calls were from 1000000 to %d, and the last not looked at", first, last, until)
	}
	for _, c := range list[0].calls {
		if c.size != int64(c.times)*8 || c.peer != 1 || c.tag != 5 {
			t.Errorf("%+v", c)
		}
	}
}

// TestRunTakesNoMemory: while calls are counted and looked at nothing is allocated, which would
// take longer than all of it.
func TestRunTakesNoMemory(t *testing.T) {
	m := byMicroseconds()
	until, _ := pingPong(m, 1e6, 1000)
	if n := testing.AllocsPerRun(100, func() {
		until, _ = pingPong(m, until, 100)
		m.Traced.take(func(*Event) {})
	}); n > 0 {
		t.Errorf("200 calls allocate %v times", n)
	}
}

// TestRunPace: the next calls that are not looked at are as many as take Brief at the pace of the
// last, within bounds. Calls that are slower than that are no pause as long as they do not become
// slower by more than Gap.
func TestRunPace(t *testing.T) {
	for _, c := range []struct {
		each, more int64 // how long calls take, and what the later ones take longer
		row        int   // calls that are not looked at in a row; 0: the run ends
	}{
		{10, 0, MaxUntimedCalls}, {100, 0, MaxUntimedCalls}, {500, 0, 50}, {600, 0, 41}, {700, 0, 0}, {100, 400, 50}, {500, 150, 38}, {500, 600, 0},
	} {
		m := byMicroseconds()
		until, _ := pingPongOf(m, 1e6, 1000, c.each)
		if c.more > 0 {
			until, _ = pingPongOf(m, until, 200, c.each+c.more)
		}
		const n = 2000
		_, looks := pingPongOf(m, until, n, c.each+c.more)
		row := (2*n - looks) / looks
		if c.row == 0 && row > 4 || c.row > 0 && (row < c.row-2 || row > c.row) {
			t.Errorf("calls of %d ns, then of %d: %d looks for %d calls, %d calls without one in a row, not %d", c.each, c.each+c.more, looks, 2*n, row, c.row)
		}
	}
}

// TestRunPauses: where a program does something else in the middle of a run, the calls that were
// not looked at are an entry that says so, of at most MaxUntimedCalls calls. The next are looked at
// one by one until there is a run again: soon after many calls that followed each other closely,
// after MinStreak otherwise.
func TestRunPauses(t *testing.T) {
	const pause = 5000000
	for _, c := range []struct {
		before, after int // round trips
		least, most   int // looks at the calls afterwards
	}{
		{LongStreak, 200, MinStreakAfterPause, MinStreakAfterPause + 400/UntimedCalls + 1},
		{LongStreak / 4, 40, 80 - MaxUntimedCalls, 80},
		{LongStreak / 4, 200, MinStreak, MinStreak + (400-MinStreak)/UntimedCalls + 1},
	} {
		m := byMicroseconds()
		until, _ := pingPong(m, 1e6, c.before)
		before := m.Burst.last
		again, looks := pingPong(m, until+pause, c.after)
		list := entries(t, m)
		calls, some := totals(list)
		if some == 0 || some > MaxUntimedCalls || looks < c.least || looks > c.most {
			t.Errorf("%+v: %d calls, %d of them with a pause; %d looks", c, calls, some, looks)
		}
		for _, e := range list {
			if e.paused && (e.begun != before || e.ended < until+pause || e.ended > until+pause+100*(MaxUntimedCalls+1)) {
				t.Errorf("%+v: %+v: the last look before the pause was at %d, its end at %d", c, e, before, until+pause)
			}
		}
		m.idle(again+1e6, true)
		rest, _ := totals(entries(t, m))
		if calls += rest; calls != uint32(2*(c.before+c.after)) {
			t.Errorf("%+v: %d calls", c, calls)
		}
	}

	m := byMicroseconds()
	until, _ := pingPong(m, 1e6, 1000)
	m.idle(until+1000000, false) // nothing comes: what was counted does not wait for the next call
	list := entries(t, m)
	if calls, some := totals(list); calls != 2000 || some > MaxUntimedCalls || list[len(list)-1].ended > until+1000000 {
		t.Errorf("%d calls, %d of them with a pause, until %d", calls, some, list[len(list)-1].ended)
	}
}

// TestRunAfterPhases: a program whose phases of communication have become short has one to three
// entries with a pause of them, as before it is not known that they are phases.
func TestRunAfterPhases(t *testing.T) {
	m := byMicroseconds()
	until, _ := pingPong(m, 1e6, LongStreak)
	m.idle(until+1e6, false)
	entries(t, m)
	paused := 0
	for range 10 {
		until, _ = pingPong(m, until+5e6, 50)
		m.idle(until+1e6, false)
		for _, e := range entries(t, m) {
			if e.paused {
				paused++
			}
		}
	}
	if paused < 1 || paused > 3 {
		t.Errorf("%d entries with a pause in ten phases of 100 calls", paused)
	}
}

// TestRunWaits: a receive that was counted and then waits is an entry of its own, from when it was
// seen to wait, also if the entries were taken before; and another thread's call ends no run but
// for those that are counted.
func TestRunWaits(t *testing.T) {
	for _, taken := range []bool{false, true} {
		m := byMicroseconds()
		until, _ := pingPong(m, 1e6, 1000)
		receive := sent(Recv, 1, 5, 8)
		for !countOf(m, Receives, receive) {
			until, _ = pingPong(m, until, 1)
		}
		if taken {
			m.idle(until+20000, false)
		}
		m.uncount(until + 22000)
		m.called(receive, until+22000, until+900000, true)
		m.idle(until+1e6, true)
		list := entries(t, m)
		if e := list[len(list)-1]; e.begun != until+22000 || e.ended != until+900000 || len(e.calls) != 1 || e.calls[0].times != 1 {
			t.Errorf("%+v", e)
		}
		calls, _ := totals(list)
		end, _ := pingPong(m, until+1e6, 500)
		m.called(sent(Probe, 2, 5, -1), until+1e6-50000, end+1, false) // of another thread, which is not short
		m.idle(end+1e6, true)
		all := calls
		m.Traced.take(func(e *Event) { all += e.Times })
		if want := m.Burst.run.tallies[Sends].total.Load() + m.Burst.run.tallies[Receives].total.Load(); m.Burst.run.streak.Load() != MinStreak-MinStreakAfterPause || want == 0 || all < 3000 {
			t.Errorf("%d calls, %d counted, streak %d", all, want, m.Burst.run.streak.Load())
		}
	}
}

// TestRunOfOthers: calls that differ in what is said of them, that are large or from anybody, or of
// who has not the run, are looked at.
func TestRunOfOthers(t *testing.T) {
	for name, of := range map[string]struct {
		about func(i int) about
		owner bool
	}{
		"same":       {func(int) about { return sent(Send, 1, 5, 8) }, true},
		"tags":       {func(i int) about { return sent(Send, 1, int32(i), 8) }, true},
		"peers":      {func(i int) about { return sent(Send, int32(i%3), 5, 8) }, true},
		"sizes":      {func(i int) about { return sent(Send, 1, 5, int64(i)) }, true},
		"comms":      {func(i int) about { return about{uint32(Send), 1, 5, NoPeer, 8, uint64(i%2 + 1)} }, true},
		"large":      {func(int) about { return sent(Send, 1, 5, MaxRunBytes+1) }, true},
		"no sizes":   {func(int) about { return sent(Send, 1, 5, -1) }, true},
		"others":     {func(int) about { return sent(Barrier, NoPeer, NoTag, -1) }, true},
		"not theirs": {func(int) about { return sent(Send, 1, 5, 8) }, false},
	} {
		m := byMicroseconds()
		looks := 0
		for i := range 1000 {
			w := of.about(i)
			if of.owner && w.call == uint32(Send) && countOf(m, Sends, w) {
				continue
			}
			looks++
			m.called(w, late, 1e6+int64(i)*100, of.owner)
		}
		if few := looks < 500; few != (name == "same") {
			t.Errorf("%s: %d looks", name, looks)
		}
	}
}

// TestPausedLine: what is written of calls with a pause.
func TestPausedLine(t *testing.T) {
	var out bytes.Buffer
	line := &Timeline{to: &out, texts: make(map[about]text), scale: 1, at: TimelineProc{Rank: 3, Host: 1, Comm: func(uint64) string { return "w" }}}
	m := byMicroseconds()
	until, _ := pingPong(m, 1e6, 1000)
	m.idle(until+100000, false)
	m.Traced.take(line.write)
	line.flush()
	all := parsed(t, append(bytes.Replace(out.Bytes(), []byte(","), []byte("["), 1), ']'))
	if x := all[len(all)-1]; x.Name != "short calls with a pause" || x.Cat != "short" || x.Dur < 100 || x.Args["calls"].(float64) > MaxUntimedCalls {
		t.Errorf("%+v", x)
	}
	if x := all[0]; x.Name != "short calls" {
		t.Errorf("%+v", x)
	}
}

// BenchmarkPair is what a send and a receive in a run cost more with a timeline.
func BenchmarkPair(b *testing.B) {
	old, was := mem, on.Load()
	mem = new(Memory)
	defer func() { mem = old; on.Store(was) }()
	startClock()
	mem.bound(roughScale())
	on.Store(TraceBit | MergeBit)
	i, run := 0, &mem.Burst.run
	for b.Loop() {
		if i++; i%(1<<14) == 0 {
			mem.Traced.take(func(*Event) {})
		}
		if begun := BeginUntimed(); !IsUntimed(begun) || !run.Count(Sends, 1, 5, 8, 1) {
			EndSend(true, begun, 1, 5, 8, 1)
		}
		var r MeasuredRecv
		if begun := BeginUntimed(); IsUntimed(begun) && run.Count(Receives, 1, 5, 8, 1) {
			r.Counted()
		} else {
			r.Begin(true, begun, 1, 5, 8, 1)
		}
		if !r.TryEnd() {
			b.Fatal("measured")
		}
	}
}
