package host

import (
	"strings"
	"testing"

	"github.com/hashicorp/go-hclog"

	"github.com/openimpi/impi/internal/allocs"
	"github.com/openimpi/impi/internal/watchdog"
)

// FuzzOutput lets a plugin print anything in any pieces: JSON log lines, panics, lines
// without an end. Nothing is lost except line ends, and no more than one line is kept in
// memory.
func FuzzOutput(f *testing.F) {
	f.Add([]byte(`{"@level":"info","@message":"hello","@timestamp":"x","port":5000}`+"\n"), uint16(7))
	f.Add([]byte(`{"level":"warn","msg":{"a":[1]},"x":null,"@module":"m"}`+"\n{\n"), uint16(100))
	f.Add([]byte("panic: boom\n\ngoroutine 1 [running]:\n\tmain.go:1\n"), uint16(1))
	f.Add([]byte("[DEBUG] plain\r\nfatal error: x"), uint16(3))
	f.Fuzz(func(t *testing.T, b []byte, piece uint16) {
		defer watchdog.Start()()
		var out strings.Builder
		w := &lineWriter{log: hclog.New(&hclog.LoggerOptions{Level: hclog.Trace, Output: &out})}
		steps := 0
		cost := allocs.Bytes(func() {
			for rest := b; len(rest) > 0; steps++ {
				p := rest[:min(len(rest), 1+int(piece))]
				if n, err := w.Write(p); n != len(p) || err != nil {
					t.Fatal(n, err)
				}
				rest = rest[len(p):]
				if len(w.part) >= maxLine {
					t.Fatalf("%d bytes are kept back", len(w.part))
				}
			}
		})
		if most := uint64(allocs.MaxError + 2048*len(b) + maxLine*steps); cost > most {
			t.Fatalf("%d bytes in %d pieces took %d bytes of memory", len(b), steps, cost)
		}
		if lines := strings.Count(string(b), "\n"); len(b) < maxLine && strings.Count(out.String(), "\n") < lines {
			t.Fatalf("%d lines became %q", lines, out.String())
		}
		level, msg, args, ok := parseEntry(string(b))
		if ok && (level == hclog.NoLevel || msg == "" || len(args)%2 != 0) {
			t.Fatalf("%q is %v %q %v", b, level, msg, args)
		}
	})
}
