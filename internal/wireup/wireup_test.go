package wireup

import (
	"errors"
	"io"
	"os"
	"slices"
	"strconv"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/openimpi/impi/core/dynamic"
)

func pair(t *testing.T) (node, proc *Conn) {
	t.Helper()
	node, f, err := Pair()
	if err != nil {
		t.Fatal(err)
	}
	fd, err := unix.Dup(int(f.Fd()))
	if err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	t.Setenv(EnvSocket, strconv.Itoa(fd))
	proc, ok, err := Inherited()
	if !ok || err != nil {
		t.Fatal(ok, err)
	}
	t.Cleanup(func() { _ = node.Close(); _ = proc.Close() })
	return node, proc
}

func TestMessageCarriesDescriptors(t *testing.T) {
	node, proc := pair(t)
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	want := Message{Kind: KindLink, Peer: 3, Transport: "tcp", DataPlane: "fd"}
	if err := node.Send(want, int(w.Fd())); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	got, fds, err := proc.Recv()
	if err != nil || got != want || len(fds) != 1 {
		t.Fatalf("got %+v with %d descriptors, %v", got, len(fds), err)
	}
	flags, err := unix.FcntlInt(uintptr(fds[0]), unix.F_GETFD, 0)
	if err != nil || flags&unix.FD_CLOEXEC == 0 {
		t.Errorf("the descriptor would be inherited: flags %#x, %v", flags, err)
	}
	if _, err := unix.Write(fds[0], []byte("x")); err != nil {
		t.Error(err)
	}
	CloseAll(fds)
	b := make([]byte, 4)
	if n, err := r.Read(b); n != 1 || err != nil {
		t.Errorf("read %d, %v", n, err)
	}
	if _, err := r.Read(b); err != io.EOF {
		t.Errorf("a copy of the descriptor is still open: %v", err)
	}
}

func TestEnvironmentIsUsedOnce(t *testing.T) {
	pair(t)
	if _, ok, err := Inherited(); ok || err != nil {
		t.Errorf("a child would take our socket for its own: %v %v", ok, err)
	}
}

func TestEnvironmentNamesNoDescriptor(t *testing.T) {
	for _, v := range []string{"", "x", "1", "-4"} {
		t.Setenv(EnvSocket, v)
		if _, ok, err := Inherited(); !ok || err == nil {
			t.Errorf("%q was taken: %v %v", v, ok, err)
		}
	}
}

func TestPeerGone(t *testing.T) {
	node, proc := pair(t)
	if err := node.Close(); err != nil {
		t.Fatal(err)
	}
	if _, _, err := proc.Recv(); !errors.Is(err, io.EOF) {
		t.Errorf("got %v", err)
	}
}

// TestLastWordsOfOneThatDidNotListen: what a proc said before it ended is received,
// although the kernel reports a broken connection, as a message to the proc was still on
// its way.
func TestLastWordsOfOneThatDidNotListen(t *testing.T) {
	node, proc := pair(t)
	for _, k := range []Kind{KindHello, KindFini} {
		if err := proc.Send(Message{Kind: k}); err != nil {
			t.Fatal(err)
		}
	}
	if err := node.Send(Message{Kind: KindLink}); err != nil {
		t.Fatal(err)
	}
	if err := proc.Close(); err != nil {
		t.Fatal(err)
	}
	for _, k := range []Kind{KindHello, KindFini} {
		if m, _, err := node.Recv(); err != nil || m.Kind != k {
			t.Errorf("%v, %v, want %v", m, err, k)
		}
	}
	if m, _, err := node.Recv(); !errors.Is(err, io.EOF) {
		t.Errorf("at the end: %v, %v", m, err)
	}
}

func TestMalformedMessageLeaksNoDescriptor(t *testing.T) {
	node, proc := pair(t)
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if _, _, err := node.conn.WriteMsgUnix([]byte("{"), unix.UnixRights(int(w.Fd())), nil); err != nil {
		t.Fatal(err)
	}
	_ = w.Close()
	if _, _, err := proc.Recv(); !errors.Is(err, ErrMessage) {
		t.Errorf("got %v", err)
	}
	if _, err := r.Read(make([]byte, 1)); err != io.EOF {
		t.Errorf("descriptor leaked: %v", err)
	}
}

func TestTooManyDescriptors(t *testing.T) {
	node, proc := pair(t)
	fd := int(os.Stderr.Fd())
	if err := node.Send(Message{Kind: KindLink}, slices.Repeat([]int{fd}, maxFDs+1)...); !errors.Is(err, ErrMessage) {
		t.Errorf("Send: %v", err)
	}
	if _, _, err := node.conn.WriteMsgUnix([]byte("{}"), unix.UnixRights(slices.Repeat([]int{fd}, maxFDs+3)...), nil); err != nil {
		t.Fatal(err)
	}
	if _, fds, err := proc.Recv(); !errors.Is(err, ErrMessage) || fds != nil {
		t.Errorf("Recv: %d descriptors, %v", len(fds), err)
	}
}

func job() *Job {
	p := Proc{Host: make([]byte, 16), PID: 7, Path: PathDirect}
	q := p
	q.PID = 6
	j := &Job{Name: "j", Procs: []Proc{q, p}, Rank: 1, DataLen: 1, AckMark: 1, HiWater: 1, Card: "a card"}
	_, j.Views = split(j.Procs)
	return j
}

// tableOf is the descriptor of the table of a job's procs.
func tableOf(t *testing.T, j *Job) int {
	t.Helper()
	table, _ := split(j.Procs)
	return tableFile(t, table)
}

func TestJobThroughMemory(t *testing.T) {
	own := job()
	for i := range own.Procs {
		own.Procs[i].Machine = "m"
	}
	table, views := split(own.Procs)
	d := dynamic.Description{World: dynamic.WorldID{7}, Limits: dynamic.Limits{DataLen: 1, AckMark: 1, HiWater: 1}}
	own.World, own.Views = d.AppendHead(nil, 1), views
	f, err := own.Share()
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, err := f.WriteAt([]byte("x"), 0); err == nil {
		t.Error("the job can be changed after it was shared")
	}
	fd, err := unix.Dup(int(f.Fd()))
	if err != nil {
		t.Fatal(err)
	}
	j, err := OpenJob(fd, tableFile(t, table))
	if err != nil || j.Rank != 1 || j.Size() != 2 || j.Card != "a card" {
		t.Fatalf("%+v, %v", j, err)
	}
	if d, err := dynamic.ReadDescription(j.Describe()); err != nil || d.World[0] != 7 || len(d.Groups) != 1 || d.Groups[0].Count != 2 || d.Groups[0].Card.Node != "m" {
		t.Errorf("it describes itself as %+v, %v", d, err)
	}
	if a, b := j.Proc(0), j.Proc(1); a.PID != 6 || a.Path != PathDirect || b.PID != 7 || b.Path != PathSelf {
		t.Errorf("%+v, %+v", a, b)
	}
}

func TestBadJob(t *testing.T) {
	for name, spoil := range map[string]func(*Job){
		"rank":    func(j *Job) { j.Rank = 2 },
		"datalen": func(j *Job) { j.DataLen = 0 },
		"window":  func(j *Job) { j.AckMark = 2 },
	} {
		j := job()
		spoil(j)
		f, err := j.Share()
		if err != nil {
			t.Fatal(err)
		}
		fd, _ := unix.Dup(int(f.Fd()))
		if _, err := OpenJob(fd, tableOf(t, j)); !errors.Is(err, ErrMessage) {
			t.Errorf("%s: %v", name, err)
		}
		_ = f.Close()
	}
}
