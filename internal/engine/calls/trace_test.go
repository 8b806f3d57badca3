package calls

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"
)

type shown struct {
	Ph, Name, Cat string
	Pid, Tid      int
	Ts, Dur       float64
	Args          map[string]any
}

func parsed(t *testing.T, b []byte) (events []shown) {
	t.Helper()
	if err := json.Unmarshal(b, &events); err != nil {
		t.Fatalf("%v in\n%s", err, b)
	}
	return events
}

// TestTimeline: calls become trace events, and those that find no room are counted.
func TestTimeline(t *testing.T) {
	if Begin() != 0 {
		t.Fatal("a clock is read before anybody wants that")
	}
	file, err := os.Create(filepath.Join(t.TempDir(), "calls.json"))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	line := Trace(&JSONList{F: file}, TimelineProc{Rank: 3, Host: 1, HostName: `a"b`, Comm: func(id uint64) string {
		if id != 7 {
			t.Errorf("context %d", id)
		}
		return "</script>"
	}}, true)
	begun := Begin()
	End(Send, begun, 2, 5, 64, 8)
	End(Barrier, begun, NoPeer, NoTag, -1, 0)
	EndExchange(Sendrecv, begun, 1, 5, 0, 64, 8)
	line.Close()
	b, err := os.ReadFile(file.Name())
	if err != nil {
		t.Fatal(err)
	}
	all := parsed(t, b)
	if len(all) != 5 || all[0].Args["name"] != `host 1: a"b` || all[1].Args["name"] != "rank 3" {
		t.Fatalf("%+v", all)
	}
	if x := all[2]; x.Ph != "X" || x.Name != "MPI_Send" || x.Cat != "send" || x.Pid != 1 || x.Tid != 3 || x.Dur <= 0 || x.Ts < 1e15 ||
		x.Args["peer"] != 2.0 || x.Args["tag"] != 5.0 || x.Args["bytes"] != 64.0 || x.Args["comm"] != "</script>" {
		t.Errorf("%+v", x)
	}
	if all[2].Args["source"] != nil {
		t.Errorf("a call that only sends has a source: %+v", all[2])
	}
	if x := all[3]; x.Name != "MPI_Barrier" || len(x.Args) != 0 {
		t.Errorf("%+v", x)
	}
	if x := all[4]; x.Name != "MPI_Sendrecv" || x.Args["peer"] != 1.0 || x.Args["source"] != 0.0 {
		t.Errorf("%+v", x)
	}
	if all := Counts(); len(all) > 0 {
		t.Errorf("a trace counts %v, which nobody wants", all)
	}
	on.Store(0)
	Enable()
	End(Send, Begin(), 2, 5, 64, 8)
	Add(Barrier, time.Second)
	counted := make(map[string]uint64)
	for _, c := range Counts() {
		counted[c.String()] = c.Calls
	}
	if counted["MPI_Send"] != 1 || counted["MPI_Barrier"] != 1 || len(counted) != 2 {
		t.Errorf("%v", counted)
	}

	for _, c := range Counts() {
		if c.Number == Barrier && (c.Time < 950*time.Millisecond || c.Time > 1050*time.Millisecond) {
			t.Errorf("a second is counted as %v", c.Time)
		}
	}
	on.Store(0)

	var r Traced
	for i := range RingSize + 5 {
		r.put([]*Event{{Peer: int32(i), Times: 1}}, 1, 2, 0)
	}
	next := int32(0)
	r.take(func(e *Event) {
		if e.Peer != next {
			t.Fatalf("%d comes before %d", e.Peer, next)
		}
		next++
	})
	if next != RingSize || r.dropped.Load() != 5 {
		t.Errorf("%d were written, %d left out", next, r.dropped.Load())
	}
	r.put([]*Event{{Peer: 9, Times: 1}}, 1, 2, 0)
	r.take(func(e *Event) { next = e.Peer })
	if next != 9 {
		t.Errorf("after that came %d", next)
	}
}

// disk is a file for which there is so much room.
type disk struct {
	b        []byte
	at, room int
}

func (d *disk) Write(b []byte) (int, error) {
	n := min(len(b), d.room-d.at)
	d.b = append(d.b[:d.at], b[:n]...)
	if d.at += n; n < len(b) {
		return n, syscall.ENOSPC
	}
	return n, nil
}

func (d *disk) Seek(to int64, _ int) (int64, error) { d.at = int(to); return to, nil }

func (d *disk) Truncate(size int64) error { d.b = d.b[:size]; return nil }

// TestList: whenever a disk is full, the file is valid, has the first entries, and says how long
// they are.
func TestList(t *testing.T) {
	first := len("[{\"n\":0}\n")
	for room := range 100 {
		d := &disk{room: room}
		l, written, wrote := JSONList{F: d}, 0, 0
		for i := range 8 {
			sep := ","
			if i == 0 {
				sep = "["
			}
			b := []byte(fmt.Sprintf("%s{\"n\":%d}\n,{\"n\":%d}\n", sep, 2*i, 2*i+1))
			n, err := l.Write(b)
			if written += n; err != nil {
				if !errors.Is(err, syscall.ENOSPC) {
					t.Fatal(err)
				}
				break
			}
			wrote++
			if !json.Valid(d.b) {
				t.Fatalf("room for %d: after a write %q", room, d.b)
			}
		}
		if room < first+len(listEnd) {
			if len(d.b) != 0 || written != 0 {
				t.Errorf("room for %d: %q, %d told", room, d.b, written)
			}
			continue
		}
		var entries []struct{ N int }
		if err := json.Unmarshal(d.b, &entries); err != nil {
			t.Fatalf("room for %d: %v in %q", room, err, d.b)
		}
		for i, e := range entries {
			if e.N != i {
				t.Errorf("room for %d: %q", room, d.b)
			}
		}
		if len(entries) < 2*wrote || written+len(listEnd) != len(d.b) {
			t.Errorf("room for %d: %d writes, %d bytes of %q", room, wrote, written, d.b)
		}
	}
}
