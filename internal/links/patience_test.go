package links

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// TestPatience: nodes that do not answer at once are waited for, and those that do not answer then
// are not waited for at each further look.
func TestPatience(t *testing.T) {
	type answers map[time.Duration]string // limit: who is silent then
	for name, c := range map[string]struct {
		fixed bool
		looks []answers
		want  string // limits of all that is asked, and who is waited for
	}{
		"all answer":          {false, []answers{{firstLimit: ""}, {firstLimit: ""}}, "2s 2s"},
		"a slow one":          {false, []answers{{firstLimit: "a", longLimit: ""}, {longLimit: ""}}, "2s (a) 15s 15s"},
		"one that is gone":    {false, []answers{{firstLimit: "a", longLimit: "a"}, {firstLimit: "a"}, {firstLimit: "a"}}, "2s (a) 15s 2s 2s"},
		"another one later":   {false, []answers{{firstLimit: "a", longLimit: "a"}, {firstLimit: "ab", longLimit: "a"}}, "2s (a) 15s 2s (b) 15s"},
		"slow, then stopped":  {false, []answers{{firstLimit: "a", longLimit: ""}, {longLimit: "b"}, {firstLimit: "b"}}, "2s (a) 15s 15s 2s"},
		"back, and slow":      {false, []answers{{firstLimit: "a", longLimit: "a"}, {firstLimit: ""}, {firstLimit: "a", longLimit: ""}}, "2s (a) 15s 2s 2s (a) 15s"},
		"with -deadline":      {true, []answers{{firstLimit: "a"}, {firstLimit: "a"}}, "2s 2s"},
		"a slow one, no more": {false, []answers{{firstLimit: "a", longLimit: ""}}, "2s (a) 15s"},
	} {
		t.Run(name, func(t *testing.T) {
			p := patience{fixed: c.fixed}
			var did []string
			for _, look := range c.looks {
				p.survey(firstLimit, func(limit time.Duration) (silent []string) {
					did = append(did, limit.String())
					who, ok := look[limit]
					if !ok {
						t.Fatalf("asked within %v after %v", limit, did)
					}
					for _, r := range who {
						silent = append(silent, string(r))
					}
					return silent
				}, func(silent []string) { did = append(did, "("+strings.Join(silent, "")+")") })
			}
			if got := strings.Join(did, " "); got != c.want {
				t.Errorf("%s, want %s", got, c.want)
			}
		})
	}
}

// TestWhoMaySoonAnswer: a node is worth waiting for unless it has been silent for long, or has an
// answer, or there is no way to ask it.
func TestWhoMaySoonAnswer(t *testing.T) {
	now := time.Now()
	for _, c := range []struct {
		err   error
		since time.Time
		want  bool
	}{
		{nil, time.Time{}, false},
		{ErrSilent, time.Time{}, true},
		{errors.New(ErrSilent.Error()), now.Add(-firstLimit), true}, // as another node says
		{ErrSilent, now.Add(-longLimit), false},
		{ErrGone, time.Time{}, false},
		{stoppedError{ErrSilent}, time.Time{}, false},
		{fmt.Errorf("%w: no channel", ErrNotAsked), time.Time{}, false},
	} {
		f := FoundNode{Err: c.err, Since: c.since}
		if got := f.maySoonAnswer(now); got != c.want {
			t.Errorf("%v since %v: %t", c.err, c.since, got)
		}
	}
}

// TestNodeForPeople: a node is named by what is known of it.
func TestNodeForPeople(t *testing.T) {
	names := make([]string, 0, 3)
	for _, a := range []NodeInfo{{PID: 7}, {Site: "alpha", Job: "heat"}, {Site: "beta", Host: "10.0.0.1", PID: 9, Job: "heat"}} {
		names = append(names, (&FoundNode{About: a}).String())
	}
	if want := []string{"a node (process 7)", "site alpha of job heat", "site beta, host 10.0.0.1 (process 9) of job heat"}; !slices.Equal(names, want) {
		t.Errorf("%q", names)
	}
}

// TestSilentIsNotGone: a node that does not answer for so long that gRPC gives up the connection is
// there.
func TestSilentIsNotGone(t *testing.T) {
	for text, want := range map[string]error{
		`connection error: desc = "error reading server preface: read unix @->/tmp/s: i/o timeout"`: ErrSilent,
		"keepalive ping failed to receive ACK within timeout":                                       ErrSilent,
		"error reading from server: EOF":                                                            ErrGone,
		`connection error: desc = "read unix @->/tmp/timeout/s: connection reset by peer"`:          ErrGone,
	} {
		if got := callFault(status.Error(codes.Unavailable, text)); !errors.Is(got, want) {
			t.Errorf("%s: %v", text, got)
		}
	}
}
