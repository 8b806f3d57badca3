package datatype

import (
	"errors"
	"testing"
)

func TestParseRepresentation(t *testing.T) {
	for r := range representations {
		if got, err := ParseRepresentation(r.String()); got != r || err != nil {
			t.Errorf("%v: got %v, %v", r, got, err)
		}
	}
	if r, err := ParseRepresentation(""); r != Native || err != nil {
		t.Errorf("empty: got %v, %v", r, err)
	}
	if _, err := ParseRepresentation("native-me"); !errors.Is(err, ErrRepresentation) {
		t.Errorf("got %v", err)
	}
}
