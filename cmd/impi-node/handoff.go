package main

import (
	"crypto/rand"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"strconv"
	"time"

	"golang.org/x/sys/unix"

	"github.com/openimpi/impi/config"
	"github.com/openimpi/impi/core/ending"
	"github.com/openimpi/impi/core/wire"
	"github.com/openimpi/impi/internal/procs"
)

// order is the launcher's message to each of its nodes. It is sent over an inherited socket, as no
// other process may see the key. It is JSON and not gRPC because there are only a few messages, one
// after the other.
type order struct {
	Server *netip.AddrPort `json:"server,omitempty"` // the launcher's; nil: as in the file
	Key    *uint64         `json:"key,omitempty"`    // drawn for this job; nil: as in the file

	Addresses map[string]netip.Addr `json:"addresses,omitempty"` // of host names in the file

	HangupReloads bool `json:"hangup_reloads,omitempty"` // for the launcher, so that nohup holds for its nodes

	// As in node.Options.
	Waited      time.Duration `json:"waited,omitempty"`
	BoundBefore int           `json:"bound_before,omitempty"`
	Bound       int           `json:"bound,omitempty"`
}

// signalsReady is a node's first message to its launcher: it handles signals now, and signals for
// its procs do not end it any more.
type signalsReady struct {
	Signals bool `json:"signals"`
}

// outcome is a node's last message to its launcher.
type outcome struct {
	Text   string `json:"text"` // empty: success
	Status int    `json:"status"`
	Remote bool   `json:"remote"` // another site has reported it
	Early  bool   `json:"early"`  // the job had not begun at the site
	Lost   int    `json:"lost"`   // number of lost procs that the job continues without
}

// news is any message of a node to its launcher after signalsReady: its outcome, or before that,
// that it has reloaded the job file, or that the job goes on without some procs.
type news struct {
	outcome
	Reloaded bool       `json:"reloaded,omitempty"`
	Loss     *wire.Lost `json:"loss,omitempty"`
}

type handoff struct {
	conn  net.Conn
	order order
}

// handoffPair makes both ends of the socket: the launcher's, and the one that the node inherits.
func handoffPair() (net.Conn, *os.File, error) {
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, nil, fmt.Errorf("socket to a node: %w", err)
	}
	theirs := os.NewFile(uintptr(fds[1]), "handoff")
	ours, err := connOf(fds[0])
	if err != nil {
		return nil, nil, errors.Join(err, theirs.Close())
	}
	return ours, theirs, nil
}

func connOf(fd int) (net.Conn, error) {
	unix.CloseOnExec(fd)
	f := os.NewFile(uintptr(fd), "handoff")
	defer f.Close() // FileConn duplicates the descriptor
	c, err := net.FileConn(f)
	if err != nil {
		return nil, fmt.Errorf("socket between launcher and node: %w", err)
	}
	return c, nil
}

// takeHandoff reads the launcher's order, and tells the launcher that this process handles
// signals. It returns nil in a process that was not started by a launcher.
func takeHandoff() (*handoff, error) {
	v, ok := os.LookupEnv(procs.HandoffVariable)
	if !ok {
		return nil, nil
	}
	fd, err := strconv.Atoi(v)
	if err != nil || fd < 3 {
		return nil, fmt.Errorf("%s=%q is not a descriptor; only impi-node sets it", procs.HandoffVariable, v)
	}
	if err := os.Unsetenv(procs.HandoffVariable); err != nil {
		return nil, err
	}
	h := &handoff{}
	if h.conn, err = connOf(fd); err != nil {
		return nil, err
	}
	if err := json.NewDecoder(h.conn).Decode(&h.order); err != nil {
		return nil, fmt.Errorf("the launcher's order: %w", err)
	}
	hangupReloads = h.order.HangupReloads
	keepHangup()
	if err := json.NewEncoder(h.conn).Encode(signalsReady{Signals: true}); err != nil {
		return nil, fmt.Errorf("the launcher: %w", err)
	}
	return h, nil
}

func (h *handoff) apply(s *config.Site) {
	if h.order.Server != nil {
		s.Server = config.Server{Address: *h.order.Server, Pos: s.Server.Pos, Ours: true, TLS: s.Server.TLS}
	}
	if h.order.Key != nil {
		s.Auth = config.Auth{Keyed: true, Key: *h.order.Key}
	}
}

func (h *handoff) report(err error) int {
	o := outcome{}
	if err != nil {
		o = outcome{Text: err.Error(), Status: ending.StatusNode}
		if f, ok := errors.AsType[*ending.Failure](err); ok {
			o.Status, o.Remote, o.Early, o.Lost = f.Status, f.Remote, f.Early, f.Lost
		}
	}
	_ = json.NewEncoder(h.conn).Encode(news{outcome: o}) // the launcher may have ended
	_ = h.conn.Close()
	return o.Status
}

// reloaded tells the launcher, which may run the job's server, that the job file has changed. h may
// be nil.
func (h *handoff) reloaded() {
	if h != nil {
		_ = json.NewEncoder(h.conn).Encode(news{Reloaded: true}) // the launcher may have ended
	}
}

// lost tells the launcher that the job goes on without procs. Other nodes tell it the same.
func (h *handoff) lost(l wire.Lost) {
	_ = json.NewEncoder(h.conn).Encode(news{Loss: &l}) // the launcher may have ended
}

func drawKey(a *config.Auth) {
	if !a.Random {
		return
	}
	var b [8]byte
	_, _ = rand.Read(b[:]) // never fails
	*a = config.Auth{Keyed: true, Key: binary.BigEndian.Uint64(b[:])}
}
