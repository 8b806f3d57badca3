package links

import (
	"errors"
	"strings"
	"testing"
	"time"
)

// TestSparesOfNodes: the node that sees most of a spare site counts, and its own says what it has.
// It is no site of the job.
func TestSparesOfNodes(t *testing.T) {
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	node := func(site string, client int, spares ...Spare) FoundNode {
		n := &Node{NodeInfo: NodeInfo{Job: "j", ID: "x", Site: site, Client: client, PID: 100 + client}, Spares: spares}
		if client >= 0 {
			n.Sites = []Site{{Name: "alpha", Client: 0, Own: true, Procs: 1}, {Name: "beta", Client: 1, Own: true, First: 1, Procs: 1}}
		}
		return FoundNode{About: n.NodeInfo, Node: n}
	}
	silent := FoundNode{About: NodeInfo{Job: "j", ID: "x", Site: "mute", Client: -1, PID: 7}, Err: errors.New("it is stopped")}
	jobs := Merge([]FoundNode{
		node("alpha", 0, Spare{Name: "delta", State: "lost", Since: at, Why: "killed"}, Spare{Name: "eps", State: "absent"}, Spare{Name: "here", State: "waiting", Since: at}),
		node("beta", 1, Spare{Name: "delta", State: "waiting", Since: at, Hosts: []string{"10.0.0.9"}}),
		node("here", -1, Spare{Name: "here", State: "taken", Procs: 3}), silent,
	})
	if len(jobs) != 1 || len(jobs[0].Sites) != 2 || len(jobs[0].Spares) != 4 {
		t.Fatalf("%+v", jobs)
	}
	now := at.Add(time.Minute)
	var all []string
	for i := range jobs[0].Spares {
		all = append(all, jobs[0].Spares[i].Text(now))
	}
	text := strings.Join(all, "\n")
	for _, want := range []string{"spare site delta  waiting, since 03:04:05", "spare site eps  has not come", "spare site here  taken: 3 procs were spawned there", "  node 99", "spare site mute  has not come  node 7: it is stopped"} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
	if !jobs[0].HasPID(7) || jobs[0].HasPID(8) {
		t.Error("the job does not know the processes of its spare sites")
	}
}
