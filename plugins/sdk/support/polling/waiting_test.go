package polling

import (
	"testing"
	"time"
)

func TestWaitingTellsTheSetting(t *testing.T) {
	for setting, want := range map[string]Waiting{
		"auto": {Budget: spinMax}, "": {Budget: spinMax}, "0": {Fixed: true}, "35us": {Budget: 35 * time.Microsecond, Fixed: true},
	} {
		s, err := NewSpinner(setting)
		if err != nil {
			t.Fatal(err)
		}
		if got := s.Waiting(); got != want {
			t.Errorf("%q: %+v, want %+v", setting, got, want)
		}
	}
}

func TestWaitingTellsOfCrowds(t *testing.T) {
	s, _ := NewSpinner("auto")
	for range scoreOversubscribed / scoreStolen {
		s.observe(2 * stolen)
	}
	if w := s.Waiting(); !w.Oversubscribed || w.Score != scoreOversubscribed {
		t.Errorf("%+v", w)
	}
}
