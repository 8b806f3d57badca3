package sdk

import (
	"bufio"
	"fmt"
	"io"
	"log"
	"os"
	"regexp"
	"sync"

	"github.com/hashicorp/go-hclog"

	"github.com/openimpi/impi/plugins/proto"
)

// Logger returns the process's logger. What it logs appears in the node's log at the same
// level, under the transport's name; levels that the node does not show are not sent. It
// can be used before Serve.
var Logger = sync.OnceValue(func() hclog.Logger {
	level := hclog.LevelFromString(os.Getenv(proto.EnvLogLevel))
	if level == hclog.NoLevel {
		level = hclog.Info
	}
	return hclog.New(&hclog.LoggerOptions{Level: level, Output: stderr, JSONFormat: started})
})

// captureStdLog redirects the standard library's logger, which many packages and go-plugin
// use, to Logger.
func captureStdLog() {
	log.SetFlags(0)
	log.SetPrefix("")
	log.SetOutput(Logger().StandardWriter(&hclog.StandardLoggerOptions{InferLevels: true}))
}

// handshakeLine matches the line that go-plugin prints when it is ready.
var handshakeLine = regexp.MustCompile(`^\d+\|\d+\|(unix|tcp)\|[^|]+\|grpc\|`)

// filterStdout makes os.Stdout a pipe. The first line that matches handshakeLine goes to
// the node, and every other line to the log: go-plugin prints the handshake to os.Stdout,
// and a goroutine of the transport may print there at the same moment.
func filterStdout() error {
	r, w, err := os.Pipe()
	if err != nil {
		return fmt.Errorf("standard output: %w", err)
	}
	os.Stdout = w
	go passHandshake(r, stdout, stderr)
	return nil
}

func passHandshake(r io.Reader, node, other io.Writer) {
	lines := bufio.NewScanner(r)
	shaken := false
	for lines.Scan() {
		to := other
		if !shaken && handshakeLine.Match(lines.Bytes()) {
			shaken, to = true, node
		}
		fmt.Fprintf(to, "%s\n", lines.Bytes())
	}
	_, _ = io.Copy(io.Discard, r) // a line was too long; do not block its writer
}
