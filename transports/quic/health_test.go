package quic

import (
	"strings"
	"testing"
)

func TestHealth(t *testing.T) {
	if err := New().Health(); err != nil {
		t.Errorf("without settings: %v", err)
	}
	x := New()
	x.settings.Store(&settings{buffer: 1000})
	was := granted.Swap(0)
	t.Cleanup(func() { granted.Store(was) })
	if err := x.Health(); err != nil {
		t.Errorf("all is well: %v", err)
	}
	granted.Store(999)
	if err := x.Health(); err == nil || !strings.Contains(err.Error(), "buffers of 999 bytes, not 1000") || !strings.Contains(err.Error(), "rmem_max=1000") {
		t.Errorf("small buffers: %v", err)
	}
	x.settings.Load().buffer = 900
	if err := x.Health(); err != nil {
		t.Errorf("what is enough: %v", err)
	}
}
