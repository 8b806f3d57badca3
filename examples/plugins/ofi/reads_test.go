package main

import (
	"bufio"
	"bytes"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/openimpi/impi/plugins/sdk/link"
	"github.com/openimpi/impi/plugins/sdk/transports"
	sdkfabric "github.com/openimpi/impi/plugins/sdk/transports/fabric"
)

// messagesOf takes the connection out of a link.
func messagesOf(t *testing.T, l link.Link) *messages {
	t.Helper()
	c, _, err := l.(*sdkfabric.Link).Detach()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Break(); _ = c.Close() })
	return c.(*messages)
}

func withMessages(set map[string]any) map[string]any {
	all := map[string]any{"rdma": true}
	maps.Copy(all, set)
	return all
}

func pairOf(t *testing.T, set map[string]any) (near, far *messages) {
	t.Helper()
	set = withMessages(set)
	ln := listens(t, configured(t, set), here(t))
	l, err := dialFrom(t, configured(t, set), ln.Address())
	if err != nil {
		t.Fatal(err)
	}
	near = messagesOf(t, l)
	if l, err = ln.Accept(t.Context()); err != nil {
		t.Fatal(err)
	}
	return near, messagesOf(t, l)
}

// lentTo makes a file in memory, as a proc does, and registers it.
func lentTo(t *testing.T, m *messages, size int) ([]byte, sdkfabric.Registration) {
	t.Helper()
	fd, err := unix.MemfdCreate("test", unix.MFD_CLOEXEC)
	if err != nil {
		t.Fatal(err)
	}
	if err := unix.Ftruncate(fd, int64(size)); err != nil {
		t.Fatal(err)
	}
	b, err := unix.Mmap(fd, 0, size, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		t.Fatal(err)
	}
	r, err := m.l.n.Register(sdkfabric.Memory{FD: fd, Bytes: b})
	if err != nil {
		t.Fatal(err)
	}
	return b, r
}

func patterned(b []byte, seed int) {
	for i := range b {
		b[i] = byte(i*7 + i>>12 + seed)
	}
}

// until waits for something that other goroutines bring about, and calls step meanwhile.
func until(t *testing.T, what string, step func() bool) {
	t.Helper()
	for deadline := time.Now().Add(60 * time.Second); !step(); runtime.Gosched() {
		if time.Now().After(deadline) {
			t.Fatalf("%s does not come", what)
		}
	}
}

// completes waits for a read of m, and returns how it has ended.
func completes(t *testing.T, m *messages, op uint64) error {
	t.Helper()
	var done [4]sdkfabric.Completion
	n := 0
	until(t, "the end of a read", func() bool {
		if _, err := m.Recv([][]byte{make([]byte, 4096)}); err != nil {
			t.Fatal(err)
		}
		n = m.Completed(done[:])
		return n > 0
	})
	if n != 1 || done[0].Op != op {
		t.Fatalf("%d reads have ended, %+v", n, done[:n])
	}
	return done[0].Err
}

var readers = map[string]struct {
	provider string
	local    bool // as of a provider that wants what is read into registered
}{"tcp": {"tcp", false}, "shm": {"shm", false}, "tcp, registered": {"tcp", true}}

// What is read arrives whole and where it is wanted, and nothing else changes.
func TestReads(t *testing.T) {
	for what, c := range readers {
		t.Run(what, func(t *testing.T) {
			near, far := pairOf(t, map[string]any{"provider": c.provider})
			near.l.n.f.offer.local = c.local
			const size = 5 << 20
			from, theirs := lentTo(t, far, size)
			into, ours := lentTo(t, near, size)
			patterned(from, 3)
			for i, x := range []struct{ at, from, len int }{{0, 0, size}, {4097, 1, 1}, {12345, 54321, 2_000_001}, {size - 100, size - 200, 100}} {
				clear(into)
				want := make([]byte, size)
				copy(want[x.at:][:x.len], from[x.from:])
				ok, err := near.Read(sdkfabric.Request{Op: uint64(i + 1), Into: into[x.at:][:x.len], Local: ours, Key: theirs.Key(), From: uint64(x.from)})
				if !ok || err != nil {
					t.Fatal(ok, err)
				}
				if err := completes(t, near, uint64(i+1)); err != nil {
					t.Fatal(err)
				}
				if !bytes.Equal(into, want) {
					t.Errorf("%+v: other bytes than were sent, or elsewhere", x)
				}
			}
			for _, r := range []sdkfabric.Registration{theirs, ours} {
				if err := r.Close(); err != nil {
					t.Error(err)
				}
			}
			if len(near.views) != 0 {
				t.Error("what was given back is still mapped for reads")
			}
		})
	}
}

// What a peer offers is bounded before it is read.
func TestWrongKeys(t *testing.T) {
	for what, c := range map[string]struct {
		change func(r *sdkfabric.Request)
		want   string
	}{
		"short":        {func(r *sdkfabric.Request) { r.Key = r.Key[:20] }, "a key of 20 bytes"},
		"behind":       {func(r *sdkfabric.Request) { r.From = 4000 }, "1000 bytes at 4000 of memory that has 4096"},
		"far behind":   {func(r *sdkfabric.Request) { r.From = 1 << 63 }, "of memory that has 4096"},
		"wraps around": {func(r *sdkfabric.Request) { copy(r.Key[8:], "\xff\xff\xff\xff\xff\xff\xff\xff") }, "of memory that has 4096"},
	} {
		t.Run(what, func(t *testing.T) {
			near, far := pairOf(t, nil)
			_, theirs := lentTo(t, far, 4096)
			into, ours := lentTo(t, near, 4096)
			r := sdkfabric.Request{Op: 1, Into: into[:1000], Local: ours, Key: bytes.Clone(theirs.Key()), From: 10}
			c.change(&r)
			if _, err := near.Read(r); !errors.Is(err, link.ErrBroken) || !errors.Is(err, errRules) || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%v", err)
			}
		})
	}
}

// Memory that a peer has given back, or whose key is guessed, cannot be read.
func TestKeysThatDoNotHold(t *testing.T) {
	for what, spoil := range map[string]func(r sdkfabric.Registration, key []byte) error{
		"given back": func(r sdkfabric.Registration, _ []byte) error { return r.Close() },
		"guessed":    func(_ sdkfabric.Registration, key []byte) error { key[3]++; return nil },
	} {
		t.Run(what, func(t *testing.T) {
			near, far := pairOf(t, map[string]any{"silence": 2.0})
			from, theirs := lentTo(t, far, 1<<20)
			patterned(from, 1)
			into, ours := lentTo(t, near, 1<<20)
			key := bytes.Clone(theirs.Key())
			if err := spoil(theirs, key); err != nil {
				t.Fatal(err)
			}
			if ok, err := near.Read(sdkfabric.Request{Op: 1, Into: into, Local: ours, Key: key}); !ok || err != nil {
				t.Fatal(ok, err)
			}
			var done [1]sdkfabric.Completion
			until(t, "the end of the link", func() bool {
				_, err := near.Recv([][]byte{make([]byte, 4096)})
				return err != nil || near.Completed(done[:]) > 0
			})
			if done[0].Op == 1 && done[0].Err == nil {
				t.Error("it was read")
			}
			if !bytes.Equal(into, make([]byte, len(into))) {
				t.Error("something was written")
			}
		})
	}
}

// A link that ends while something is read does not wait for the peer, and nothing is written into
// the memory afterwards, although the provider goes on.
func TestEndWhileReading(t *testing.T) {
	for what, end := range map[string]func(m *messages){
		"break": (*messages).Break, "close": func(m *messages) { _ = m.Close() },
	} {
		for _, local := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, registered %v", what, local), func(t *testing.T) {
				near, far := pairOf(t, nil)
				near.l.n.f.offer.local = local
				const size = maxParts * partSize
				from, theirs := lentTo(t, far, size)
				into, ours := lentTo(t, near, size)
				patterned(from, 1)
				patterned(into, 2)
				far.l.n.mu.Lock() // the peer's endpoint does nothing
				ok, err := near.Read(sdkfabric.Request{Op: 1, Into: into, Local: ours, Key: theirs.Key()})
				if !ok || err != nil {
					t.Fatal(ok, err)
				}
				n := near.l.n
				end(near)
				if near.Completed(make([]sdkfabric.Completion, 4)) != 0 {
					t.Error("the read is complete")
				}
				if len(n.orphans) != 1 {
					t.Fatalf("%d reads go on", len(n.orphans))
				}
				far.l.n.mu.Unlock()
				until(t, "what the peer sends", func() bool {
					n.mu.Lock()
					defer n.mu.Unlock()
					if !n.ended {
						n.progress(nil)
					}
					return len(n.orphans) == 0
				})
				want := make([]byte, size)
				if patterned(want, 2); !bytes.Equal(into, want) {
					t.Error("memory was written after the end of the link")
				}
				if err := ours.Close(); err != nil {
					t.Error(err)
				}
			})
		}
	}
}

// Memory that is given back while a peer reads it is not read any more, and the rest of what was on
// its way does not take the process with it.
func TestGivenBackWhileItIsRead(t *testing.T) {
	near, far := pairOf(t, map[string]any{"silence": 2.0})
	const size = 64 << 20 // more than sockets take
	near.l.n.f.offer.part = size
	from, theirs := lentTo(t, far, size)
	into, ours := lentTo(t, near, size)
	for i := range from {
		from[i] = 1
	}
	if ok, err := near.Read(sdkfabric.Request{Op: 1, Into: into, Local: ours, Key: theirs.Key()}); !ok || err != nil {
		t.Fatal(ok, err)
	}
	near.l.n.mu.Lock()
	far.l.n.mu.Lock()
	for range 1000 {
		far.l.n.progress(nil)
	}
	far.l.n.mu.Unlock()
	if err := theirs.Close(); err != nil {
		t.Fatal(err)
	}
	for i := range from {
		from[i] = 2 // the proc uses it for something else
	}
	near.l.n.mu.Unlock()
	var done [1]sdkfabric.Completion
	until(t, "the end of the read", func() bool {
		_, err := near.Recv([][]byte{make([]byte, 4096)})
		return err != nil || near.Completed(done[:]) > 0
	})
	near.Break()
	if at := bytes.IndexByte(into, 2); at >= 0 {
		t.Errorf("byte %d was read after the memory was given back", at)
	}
	if into[0] != 1 {
		t.Error("NOT TRIED: nothing was read before the memory was given back")
	}
}

const peerEnv = "IMPI_OFI_TEST_PEER"

// A peer in another process, for the test below: it offers memory, and then does nothing.
func TestPeerProcess(t *testing.T) {
	address := os.Getenv(peerEnv)
	if address == "" {
		return // it is started by the test below
	}
	l, err := dialFrom(t, configured(t, withMessages(nil)), address)
	if err != nil {
		t.Fatal(err)
	}
	m := messagesOf(t, l)
	_, r := lentTo(t, m, maxParts*partSize)
	m.l.n.mu.Lock()
	fmt.Println("key " + hex.EncodeToString(r.Key()))
	_, _ = io.Copy(io.Discard, os.Stdin)
}

// A peer that is killed while it is read loses the link, and its memory is the proc's again.
func TestPeerKilledWhileItIsRead(t *testing.T) {
	ln := listens(t, configured(t, withMessages(map[string]any{"silence": 1.0})), here(t))
	cmd := exec.Command(os.Args[0], "-test.run", "^TestPeerProcess$")
	cmd.Env = append(os.Environ(), peerEnv+"="+ln.Address())
	stdin, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	defer stdin.Close()
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = cmd.Wait() }()
	l, err := ln.Accept(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	m := messagesOf(t, l)
	var key []byte
	for lines := bufio.NewScanner(out); key == nil && lines.Scan(); {
		if text, ok := strings.CutPrefix(lines.Text(), "key "); ok {
			key, _ = hex.DecodeString(text)
		}
	}
	const size = maxParts * partSize
	into, ours := lentTo(t, m, size)
	patterned(into, 2)
	if ok, err := m.Read(sdkfabric.Request{Op: 1, Into: into, Local: ours, Key: key}); !ok || err != nil {
		t.Fatal(ok, err)
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	var done [1]sdkfabric.Completion
	until(t, "the end of the link", func() bool {
		_, err := m.Recv([][]byte{make([]byte, 4096)})
		return err != nil || m.Completed(done[:]) > 0
	})
	if done[0].Op == 1 && done[0].Err == nil {
		t.Error("it was read")
	}
	m.Break()
	want := make([]byte, size)
	if patterned(want, 2); !bytes.Equal(into, want) {
		t.Error("something was written")
	}
	if err := ours.Close(); err != nil {
		t.Error(err)
	}
}

// A side whose setting says no makes links of bytes with others.
func TestOneSideWithoutMessages(t *testing.T) {
	for _, listener := range []bool{false, true} {
		ln := listens(t, configured(t, map[string]any{"rdma": listener}), here(t))
		l, err := dialFrom(t, configured(t, map[string]any{"rdma": !listener}), ln.Address())
		if err != nil {
			t.Fatal(err)
		}
		far, err := ln.Accept(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for _, x := range []link.Link{l, far} {
			if _, ok := x.(transports.Piped); !ok {
				t.Errorf("the listener's is %v: a link is a %T", listener, x)
			}
			x.Close()
		}
	}
}

// Messages that break the rules of their boundaries end the link, with what is wrong.
func TestWrongBoundaries(t *testing.T) {
	for what, c := range map[string]struct {
		do   func(l *stream)
		want string
	}{
		"no bytes": {func(l *stream) { l.message(head{kind: kindData}, []byte{0, 0, 0, 0}) }, "a message of 0 bytes"},
		"too long": {func(l *stream) { l.message(head{kind: kindData}, []byte{0, 0, 0, 1, 0}) }, "a message of 16777216 bytes"},
		"over the end": {func(l *stream) {
			l.message(head{kind: kindData}, []byte{9, 0, 0, 0, 1})
			l.message(head{kind: kindFin, value: 5}, nil)
		}, "inside of a message"},
		"in its head": {func(l *stream) {
			l.message(head{kind: kindData}, []byte{9})
			l.message(head{kind: kindFin, value: 1}, nil)
		}, "inside of a message"},
	} {
		t.Run(what, func(t *testing.T) {
			_, far := pairOf(t, nil)
			far.l.n.mu.Lock()
			c.do(far.l)
			far.l.n.mu.Unlock()
			if _, err := far.Recv([][]byte{make([]byte, 4096)}); !errors.Is(err, link.ErrBroken) || !errors.Is(err, errRules) || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%v", err)
			}
		})
	}
}
