package sdk

import (
	"log"
	"os"
	"sync"

	"github.com/hashicorp/go-hclog"

	"github.com/openimpi/impi/plugins/sdk/proto"
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

// captureStdLog redirects the standard library's logger, which many packages
// use, to Logger.
func captureStdLog() {
	log.SetFlags(0)
	log.SetPrefix("")
	log.SetOutput(Logger().StandardWriter(&hclog.StandardLoggerOptions{InferLevels: true}))
}
