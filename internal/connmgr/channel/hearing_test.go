package channel

import (
	"errors"
	"testing"

	"github.com/openimpi/impi/core/dynamic"
	"github.com/openimpi/impi/plugins/sdk/transports"
)

// A host that may be slow to shake hands has one round more than one to which there is no way.
func TestHearing(t *testing.T) {
	fails := func(code transports.Code) dynamic.FailedCandidate {
		return dynamic.FailedCandidate{DialResult: dynamic.DialResult{Err: &transports.Error{Op: "dial", Code: code, Reason: "for the test"}}}
	}
	slow, refused := fails(transports.CodeTimeout), fails(transports.CodeUnreachable)
	says := dynamic.FailedCandidate{DialResult: dynamic.DialResult{Verdict: dynamic.Leaving, Err: errors.New("for the test")}}
	greets := dynamic.FailedCandidate{DialResult: dynamic.DialResult{Err: errors.New("no greeting")}}
	for name, tc := range map[string]struct {
		must   bool
		rounds [][]dynamic.FailedCandidate
		want   []bool
	}{
		"no way to it":                   {true, [][]dynamic.FailedCandidate{{refused, refused}}, []bool{true}},
		"slow":                           {true, [][]dynamic.FailedCandidate{{slow}, {slow}}, []bool{false, true}},
		"slow by one way":                {true, [][]dynamic.FailedCandidate{{refused, slow}, {refused, slow}}, []bool{false, true}},
		"slow, and then there is no way": {true, [][]dynamic.FailedCandidate{{slow}, {refused}}, []bool{false, true}},
		"slow, alive, slow":              {true, [][]dynamic.FailedCandidate{{slow}, {greets}, {slow}, {slow}}, []bool{false, false, false, true}},
		"it answers":                     {true, [][]dynamic.FailedCandidate{{says}, {says, slow}}, []bool{false, false}},
		"plain TCP times out":            {false, [][]dynamic.FailedCandidate{{slow, slow}}, []bool{true}}, // the kernel would answer
	} {
		h := hearing{must: tc.must}
		for i, missed := range tc.rounds {
			if got := h.nothing(missed); got != tc.want[i] {
				t.Errorf("%s: after round %d it is given up: %v", name, i+1, got)
			}
		}
	}
}
