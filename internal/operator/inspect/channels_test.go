package inspect

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/openimpi/impi/core/agent"
	"github.com/openimpi/impi/core/wire"
	"github.com/openimpi/impi/internal/links"
)

// TestAnswersOverChannels: an answer comes as it is; one that cannot be read, or that is far more
// than its bytes seem, is refused.
func TestAnswersOverChannels(t *testing.T) {
	a := links.Answer{Node: &links.Node{NodeInfo: links.NodeInfo{Job: "heat"}}, Reports: true}
	b, err := compressed(a)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := unpacked(b, maxAnswer); err != nil || !reflect.DeepEqual(got, a) {
		t.Errorf("%+v, %v", got, err)
	}
	pack := func(text string) []byte {
		var b bytes.Buffer
		z := gzip.NewWriter(&b)
		_, err1 := z.Write([]byte(text))
		if err := errors.Join(err1, z.Close()); err != nil {
			t.Fatal(err)
		}
		return b.Bytes()
	}
	bomb := pack(`{"error":"` + strings.Repeat("x", 2*maxAnswer) + `"}`)
	for name, c := range map[string]struct {
		b    []byte
		want string
	}{
		"not compressed": {[]byte(`{}`), "cannot be read"},
		"cut off":        {b[:len(b)-5], "cannot be read"},
		"not JSON":       {pack("{"), "cannot be read"},
		"a bomb":         {bomb, "more than 16777216 bytes"},
		"of objects":     {pack(`{"others":[{}` + strings.Repeat(",{}", 100_000) + `]}`), "elements of lists or objects"},
		"of numbers":     {pack(`{"node":{"views":[0` + strings.Repeat(",0", 100_000) + `]}}`), "elements of lists or objects"},
		"of nothing":     {pack(`{"node":{"views":[` + strings.Repeat("\n null ,", 300_000) + `null]}}`), "elements of lists or objects"},
		"behind text":    {pack(`{"error":"\\\"[", "others":[{}` + strings.Repeat(",{}", 100_000) + `]}`), "elements of lists or objects"},
		"half of it":     {bomb[:len(bomb)*3/4], "more than 16777216 bytes"}, // nobody has read to its end
	} {
		if got, err := unpacked(c.b, maxAnswer); err == nil || !strings.Contains(err.Error(), c.want) || !reflect.DeepEqual(got, links.Answer{}) {
			t.Errorf("%s (%d bytes): %v", name, len(c.b), err)
		}
	}
}

// TestQuestionsOverChannels: nodes of other sites get nothing but what status and links show.
func TestQuestionsOverChannels(t *testing.T) {
	ready := make(chan struct{})
	close(ready)
	c := &Control{Settings: Settings{Ready: ready}, asked: make(chan struct{}, mostAsked)}
	for _, q := range []string{`{"Op":"reload"}`, `{"Op":"reread"}`, `{"Op":"drain"}`, `{"Op":"links","Host":"10.0.0.1"}`} {
		if a, err := unpacked(c.ServeChannel(t.Context(), 1, []byte(q)), maxAnswer); err != nil || !strings.Contains(a.Error, "may ask for links only") || a.Node != nil {
			t.Errorf("%s: %+v, %v", q, a, err)
		}
	}
	if b := c.ServeChannel(t.Context(), 1, []byte(`{"Op":`)); b != nil {
		t.Errorf("%d bytes for what is no question", len(b))
	}
	if len(c.asked) != 0 {
		t.Errorf("%d questions are still counted", len(c.asked))
	}
	for range mostAsked {
		c.asked <- struct{}{}
	}
	if b := c.ServeChannel(t.Context(), 1, []byte(`{"Op":"reload"}`)); b != nil {
		t.Errorf("%d bytes, though %d others ask", len(b), mostAsked)
	}
}

// TestAskInTurn: where one host of a site does not answer the others are asked, and one that is
// busy is not one that cannot be asked.
func TestAskInTurn(t *testing.T) {
	answer, silent := []byte("yes"), errors.New("silent")
	type host = wire.HostRank
	node := func(of map[host]error) askFunc { // what becomes of questions to the hosts to which it has channels
		return func(_ context.Context, hosts []host, _ []byte) ([]byte, host, error) {
			why := agent.ErrAskClosed
			for _, h := range hosts {
				switch err, ok := of[h]; {
				case !ok:
				case err == nil:
					return answer, h, nil
				case errors.Is(err, agent.ErrNoQuestion):
					why = err
				default:
					return nil, h, err
				}
			}
			return nil, -1, why
		}
	}
	for name, c := range map[string]struct {
		nodes []map[host]error
		want  error // nil: an answer
	}{
		"the first":                 {[]map[host]error{{1: nil}}, nil},
		"the second channel":        {[]map[host]error{{}, {2: nil}}, nil},
		"the second host":           {[]map[host]error{{1: silent, 2: nil}}, nil},
		"of the second":             {[]map[host]error{{1: silent}, {3: nil}}, nil},
		"none":                      {[]map[host]error{{}, {}}, links.ErrNotAsked},
		"all silent":                {[]map[host]error{{1: silent, 2: silent, 3: silent}}, silent},
		"busy":                      {[]map[host]error{{1: agent.ErrAskBusy}, {}}, errBusy},
		"busy, and another is free": {[]map[host]error{{1: agent.ErrAskBusy}, {2: nil}}, nil},
		"silent, and others busy":   {[]map[host]error{{1: silent, 2: agent.ErrAskBusy}}, silent},
	} {
		var ask []askFunc
		for _, n := range c.nodes {
			ask = append(ask, node(n))
		}
		if data, err := askInTurn(t.Context(), ask, []host{1, 2, 3}, links.Request{}); !errors.Is(err, c.want) || (string(data) == "yes") != (c.want == nil) {
			t.Errorf("%s: %q, %v", name, data, err)
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	whole, _ := ctx.Deadline()
	asked := 0
	_, err := askInTurn(ctx, []askFunc{func(ctx context.Context, hosts []host, question []byte) ([]byte, host, error) {
		asked++
		var r links.Request
		if at, _ := ctx.Deadline(); json.Unmarshal(question, &r) != nil || r.Limit <= 0 || r.Limit >= time.Until(at) {
			t.Errorf("question %d gives %v for an answer that is wanted in %v", asked, r.Limit, time.Until(at))
		}
		if at, ok := ctx.Deadline(); !ok || at.Equal(whole) {
			t.Errorf("question %d may take all of the time", asked)
		}
		cancel()
		return nil, hosts[0], ctx.Err()
	}}, []host{1, 2}, links.Request{})
	if asked != 1 || !errors.Is(err, context.Canceled) {
		t.Errorf("%d questions, %v", asked, err)
	}
}

// TestAdmit: a site has some questions at a time, whichever of its hosts asks, and another one has
// its own.
func TestAdmit(t *testing.T) {
	c := &Control{}
	var over func()
	for range mostAsked {
		var ok bool
		if over, ok = AdmitQuestion(c, 1); !ok {
			t.Fatal("not admitted")
		}
	}
	if _, ok := AdmitQuestion(c, 1); ok {
		t.Error("one more is admitted")
	}
	if _, ok := AdmitQuestion(c, 2); !ok {
		t.Error("another site is not admitted")
	}
	over()
	over()
	if _, ok := AdmitQuestion(c, 1); !ok {
		t.Error("none is admitted when one is over")
	}
	if _, ok := AdmitQuestion(c, 1); ok {
		t.Error("one that is over counts twice")
	}
}

// TestUnanswered: that there was no way to a site is said only if there was none at all.
func TestUnanswered(t *testing.T) {
	way := fmt.Errorf("%w: x", links.ErrNotAsked)
	for _, c := range []struct {
		errs []error
		no   bool
		want string
	}{
		{[]error{way}, true, "not asked: x: run the command there too"},
		{[]error{way, way, links.ErrSilent}, false, links.ErrSilent.Error()},
		{[]error{way, errBusy}, false, "it is busy: too many questions"},
		{[]error{nil, nil}, false, "its node says nothing of its links"},
	} {
		var u unanswered
		for _, err := range c.errs {
			u.add(err)
		}
		if u.notAsked() != c.no || !strings.HasPrefix(u.Error(), c.want) || strings.Count(u.Error(), c.want) != 1 {
			t.Errorf("%v: %q", c.errs, u.Error())
		}
	}
}
