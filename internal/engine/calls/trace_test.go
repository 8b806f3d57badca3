package calls

import (
	"bytes"
	"encoding/json"
	"testing"
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
	var b bytes.Buffer
	line := Trace(&b, Place{Rank: 3, Host: 1, HostName: `a"b`, Comm: func(id uint64) string {
		if id != 7 {
			t.Errorf("context %d", id)
		}
		return "</script>"
	}})
	begun := Begin()
	End(Send, begun, 2, 5, 64, 8)
	End(Barrier, begun, Nobody, NoTag, -1, 0)
	line.Close()
	all := parsed(t, b.Bytes())
	if len(all) != 4 || all[0].Args["name"] != `host 1: a"b` || all[1].Args["name"] != "rank 3" {
		t.Fatalf("%+v", all)
	}
	if x := all[2]; x.Ph != "X" || x.Name != "MPI_Send" || x.Cat != "send" || x.Pid != 1 || x.Tid != 3 || x.Dur <= 0 || x.Ts < 1e15 ||
		x.Args["peer"] != 2.0 || x.Args["tag"] != 5.0 || x.Args["bytes"] != 64.0 || x.Args["comm"] != "</script>" {
		t.Errorf("%+v", x)
	}
	if x := all[3]; x.Name != "MPI_Barrier" || len(x.Args) != 0 {
		t.Errorf("%+v", x)
	}
	counted := make(map[string]uint64)
	for _, c := range Counts() {
		counted[c.String()] = c.Calls
	}
	if counted["MPI_Send"] != 1 || counted["MPI_Barrier"] != 1 || len(counted) != 2 {
		t.Errorf("%v", counted)
	}

	var r Traced
	for i := range Ring + 5 {
		r.add(Send, 1, 2, i, 0, 0, 0)
	}
	next := int32(0)
	r.take(func(e *Event) {
		if e.Peer != next {
			t.Fatalf("%d comes before %d", e.Peer, next)
		}
		next++
	})
	if next != Ring || r.dropped.Load() != 5 {
		t.Errorf("%d were written, %d left out", next, r.dropped.Load())
	}
	r.add(Send, 1, 2, 9, 0, 0, 0)
	r.take(func(e *Event) { next = e.Peer })
	if next != 9 {
		t.Errorf("after that came %d", next)
	}
}
