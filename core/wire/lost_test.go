package wire

import (
	"strings"
	"testing"
)

func TestLost(t *testing.T) {
	l := Lost{First: 2, Last: 3, Host: true, Status: 137, Text: "site beta"}
	b := AppendLost([]byte{9}, l)[1:]
	if got, ok := ParseLost(b, 4); !ok || got != l {
		t.Errorf("%+v becomes %+v %v", l, got, ok)
	}
	if _, ok := ParseLost(b, 3); ok {
		t.Error("a rank that the job has not")
	}
	if _, ok := ParseLost(b[:lostSize-1], 4); ok {
		t.Error("a part of it")
	}
	if _, ok := ParseLost(AppendLost(nil, Lost{First: 3, Last: 2}), 4); ok {
		t.Error("from 3 to 2")
	}
	long := AppendLost(nil, Lost{Text: strings.Repeat("x", 2*MaxFail)})
	if got, ok := ParseLost(long, 1); !ok || len(long) != MaxLost || len(got.Text) != MaxFail {
		t.Errorf("%d bytes of text, %v", len(got.Text), ok)
	}
	if _, ok := ParseLost(append(long, 0), 1); ok {
		t.Error("more text than there may be")
	}
}
