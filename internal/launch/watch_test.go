package launch

import (
	"os/exec"
	"syscall"
	"testing"
)

// other starts a process that waits for its input, and is not the Launcher's.
func other(t *testing.T) *exec.Cmd {
	t.Helper()
	cmd := exec.Command("cat")
	if _, err := cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	return cmd
}

func adopter(t *testing.T) *ProcessWatcher {
	t.Helper()
	a, err := NewProcessWatcher()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(a.Close)
	return a
}

// TestAdoptedEndInOrder: which process has ended first is known, however late that is looked at.
func TestAdoptedEndInOrder(t *testing.T) {
	a := adopter(t)
	var cmds []*exec.Cmd
	var all []*Process
	for range 8 {
		cmds = append(cmds, other(t))
		p, err := a.Watch(cmds[len(cmds)-1].Process.Pid)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, p)
	}
	order := []int{5, 2, 7, 0, 3, 1, 6, 4}
	a.mu.Lock() // nobody looks meanwhile
	for _, i := range order {
		_ = cmds[i].Process.Kill()
		_ = cmds[i].Wait()
	}
	a.mu.Unlock()
	for k, i := range order[1:] {
		if before := order[k]; !all[before].EndedAt().Before(all[i].EndedAt()) {
			t.Errorf("process %d is said to have ended after %d", before, i)
		}
	}
}

// TestAdopterCloses: what it follows counts as ended then.
func TestAdopterCloses(t *testing.T) {
	a, err := NewProcessWatcher()
	if err != nil {
		t.Fatal(err)
	}
	p, err := a.Watch(other(t).Process.Pid)
	if err != nil {
		t.Fatal(err)
	}
	a.Close()
	if e := p.Exit(); !e.Unseen {
		t.Errorf("%+v", e)
	}
}

// TestAdopt: signals reach a process of somebody else's, and its end is seen, but not how.
func TestAdopt(t *testing.T) {
	cmd := other(t)
	p, err := adopter(t).Watch(cmd.Process.Pid)
	if err != nil {
		t.Fatal(err)
	}
	if p.Over() || p.PID() != cmd.Process.Pid || !p.Watched() {
		t.Errorf("over %v, process %d", p.Over(), p.PID())
	}
	if err := p.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	<-p.Done()
	if e := p.Exit(); !e.Unseen || e.OK() || e.Status() != 0 || e.String() != "ended" {
		t.Errorf("%+v", e)
	}
	_ = cmd.Wait()
	if s := cmd.ProcessState.Sys().(syscall.WaitStatus).Signal(); s != syscall.SIGTERM {
		t.Errorf("it was ended by %v", s)
	}
	if err := p.Signal(syscall.SIGTERM); err != nil {
		t.Errorf("a process that has ended: %v", err)
	}
}

// TestRelease: a process that was let go counts as one that ended well, and is not touched any
// more.
func TestRelease(t *testing.T) {
	cmd := other(t)
	p, err := adopter(t).Watch(cmd.Process.Pid)
	if err != nil {
		t.Fatal(err)
	}
	p.Release()
	<-p.Exited()
	if !p.Exit().OK() {
		t.Errorf("%+v", p.Exit())
	}
	if err := p.SignalProcess(syscall.SIGKILL); err != nil {
		t.Error(err)
	}
	if err := cmd.Process.Signal(syscall.Signal(0)); err != nil {
		t.Errorf("the process is gone: %v", err)
	}
	p.Release()
	if _, err := adopter(t).Watch(1 << 30); err == nil {
		t.Error("a process that is not there is adopted")
	}
}
