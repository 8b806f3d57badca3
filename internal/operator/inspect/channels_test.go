package inspect

import (
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/openimpi/impi/internal/links"
)

// TestAnswersOverChannels: an answer comes as it is; one that cannot be read, or that is far more than its
// bytes seem, is refused.
func TestAnswersOverChannels(t *testing.T) {
	a := links.Answer{Node: &links.Node{NodeInfo: links.NodeInfo{Job: "heat"}}, Reports: true}
	b, err := packed(a)
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
