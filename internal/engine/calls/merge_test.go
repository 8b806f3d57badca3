package calls

import (
	"bytes"
	"slices"
	"sync"
	"testing"
)

// entry is an entry of a timeline as it waits to be written.
type entry struct {
	begun, ended int64
	calls        []merged
	paused       bool
}

// entries takes those that wait, and wants that none overlaps the one before it.
func entries(t *testing.T, m *Memory) (list []entry) {
	t.Helper()
	var e entry
	m.Traced.take(func(x *Event) {
		if len(e.calls) > 0 && (e.begun != x.Begun || e.ended != x.Ended) {
			t.Errorf("times of an entry differ: %+v, %d and %d", e, x.Begun, x.Ended)
		}
		e.begun, e.ended, e.calls = x.Begun, x.Ended, append(e.calls, merged{x.about(), x.Times})
		e.paused = x.More&paused != 0
		if x.More&^paused > 0 {
			return
		}
		if n := len(list); e.ended < e.begun || n > 0 && e.begun < list[n-1].ended {
			t.Errorf("%+v overlaps %+v", e, list)
		}
		list, e = append(list, e), entry{}
	})
	if len(e.calls) > 0 {
		t.Errorf("an entry has no end: %+v", e)
	}
	return list
}

// byMicroseconds is a memory whose clock counts nanoseconds: calls are short below 25,000, a gap is
// above 10,000, and a burst has at most 200,000.
func byMicroseconds() *Memory {
	m := new(Memory)
	m.bound(1)
	return m
}

func sent(n Number, peer, tag int32, size int64) about {
	return about{uint32(n), peer, tag, NoPeer, size, 1}
}

// TestMerge: short calls are one entry as long as they follow each other closely, all others are as
// they were.
func TestMerge(t *testing.T) {
	m := byMicroseconds()
	m.called(sent(Send, 1, 5, 8), 1000, 2000, false)
	m.called(sent(Recv, 1, 5, 16), 2500, 9000, false)
	m.called(sent(Send, 1, 6, 8), 12000, 13000, false)
	m.called(sent(Send, 2, 6, 8), 13000, 14000, false)
	m.called(sent(Barrier, NoPeer, NoTag, -1), 15000, 15000+25000, false) // is not short
	m.called(sent(Send, 3, 7, 8), 41000, 42000, false)                    // is alone: the next one comes late
	m.called(sent(Barrier, NoPeer, NoTag, -1), 52001, 53000, false)
	m.called(sent(Barrier, NoPeer, NoTag, -1), 53000, 54000, false)
	m.idle(54000+10000, false) // is not late yet
	if n := m.Burst.kinds; n != 1 {
		t.Errorf("%d kinds wait", n)
	}
	m.idle(54000+10001, false)
	want := []entry{
		{1000, 14000, []merged{{about{uint32(Send), NoPeer, NoTag, NoPeer, 24, 1}, 3}, {sent(Recv, 1, 5, 16), 1}}, false},
		{15000, 40000, []merged{{sent(Barrier, NoPeer, NoTag, -1), 1}}, false},
		{41000, 42000, []merged{{sent(Send, 3, 7, 8), 1}}, false},
		{52001, 54000, []merged{{sent(Barrier, NoPeer, NoTag, -1), 2}}, false},
	}
	wantEntries(t, m, want)

	for i := range int64(1000) { // a burst is not longer than that
		m.called(sent(Send, 1, 5, 8), 1e5+i*1000, 1e5+i*1000+500, false)
	}
	m.idle(0, true)
	list, calls := entries(t, m), uint32(0)
	for _, e := range list {
		calls += e.calls[0].times
		if e.ended-e.begun > 200000 {
			t.Errorf("%+v", e)
		}
	}
	if calls != 1000 || len(list) != 5 {
		t.Errorf("%d calls in %d entries", calls, len(list))
	}
	for n := range Number(2*MaxKinds + 1) { // nor has it more kinds
		m.called(sent(n, 1, 5, 8), 2e6+int64(n)*10, 2e6+int64(n)*10+5, false)
	}
	m.idle(0, true)
	if list := entries(t, m); len(list) != 3 || len(list[0].calls) != MaxKinds || len(list[2].calls) != 1 {
		t.Errorf("%+v", list)
	}
}

func wantEntries(t *testing.T, m *Memory, want []entry) {
	t.Helper()
	got := entries(t, m)
	same := len(got) == len(want)
	for i := 0; same && i < len(want); i++ {
		g, w := got[i], want[i]
		same = g.paused == w.paused && g.begun == w.begun && g.ended == w.ended && len(g.calls) == len(w.calls)
		for k := 0; same && k < len(w.calls); k++ {
			same = g.calls[k] == w.calls[k]
		}
	}
	if !same {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
}

// TestMergePending: a call whose end was not looked up is merged when the next one ends; if it has
// waited after all it is as it was. A call that sends has no beginning of its own, unless it has
// stalled.
func TestMergePending(t *testing.T) {
	m := byMicroseconds()
	b := &m.Burst
	receive := sent(Recv, 1, 5, 8)
	m.called(sent(Send, 1, 5, 8), late, 1000, false)
	if !m.pends(receive, 1100, false) {
		t.Fatal("nothing pends, and it does not either")
	}
	if m.pends(sent(Recv, 2, 5, 8), 1150, false) {
		t.Error("two calls pend")
	}
	m.called(sent(Probe, 2, 5, -1), 1150, 1160, false) // of another thread: the receive goes on
	b.open.Store(0)
	m.called(sent(Send, 1, 5, 8), late, 2000, false)
	m.pends(receive, 2100, false)
	m.idle(90000, false) // while it waits: it is not written, and what was before is
	wantEntries(t, m, []entry{{1000, 2000, []merged{{sent(Send, 1, 5, 16), 2}, {sent(Probe, 2, 5, -1), 1}, {receive, 1}}, false}})
	m.called(receive, 2100, 100000, false)
	m.called(sent(Send, 1, 5, 8), 101000, 151000, false)
	m.called(sent(Send, 1, 5, 8), late, 151500, false)
	m.pends(receive, 152000, false)
	b.open.Store(0)
	m.idle(0, true)
	wantEntries(t, m, []entry{
		{2100, 100000, []merged{{receive, 1}}, false}, {101000, 151000, []merged{{sent(Send, 1, 5, 8), 1}}, false},
		{151500, 152000, []merged{{sent(Send, 1, 5, 8), 1}, {receive, 1}}, false},
	})
	m.pends(receive, 200000, false)
	m.idle(0, true) // the end: nothing is left
	wantEntries(t, m, []entry{{200000, 200000, []merged{{receive, 1}}, false}})
}

// TestMergeFull: no part of an entry is left out, and all calls are counted.
func TestMergeFull(t *testing.T) {
	m := byMicroseconds()
	for i := range int64(RingSize/2 + 3) { // entries of two kinds
		m.called(sent(Send, 1, 5, 8), i*100000, i*100000+10, false)
		m.called(sent(Send, 1, 5, 8), i*100000+20, i*100000+30, false)
		m.called(sent(Recv, 1, 5, 8), i*100000+40, i*100000+50, false)
	}
	m.idle(0, true)
	if list := entries(t, m); len(list) != RingSize/2 || m.Traced.dropped.Load() != 9 {
		t.Errorf("%d entries, %d calls left out", len(list), m.Traced.dropped.Load())
	}
}

// TestMergeThreads: calls of several threads are all counted while another takes the entries.
func TestMergeThreads(t *testing.T) {
	m := byMicroseconds()
	const threads, each = 4, 5000
	var all sync.WaitGroup
	var clock int64
	var turn sync.Mutex
	tick := func() int64 { turn.Lock(); defer turn.Unlock(); clock += 100; return clock }
	for i := range threads {
		all.Add(1)
		go func() {
			defer all.Done()
			for range each {
				begun := tick()
				w := sent(Recv, int32(i), 5, 8)
				if m.pends(w, begun, false) {
					m.Burst.open.Store(0)
				} else {
					m.called(w, begun, tick(), false)
				}
				m.called(sent(Send, int32(i), 5, 8), late, tick(), false)
			}
		}()
	}
	done := make(chan struct{})
	go func() { all.Wait(); close(done) }()
	calls := uint64(0)
	count := func() { m.Traced.take(func(e *Event) { calls += uint64(e.Times) }) }
	for over := false; !over; {
		select {
		case <-done:
			over = true
		default:
		}
		m.idle(tick(), over)
		count()
	}
	if all := calls + m.Traced.dropped.Load(); all != 2*threads*each {
		t.Errorf("%d calls of %d", all, 2*threads*each)
	}
}

// TestMergedLine: how merged calls are written.
func TestMergedLine(t *testing.T) {
	var out bytes.Buffer
	line := &Timeline{to: &out, texts: make(map[about]text), scale: 1, at: TimelineProc{Rank: 3, Host: 1, Comm: func(uint64) string { return "a\"b" }}}
	m := byMicroseconds()
	m.called(sent(Send, 1, 5, 8), 1000, 2000, false)
	m.called(sent(Send, 1, 5, 8), 2000, 3000, false)
	m.called(sent(Barrier, NoPeer, NoTag, -1), 3000, 4250, false)
	m.idle(0, true)
	m.Traced.take(line.write)
	line.flush()
	all := parsed(t, append(bytes.Replace(out.Bytes(), []byte(","), []byte("["), 1), ']'))
	if len(all) != 1 {
		t.Fatalf("%+v", all)
	}
	x := all[0]
	send, barrier := x.Args["MPI_Send"].(map[string]any), x.Args["MPI_Barrier"].(map[string]any)
	if x.Ph != "X" || x.Name != "short calls" || x.Cat != "short" || x.Pid != 1 || x.Tid != 3 || x.Ts != 1 || x.Dur != 3.25 || x.Args["calls"] != 3.0 {
		t.Errorf("%+v", x)
	}
	if send["calls"] != 2.0 || send["bytes"] != 16.0 || send["peer"] != 1.0 || send["tag"] != 5.0 || send["comm"] != `a"b` {
		t.Errorf("%+v", send)
	}
	if barrier["calls"] != 1.0 || barrier["bytes"] != nil || barrier["peer"] != nil || barrier["comm"] != `a"b` {
		t.Errorf("%+v", barrier)
	}
}

// TestMergedSources: merged calls have a source as far as all of a name have the same.
func TestMergedSources(t *testing.T) {
	m := new(Memory)
	m.bound(1)
	exchange := func(source int32) about { return about{uint32(Sendrecv), 1, 5, source, 8, 1} }
	m.called(exchange(3), 1000, 1100, false)
	m.called(exchange(3), 1100, 1200, false)
	m.idle(1200, true)
	m.called(exchange(3), 2000, 2100, false)
	m.called(exchange(2), 2100, 2200, false)
	m.idle(2200, true)
	var got []int32
	m.Traced.take(func(e *Event) { got = append(got, e.Source) })
	if !slices.Equal(got, []int32{3, NoPeer}) {
		t.Errorf("got %d", got)
	}
}
