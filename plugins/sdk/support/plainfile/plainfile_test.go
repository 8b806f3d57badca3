package plainfile

import (
	"errors"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// soon fails the test if f blocks.
func soon(t *testing.T, what string, f func()) {
	t.Helper()
	done := make(chan struct{})
	go func() {
		defer close(done)
		f()
	}()
	select {
	case <-done:
	case <-time.After(10 * time.Second):
		t.Fatalf("%s: it blocks", what)
	}
}

func TestRead(t *testing.T) {
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	for name, text := range map[string]string{"some": "1234", "many": "12345", "none": ""} {
		if err := os.WriteFile(at(name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	l, err := net.Listen("unix", at("socket"))
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if err := errors.Join(syscall.Mkfifo(at("pipe"), 0o600), os.Symlink("some", at("link")), os.Symlink("pipe", at("pipe link"))); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]struct {
		text, words string
		is          error
	}{
		at("some"):      {text: "1234"},
		at("none"):      {},
		at("link"):      {text: "1234"},
		at("many"):      {text: "1234", words: at("many") + ": it is too big: it has more than 4 bytes", is: ErrSize},
		at("gone"):      {is: fs.ErrNotExist},
		at("pipe"):      {words: at("pipe") + ": it is a pipe and no regular file", is: ErrKind},
		at("pipe link"): {words: "it is a pipe", is: ErrKind},
		at("socket"):    {words: "it is a socket or a device", is: ErrKind},
		dir:             {words: "it is a folder", is: ErrKind},
		"/dev/zero":     {words: "it is a device", is: ErrKind},
	} {
		soon(t, path, func() {
			b, err := Read(path, 4)
			if string(b) != want.text || !errors.Is(err, want.is) || want.is == nil && err != nil {
				t.Errorf("%s: %q, %v", path, b, err)
			}
			if _, ok := errors.AsType[*fs.PathError](err); err != nil && (!ok || !strings.Contains(err.Error(), want.words)) {
				t.Errorf("%s: %v", path, err)
			}
		})
	}
	soon(t, "KiB", func() {
		if err := os.Truncate(at("many"), 1<<20); err != nil {
			t.Error(err)
		}
		if _, err := Read(at("many"), 4<<10); err == nil || !strings.HasSuffix(err.Error(), "more than 4 KiB") {
			t.Error(err)
		}
	})
}

// TestReadPipe: a pipe is read to its end, which must come before the limit.
func TestReadPipe(t *testing.T) {
	path := filepath.Join(t.TempDir(), "pipe")
	if err := syscall.Mkfifo(path, 0o600); err != nil {
		t.Fatal(err)
	}
	for text, want := range map[string]error{"1234": nil, "12345": ErrSize} {
		soon(t, text, func() {
			go func() { _ = os.WriteFile(path, []byte(text), 0) }() // ReadPipe says what came
			if b, err := ReadPipe(path, 4); !errors.Is(err, want) || want == nil && string(b) != text {
				t.Errorf("%q, %v", b, err)
			}
		})
	}
	if _, err := ReadPipe("/dev/zero", 4); !errors.Is(err, ErrKind) {
		t.Error(err)
	}
}
