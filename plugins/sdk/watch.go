package sdk

import (
	"errors"
	"os"
	"os/signal"
	"sync"
	"syscall"
	"time"

	"github.com/openimpi/impi/plugins/proto/handover"
)

// watchNode ends the process when the node has died or wants no more: the
// descriptor channel ends then.
func watchNode(fds *handover.Conn, s *server) {
	for {
		r, err := fds.Receive()
		if err == nil {
			r.Close() // of a later version; nothing was agreed on
			continue
		}
		if errors.Is(err, handover.ErrRecord) || errors.Is(err, handover.ErrTruncated) {
			continue
		}
		leave(s, 0)
	}
}

// watchSignals ends the process in order when it is asked to, or when the kernel
// reports the node's death. Interrupts are the node's business.
func watchSignals(s *server) {
	c := make(chan os.Signal, 1)
	signal.Notify(c, syscall.SIGTERM)
	<-c
	leave(s, 0)
}

// patience is how long the transport's listeners may take to close.
const patience = 500 * time.Millisecond

var leaving sync.Once

// leave closes the listeners, whose files would be left behind, and ends the
// process.
func leave(s *server, status int) {
	leaving.Do(func() {
		time.AfterFunc(patience, func() { os.Exit(status) })
		s.close()
		os.Exit(status)
	})
	select {} // somebody else is about to end the process
}
