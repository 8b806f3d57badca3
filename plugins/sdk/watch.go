package sdk

import (
	"errors"
	"os"
	"os/signal"
	"sync"
	"syscall"
	"time"

	"github.com/openimpi/impi/plugins/sdk/proto/handover"
)

// watchNode ends the process when the descriptor channel ends: the node has died or does
// not need the plugin any more.
func watchNode(fds *handover.Conn, s *server) {
	for {
		r, err := fds.Receive()
		if err == nil {
			r.Close() // of a later version of the protocol: it was not agreed on
			continue
		}
		if errors.Is(err, handover.ErrRecord) || errors.Is(err, handover.ErrTruncated) {
			continue
		}
		leave(s, 0)
	}
}

// watchSignals ends the process in order when it gets SIGTERM, which the kernel also sends
// when the node dies. Interrupts of a terminal go to the node's process group only.
func watchSignals(s *server) {
	c := make(chan os.Signal, 1)
	signal.Notify(c, syscall.SIGTERM)
	<-c
	leave(s, 0)
}

// patience is how long the transport's listeners may take to close.
const patience = 500 * time.Millisecond

var leaving sync.Once

// leave closes the listeners, whose files would remain otherwise, and ends the process.
func leave(s *server, status int) {
	leaving.Do(func() {
		time.AfterFunc(patience, func() { os.Exit(status) })
		s.close()
		os.Exit(status)
	})
	select {} // another goroutine is ending the process
}
