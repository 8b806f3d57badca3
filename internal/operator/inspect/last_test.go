package inspect

import (
	"testing"

	"github.com/openimpi/impi/internal/links"
)

// TestLastWords: only sites that want the last words are waited for, whatever comes first.
func TestLastWords(t *testing.T) {
	var l finalAnswers
	gone := -1
	want := func(when string, all bool) {
		t.Helper()
		if l.all(func(client int, hasAsked bool) bool { return client == gone || client == 3 && !hasAsked }) != all {
			t.Errorf("%s: %t", when, !all)
		}
	}
	want("nobody wants them", true)
	l.wanted(2)
	want("2 wants them", false)
	l.heard(1)
	want("1 has them", false)
	l.heard(2)
	want("2 has them", true)
	l.wanted(1)
	want("1 has had them before", true)
	l.wanted(3)
	want("3 has never asked", true)
	l.askedBy(3)
	want("3 has asked", false)
	gone = 3
	want("3 is gone", true)
}

func TestIsLast(t *testing.T) {
	node := func(states ...links.ProcState) *links.Node {
		n := &links.Node{}
		for _, s := range states {
			n.Procs = append(n.Procs, links.Proc{State: s})
		}
		return n
	}
	done := node(links.ProcFinished, links.ProcEnded)
	for what, c := range map[string]struct {
		a    links.Answer
		want bool
	}{
		"all, on two hosts":    {links.Answer{Node: done, Others: []links.HostAnswer{{Node: done}}}, true},
		"one runs":             {links.Answer{Node: done, Others: []links.HostAnswer{{Node: node(links.ProcFinished, links.ProcRunning)}}}, false},
		"a host has not said":  {links.Answer{Node: done, Others: []links.HostAnswer{{Error: "silent"}}}, false},
		"nobody has said much": {links.Answer{}, false},
	} {
		if got := isLast(c.a, 4); got != c.want {
			t.Errorf("%s: %t", what, got)
		}
	}
}
