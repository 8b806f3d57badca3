package engine

import (
	"context"
	"os"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/openimpi/impi/internal/launch/sshtest"
)

// TestSSHTroubles has a real ssh fail in the ways in which it does for users.
func TestSSHTroubles(t *testing.T) {
	hosts := sshtest.Start(t, 2)
	start := func(t *testing.T, machine string, options ...string) error {
		t.Helper()
		e := SSH{Options: append([]string{"-F", hosts.Config}, options...)}
		s, err := e.Start(t.Context(), []Machine{{Name: "s1"}, {Name: machine}}, Command{Args: []string{"cat"}, Secret: "x"})
		if err == nil {
			_ = s.Stop()
		}
		return err
	}
	if err := start(t, "s2"); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		machine, words string
		options        []string
	}{
		"unknown host key": {"s2", "its host key is not known here", []string{"-o", "UserKnownHostsFile=/dev/null"}},
		"refused key":      {"s2", "it does not let us in", []string{"-o", "User=stranger"}},
		"unknown name":     {"no-such-machine.invalid", "its name is not known here", nil},
		"nobody listens":   {"127.0.0.99", "no ssh server listens there", []string{"-o", "Port=1"}},
		"an option":        {"s2", "ssh does not take our options", []string{"-o", "NoSuchOption=yes"}},
	} {
		t.Run(name, func(t *testing.T) {
			err := start(t, c.machine, c.options...)
			if err == nil || !strings.Contains(err.Error(), c.words) {
				t.Errorf("%v, want %q", err, c.words)
			}
		})
	}
	t.Run("changed host key", func(t *testing.T) {
		known, err := os.ReadFile(hosts.Dir + "/known")
		if err != nil {
			t.Fatal(err)
		}
		public, err := os.ReadFile(hosts.Dir + "/user.pub")
		if err != nil {
			t.Fatal(err)
		}
		var changed strings.Builder
		for line := range strings.Lines(string(known)) {
			changed.WriteString(strings.Fields(line)[0] + " " + string(public))
		}
		err = start(t, "s2", "-o", "UserKnownHostsFile="+write(t, "known", changed.String()))
		if err == nil || !strings.Contains(err.Error(), "ssh-keygen -R") {
			t.Errorf("%v, want that the key has changed", err)
		}
	})
}

// TestSSHLost: a machine that loses its power is told, and the others go on.
func TestSSHLost(t *testing.T) {
	hosts := sshtest.Start(t, 3)
	f := fixture{SSH: &SSH{Options: []string{"-F", hosts.Config}}, Machines: []Machine{{Name: "s1"}, {Name: "s2"}, {Name: "s3"}}}
	p := newPrints()
	s := f.run(t, p, `trap '' TERM; echo runs; read secret; read nothing`)
	p.await(t, "runs", all...)
	hosts.Lose("s2")
	if e := <-s.Ends(); e.Machine != 1 || !strings.HasPrefix(e.Lost, "ssh exited with status 255") {
		t.Errorf("%+v came first, want that s2 is lost", e)
	}
	if err := s.Stop(); err != nil {
		t.Error(err)
	}
	for e := range s.Ends() {
		if e.Machine == 1 || e.Lost != "" {
			t.Errorf("%+v, want that the other machines go on", e)
		}
	}
}

// TestExecTroubles has commands that do not do what they are for.
func TestExecTroubles(t *testing.T) {
	for name, c := range map[string]struct {
		command []string
		words   string
	}{
		"no standard input": {[]string{"sh", "-c", `exec "$@" </dev/null`, "exec"}, "alpha: the command ended before anything ran there"},
		"a message":         {[]string{"sh", "-c", "echo no such pod >&2; exit 3"}, "alpha: sh exited with status 3 and has printed: no such pod"},
		"no command":        {[]string{"/nowhere/kubectl"}, "alpha: there is no /nowhere/kubectl on this machine"},
	} {
		_, err := Exec{Command: c.command}.Start(t.Context(), three[:1], Command{Args: []string{"true"}})
		if err == nil || !strings.Contains(err.Error(), c.words) {
			t.Errorf("%s: %v, want %q", name, err, c.words)
		}
	}
}

// TestExecPlaceholders: what stands for a machine in a command.
func TestExecPlaceholders(t *testing.T) {
	for _, c := range []struct {
		m    Machine
		want string
	}{
		{Machine{Name: "alpha-0.alpha.team.svc"}, "alpha-0 alpha-0.alpha.team.svc"},
		{Machine{Name: "alpha-0", Address: "10.0.0.2", User: "me"}, "alpha-0 10.0.0.2 me"},
		{Machine{Name: "10.0.0.2"}, "10.0.0.2 10.0.0.2"},
	} {
		args := Exec{Command: []string{"{name} {host} {user}", "{command}"}}.args(c.m)
		if got := strings.TrimSpace(args[0]); got != c.want {
			t.Errorf("%+v: %q, want %q", c.m, got, c.want)
		}
	}
}

// TestLate: a machine that does not answer is named when time is over, and nothing runs anywhere.
func TestLate(t *testing.T) {
	w := newWitness(t)
	ctx, cancel := context.WithCancel(t.Context())
	e := Exec{Command: []string{"sh", "-c", `[ $0 = beta ] && exec sleep 1000; exec "$@"`, "{name}"}}
	p := newPrints()
	failed := make(chan error, 1)
	go func() {
		_, err := e.Start(ctx, three, fixture{}.command(p, held+"echo held >&2; sleep 1000", w.path))
		failed <- err
	}()
	p.awaitOn(t, 1, "held", 0, 2)
	cancel()
	if err := <-failed; err == nil || !strings.Contains(err.Error(), "before it ran on beta: context canceled") {
		t.Errorf("%v, want that beta is named", err)
	}
	w.wantGone(t)
}

// TestOneAtATime: no more commands are under way than is allowed.
func TestOneAtATime(t *testing.T) {
	dir := openFolder(t)
	for _, m := range three {
		if err := unix.Mkfifo(dir+"/"+m.Name, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	e := Exec{Command: []string{"sh", "-c", `echo $1 >>$0/begun; read go <$0/$1; shift; exec "$@"`, dir, "{name}"}, AtOnce: 1}
	began := make(chan error, 1)
	go func() {
		s, err := e.Start(t.Context(), three, Command{Args: []string{"cat"}})
		if err == nil {
			err = s.Stop()
		}
		began <- err
	}()
	want := ""
	for _, m := range three {
		f, err := os.OpenFile(dir+"/"+m.Name, os.O_WRONLY, 0) // waits for the command
		if err != nil {
			t.Fatal(err)
		}
		want += m.Name + "\n"
		if b, err := os.ReadFile(dir + "/begun"); err != nil || string(b) != want {
			t.Errorf("%q %v have begun, want %q", b, err, want)
		}
		if _, err := f.WriteString("\n"); err != nil {
			t.Error(err)
		}
		_ = f.Close()
	}
	if err := <-began; err != nil {
		t.Error(err)
	}
}
