package meetings_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/openimpi/impi/core/dynamic"
	"github.com/openimpi/impi/core/wire"
	"github.com/openimpi/impi/internal/meetings"
	"github.com/openimpi/impi/internal/wireup"
)

var errNobody = errors.New("nobody is there")

// asks has each of some procs ask whether each of some procs of another world lives, all of one
// node.
func asks(t *testing.T, n *node, procs, peers int) {
	t.Helper()
	for p := range procs {
		for peer := range peers {
			n.HandleMessage(now, proc(p), wireup.Message{Kind: wireup.KindOpen, Peer: wire.WorldRank(peer), Meeting: &wireup.OtherWorld{
				World: other[:], Secret: key, Card: card(t), LifeCheck: true,
			}})
		}
	}
}

// dials are the links that are to be dialled, and counts the answers that there is none.
func dials(t *testing.T, n *node) (to []meetings.Step[proc, int], denied int) {
	t.Helper()
	for _, s := range steps(n) {
		switch {
		case s.Action == meetings.Dial:
			to = append(to, s)
		case s.Action == meetings.Answer && s.Message.Reason == errNobody.Error():
			denied++
		default:
			t.Errorf("%+v", s)
		}
	}
	return to, denied
}

// lost is the end of a search that has reached nobody.
func lost(n *node, x meetings.Step[proc, int]) {
	n.Links.Pairs.Stop(x.Pair)
	n.SearchEnded(x.Proc, x.Pair, x.Question, dynamic.DialStep{Action: dynamic.GiveUp}, errNobody)
}

// found is the end of a search that needs no answer: there is a link, or none is needed.
func found(n *node, x meetings.Step[proc, int]) {
	n.SearchEnded(x.Proc, x.Pair, x.Question, dynamic.DialStep{Action: dynamic.Abandon}, nil)
}

// TestSearchEnds: why there is no link is told, and that the peer lives if its node has said so.
func TestSearchEnds(t *testing.T) {
	for _, c := range []struct {
		last        dynamic.DialStep
		told, lives bool
	}{
		{dynamic.DialStep{Action: dynamic.KeepLink}, false, false},
		{dynamic.DialStep{Action: dynamic.Abandon}, false, false},
		{dynamic.DialStep{Action: dynamic.GiveUp}, true, false},
		{dynamic.DialStep{Action: dynamic.GiveUp, Verdict: dynamic.Leaving}, true, false},
		{dynamic.DialStep{Action: dynamic.GiveUp, Verdict: dynamic.StillLinked}, true, true},
		{dynamic.DialStep{Action: dynamic.GiveUp, Yielded: true}, true, true},
	} {
		n := newNode()
		asks(t, n, 1, 1)
		first, _ := dials(t, n)
		n.SearchEnded(first[0].Proc, first[0].Pair, first[0].Question, c.last, errNobody)
		told := steps(n)
		if len(told) > 0 != c.told || c.told && (told[0].Message.Meeting.Lives != c.lives || !strings.Contains(told[0].Message.Reason, errNobody.Error())) {
			t.Errorf("%+v: %+v", c.last, told)
		}
	}
}

// TestDialledQuestion: a question is answered by a link and by a verdict, and not by a failure.
func TestDialledQuestion(t *testing.T) {
	for _, c := range []struct {
		r    dynamic.DialResult
		want int
	}{
		{dynamic.DialResult{}, 2},
		{dynamic.DialResult{Err: errNobody, Verdict: dynamic.Leaving}, 2},
		{dynamic.DialResult{Err: errNobody, Failure: dynamic.NotListening}, 0},
	} {
		n := newNode()
		asks(t, n, 1, 4)
		first, _ := dials(t, n)
		n.Dialling(first[0].Question)
		n.Dialled(first[0].Question, c.r)
		if more, _ := dials(t, n); len(more) != c.want {
			t.Errorf("%+v: %d more are dialled, want %d", c.r, len(more), c.want)
		}
	}
}

// TestLostNodeIsAskedOnce: of the questions to a node that is not there one is dialled, and its
// answer is that of all that were asked before the last dial; what is asked later is dialled again.
func TestLostNodeIsAskedOnce(t *testing.T) {
	n := newNode()
	asks(t, n, 16, 16)
	first, denied := dials(t, n)
	if len(first) != 1 || denied != 0 {
		t.Fatalf("%d are dialled at first, %d denied", len(first), denied)
	}
	n.Dialling(first[0].Question)
	asks(t, n, 17, 16) // 16 more, and the others once more
	lost(n, first[0])
	second, denied := dials(t, n)
	if len(second) != 1 || denied != 256 {
		t.Fatalf("then %d are dialled, %d denied", len(second), denied)
	}
	if x := second[0].Pair; x.Local.Rank != 16 {
		t.Errorf("the second is %v, which was asked before the dial", x)
	}
	for range 2 { // it dials once more: that answers what has come meanwhile
		n.Dialling(second[0].Question)
	}
	lost(n, second[0])
	if third, denied := dials(t, n); len(third) != 0 || denied != 16 {
		t.Errorf("in the end %d are dialled, %d denied", len(third), denied)
	}
	asks(t, n, 1, 1)
	if again, _ := dials(t, n); len(again) != 1 {
		t.Error("it cannot be asked again")
	}
}

// TestLivingNodeIsAskedMore: a node that answers is asked about the others, too, by so many links
// at once that it has not answered yet.
func TestLivingNodeIsAskedMore(t *testing.T) {
	n := newNode()
	asks(t, n, 8, 8)
	under, _ := dials(t, n)
	total := len(under)
	for answers := 1; len(under) > 0; answers++ {
		x := under[0]
		n.Dialling(x.Question)
		n.Dialled(x.Question, dynamic.DialResult{})
		more, _ := dials(t, n)
		under, total = append(under[1:], more...), total+len(more)
		if want := min(answers+1, meetings.MaxQuestions, 64-total+len(under)); len(under) != want {
			t.Fatalf("%d are not answered after %d, want %d", len(under), total, want)
		}
		n.Links.Pairs.Made(x.Pair)
		n.SetLink(x.Pair, "tcp")
		found(n, x)
		if more, _ := dials(t, n); len(more) > 0 {
			t.Fatalf("the end of a search that was answered begins %d", len(more))
		}
	}
	if total != 64 {
		t.Errorf("%d were dialled in all, want 64", total)
	}
}

// TestNodeIsLostWhileItIsAsked: a node that has answered is not there any more.
func TestNodeIsLostWhileItIsAsked(t *testing.T) {
	n := newNode()
	asks(t, n, 8, 8)
	under, _ := dials(t, n)
	for range 10 {
		n.Dialled(under[0].Question, dynamic.DialResult{})
		more, _ := dials(t, n)
		under = append(under[1:], more...)
	}
	if len(under) != 11 {
		t.Fatalf("%d are dialled at once", len(under))
	}
	for i, x := range under {
		n.Dialling(x.Question)
		lost(n, x)
		more, denied := dials(t, n)
		if want := map[int]int{0: 64 - 20}[i]; len(more) != 0 || denied != max(want, 1) {
			t.Fatalf("after %d in vain %d are dialled, %d denied", i+1, len(more), denied)
		}
	}
}

// TestQuestionsThatNeedNoDial: whoever has got a link meanwhile or has ended does not wait, and a
// search that ends without an answer of the node, as it is not needed any more, has another one
// begin.
func TestQuestionsThatNeedNoDial(t *testing.T) {
	n := newNode()
	asks(t, n, 3, 2)
	first, _ := dials(t, n)
	n.Dialling(first[0].Question)
	x := dynamic.WorldPair{Local: dynamic.WorldProc{World: own, Rank: 1}, Peer: dynamic.WorldProc{World: other}}
	if v := n.Arrive(x, dynamic.ResumableID{}, receives); v != dynamic.Accepted {
		t.Fatalf("its own link is refused: %v", v)
	}
	n.SetLink(x, "tcp")
	n.ProcEnded(2)
	lost(n, first[0])
	if more, denied := dials(t, n); len(more) != 0 || denied != 3 { // the first and 0 and 1 about rank 1
		t.Errorf("%v are dialled, %d denied", more, denied)
	}
	asks(t, n, 1, 2)
	first, _ = dials(t, n)
	n.Links.Pairs.Stop(first[0].Pair)
	found(n, first[0])
	if more, denied := dials(t, n); len(more) != 1 || denied != 0 {
		t.Errorf("%v are dialled, %d denied", more, denied)
	}
}

// TestQuestionBeforeTheLastSearchIsOver: the other end's link has come while a question was
// dialled, and has broken, too. The search, which is over as soon as it notices the link, does not
// answer what is asked then.
func TestQuestionBeforeTheLastSearchIsOver(t *testing.T) {
	n := newNode()
	asks(t, n, 1, 1)
	first, _ := dials(t, n)
	n.Dialling(first[0].Question)
	if v := n.Arrive(first[0].Pair, dynamic.ResumableID{}, receives); v != dynamic.TieLost { // it is not prior
		t.Fatal(v)
	}
	n.Links.Pairs.LostTie(first[0].Pair)
	if v := n.Arrive(first[0].Pair, dynamic.ResumableID{}, receives); v != dynamic.Accepted {
		t.Fatal(v)
	}
	n.SetLink(first[0].Pair, "tcp")
	hear(n, 0, wireup.KindForget, wireup.OtherWorld{World: other[:]})
	asks(t, n, 1, 1)
	found(n, first[0])
	if again, _ := dials(t, n); len(again) != 1 || again[0].Pair != first[0].Pair {
		t.Errorf("%v are dialled", again)
	}
}
