package main

import (
	"errors"
	"testing"
)

// walk signs a token in the order of ranks.
func walk(ranks ...int) (t token) {
	for _, r := range ranks {
		t.sign(r)
	}
	return t
}

func TestTokenKnowsItsWay(t *testing.T) {
	for name, c := range map[string]struct {
		token         token
		ranks, rounds int
	}{
		"two rounds of three": {walk(1, 2, 0, 1, 2, 0), 3, 2},
		"alone":               {walk(0, 0, 0), 1, 3},
		"no round":            {walk(), 4, 0},
	} {
		if err := c.token.check(c.ranks, c.rounds); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestTokenTellsWrongWays(t *testing.T) {
	for name, wrong := range map[string]token{
		"swapped":  walk(2, 1, 0, 1, 2, 0),
		"left out": walk(1, 0, 1, 2, 0),
		"twice":    walk(1, 1, 2, 0, 1, 2, 0),
		"replaced": walk(1, 2, 0, 1, 1, 0),
		"not sent": walk(),
	} {
		if err := wrong.check(3, 2); !errors.Is(err, errToken) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
