package links

import (
	"strings"
	"testing"
)

// Many channels are shown only to who wants all that there is.
func TestManyChannels(t *testing.T) {
	j := &Job{Channels: make([]Channel, fewChannels+1)}
	for i := range j.Channels {
		j.Channels[i] = Channel{To: i + 1, Transport: "tcp", Plane: "fd", State: StateLinked}
	}
	for explain, want := range map[bool]string{false: "17 channels between hosts: -explain", true: "host 0 > 17"} {
		var b strings.Builder
		writeChannels(&b, j, Style{Explain: explain})
		if !strings.Contains(b.String(), want) || explain != strings.Contains(b.String(), "TRANSPORT") {
			t.Errorf("explain %t:\n%s", explain, b.String())
		}
	}
	var b strings.Builder
	if writeChannels(&b, &Job{}, Style{}); b.Len() != 0 {
		t.Errorf("no channels: %q", b.String())
	}
}
