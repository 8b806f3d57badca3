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

// Logger gives the process's logger. What is logged appears in the node's log at
// the same level, under the transport's name; levels that the node does not want
// to see are not sent. It can be used before Serve.
var Logger = sync.OnceValue(func() hclog.Logger {
	level := hclog.LevelFromString(os.Getenv(proto.EnvLogLevel))
	if level == hclog.NoLevel {
		level = hclog.Info
	}
	return hclog.New(&hclog.LoggerOptions{Level: level, Output: stderr, JSONFormat: started})
})

// captureStdLog makes the standard library's logger, which many packages and
// go-plugin itself use, write to ours.
func captureStdLog() {
	log.SetFlags(0)
	log.SetPrefix("")
	log.SetOutput(Logger().StandardWriter(&hclog.StandardLoggerOptions{InferLevels: true}))
}

// handshakeLine is what go-plugin prints when it is ready to be called.
var handshakeLine = regexp.MustCompile(`^\d+\|\d+\|(unix|tcp)\|[^|]+\|grpc\|`)

// filterStdout makes os.Stdout a pipe of which the handshake goes to the node,
// the first time, and every other line to the log. go-plugin prints the
// handshake there, and so may a goroutine of the transport at the same moment.
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
	_, _ = io.Copy(io.Discard, r) // a line was too long; its writer must not block
}
