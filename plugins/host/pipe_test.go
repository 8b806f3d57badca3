package host

import (
	"io"
	"syscall"
	"testing"

	"github.com/openimpi/impi/plugins/sdk/transports"
)

// A proc that holds a link whose peer has ended it, and does nothing with it, must not keep a
// plugin that died from being started again: nothing more comes by the control connection of
// before.
func TestIdlePipesDoNotDelayRestarts(t *testing.T) {
	w := builtin("tcp", "")
	w.DataPlanes = []transports.DataPlane{transports.PlaneGRPC}
	p := w.start(t)
	l := listen(t, p)
	a, b := pair(t, p, l)
	exchange(t, a, b)
	if err := a.CloseSend(); err != nil {
		t.Fatal(err)
	}
	if _, err := (stream{t, b}).Read(make([]byte, 1)); err != io.EOF { //nolint:errorlint // as Recv has it
		t.Fatalf("after the peer's end: %v", err)
	}
	w.reach(t, StateHealthy)
	waitGone(t, strike(t, p, syscall.SIGKILL))
	if s := w.reach(t, StateHealthy); s.Starts != 2 {
		t.Errorf("%+v", s)
	}
	c, d := pair(t, p, l)
	exchange(t, c, d)
}
