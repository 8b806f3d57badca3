package ending

import (
	"testing"
	"time"
)

func TestNotice(t *testing.T) {
	own, decided, config := &Failure{Status: 1}, &Failure{Status: 1, Reported: true}, &Failure{Status: StatusConfig}
	head, other := EndingNode{Head: true}, EndingNode{}
	for _, x := range []struct {
		name string
		node EndingNode
		f    *Failure
		want Notice
	}{
		{"a head whose job went well", head, nil, Notice{Site: true}},
		{"another host whose job went well", other, nil, Notice{}},
		{"a head that fails", head, own, Notice{Server: Resigns, Site: true, Peers: true}},
		{"a head that cannot run so", head, config, Notice{Server: Resigns, Site: true, Peers: true, Latecomers: 4 * time.Second}},
		{"a host that fails", other, own, Notice{Server: Resigns, Site: true}},
		{"a host that cannot run so", other, config, Notice{Server: Resigns, Site: true}},
		{"a host whose head has decided", other, decided, Notice{Server: Resigns, Site: true, Peers: true}},
		{"a head without which the others go on", EndingNode{Head: true, Excluded: true}, own, Notice{Server: Abandons, Site: true}},
		{"a host without which the others go on", EndingNode{Excluded: true}, own, Notice{Server: Abandons}},
		{"such a host, whose head has decided", EndingNode{Excluded: true}, decided, Notice{Server: Abandons}},
	} {
		if got := x.node.Notice(x.f); got != x.want {
			t.Errorf("%s: %+v, want %+v", x.name, got, x.want)
		}
	}
}
