package membership

import (
	"errors"
	"slices"
	"testing"
)

func TestCounts(t *testing.T) {
	c := NewCounts(3, 8)
	for host, procs := range []int{2, 8, 1} {
		if c.Complete() {
			t.Fatalf("whole without host %d", host)
		}
		if all, err := ReadCounts(c.Answer(), 3); len(all) > 0 || err != nil {
			t.Fatalf("%v, %v: host %d is not there", all, err, host)
		}
		for range 2 {
			if err := c.Add(Count{host, procs}.Question()); err != nil {
				t.Fatal(err)
			}
		}
	}
	if all, err := ReadCounts(c.Answer(), 3); !c.Complete() || err != nil || !slices.Equal(all, []int{2, 8, 1}) {
		t.Errorf("%v, %v", all, err)
	}
	for _, wrong := range []string{"", "[]", `{"host":3,"procs":1}`, `{"host":-1,"procs":1}`, `{"host":0,"procs":9}`, `{"host":0}`} {
		if err := c.Add([]byte(wrong)); !errors.Is(err, ErrCount) {
			t.Errorf("%q: %v", wrong, err)
		}
	}
	for _, wrong := range []string{"", "{}", "[1,2]", `"malformed"`} {
		if all, err := ReadCounts([]byte(wrong), 3); !errors.Is(err, ErrCount) {
			t.Errorf("%q: %v, %v", wrong, all, err)
		}
	}
}
