package mpi

import (
	"errors"
	"testing"

	"github.com/openimpi/impi/core/mpierr"
)

func control(t *testing.T, name string) *ControlVariable {
	t.Helper()
	for i, v := range ControlVariables() {
		if v.Name == name {
			return &ControlVariables()[i]
		}
	}
	t.Fatalf("there is no control variable %s", name)
	return nil
}

func TestControlVariables(t *testing.T) {
	t.Setenv("IMPI_CHECK", "")              // and back, whatever is written
	ControlVariables()[0].Name = "nobody's" // who asks has a list of its own
	check, mark := control(t, "impi_check"), control(t, "impi_ackmark")
	if err := check.Write(1); err != nil {
		t.Fatal(err)
	}
	if v, err := check.Read(); v != 1 || err != nil || !check.Switch || check.Scope != ScopeAllEqual {
		t.Errorf("%d, %v, %+v", v, err, check)
	}
	if err := check.Write(2); !errors.Is(err, ErrToolValue) {
		t.Errorf("a switch takes 2: %v", err)
	}
	if _, err := mark.Read(); !errors.Is(err, ErrToolNotAccessible) {
		t.Errorf("before Init: %v", err)
	}
	if err := check.Write(0); err != nil {
		t.Fatal(err)
	}
	procs := layout{procs: 2, ackMark: 7, hiWater: 9}.start(t)
	program(t, procs[0])
	if err := check.Write(1); !errors.Is(err, ErrToolNotNow) {
		t.Errorf("after Init: %v", err)
	}
	if v, err := mark.Read(); v != 7 || err != nil || mark.Scope != ScopeConstant {
		t.Errorf("ackmark is %d, %v", v, err)
	}
	if err := mark.Write(3); !errors.Is(err, ErrToolNever) || errors.Is(err, ErrToolNotNow) || ErrorClass(err) != mpierr.Access {
		t.Errorf("a constant is written: %v", err)
	}
}

func TestPerformanceVariables(t *testing.T) {
	procs := layout{}.start(t)
	completed := func() uint64 {
		for i, v := range PerformanceVariables() {
			if v.Name == "impi_requests_completed" && v.Class == ClassCounter {
				return PerformanceVariables()[i].Read()
			}
		}
		t.Fatal("nobody counts requests")
		return 0
	}
	if n := completed(); n != 0 {
		t.Errorf("%d before Init", n)
	}
	program(t, procs[0])
	before := completed()
	self := (*Comm)(procs[0].Comms.Self)
	q, err := Irecv(self, make([]byte, 1), 0, 1)
	if err == nil {
		err = Send(self, []byte{1}, 0, 1)
	}
	if _, e := q.Wait(); err != nil || e != nil {
		t.Fatal(err, e)
	}
	if n := completed(); n != before+2 {
		t.Errorf("%d after one message, %d before it", n, before)
	}
}
