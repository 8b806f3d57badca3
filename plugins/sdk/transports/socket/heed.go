package socket

import (
	"errors"
	"net"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/openimpi/impi/plugins/sdk/link"
)

// heard is a TCP connection of package net that notices a silent peer.
type heard struct {
	*net.TCPConn
	silence time.Duration
	lost    atomic.Bool
	close   sync.Once
}

// Heed wraps a connection so that it returns link.ErrSilent if the peer was silent for the
// time of SetSilence.
func Heed(c *net.TCPConn) net.Conn {
	h := &heard{TCPConn: c}
	if raw, err := c.SyscallConn(); err == nil {
		_ = raw.Control(func(fd uintptr) { h.silence = silenceOf(int(fd)) }) // 0 if it is closed
	}
	if h.silence > 0 {
		watched.add(h, h.silence)
	}
	return h
}

// Explain returns the error of a call on a connection, which may be TLS over another
// connection. If the kernel has given up the connection because the peer was silent, that
// is a link.SilentError.
func Explain(c net.Conn, err error) error {
	if err == nil || !silent(err) || errors.Is(err, link.ErrSilent) {
		return err
	}
	e := &link.SilentError{Peer: "tcp " + c.RemoteAddr().String()}
	for {
		above, ok := c.(interface{ NetConn() net.Conn })
		if !ok {
			break
		}
		c = above.NetConn()
	}
	if s, ok := c.(syscall.Conn); ok {
		if raw, err := s.SyscallConn(); err == nil {
			_ = raw.Control(func(fd uintptr) { e.For = silenceOf(int(fd)) }) // fails if it is closed
		}
	}
	return e
}

// KeepAlive returns the settings of SetSilence in the form for package net's listeners and dialers.
func KeepAlive(silence time.Duration) net.KeepAliveConfig {
	a := askingFor(min(max(silence, MinSilence), MaxSilence))
	return net.KeepAliveConfig{
		Enable: true, Count: a.count,
		Idle: time.Duration(a.idle) * time.Second, Interval: time.Duration(a.interval) * time.Second,
	}
}

// hear gives the connection up if its peer has been silent for limit (see heeded).
func (h *heard) hear(limit time.Duration) {
	raw, err := h.SyscallConn()
	if err != nil {
		return
	}
	_ = raw.Control(func(fd uintptr) { // fails if it is closed
		if fallen(int(fd), limit) {
			h.lost.Store(true) // before the shutdown, which makes a reader find the end at once
			_ = unix.Shutdown(int(fd), unix.SHUT_RDWR)
		}
	})
}

// Read is that of the connection, but explains the error if the peer has been silent for too long.
func (h *heard) Read(b []byte) (int, error) {
	n, err := h.TCPConn.Read(b)
	return n, h.explain(err)
}

// Write is that of the connection, but explains the error if the peer has been silent for too long.
func (h *heard) Write(b []byte) (int, error) {
	n, err := h.TCPConn.Write(b)
	return n, h.explain(err)
}

func (h *heard) explain(err error) error {
	if err == nil || !h.lost.Load() && !silent(err) {
		return err
	}
	return &link.SilentError{Peer: "tcp " + h.RemoteAddr().String(), For: h.silence}
}

// NetConn returns the wrapped connection.
func (h *heard) NetConn() net.Conn { return h.TCPConn }

// Close closes the connection, whose silence nobody watches any more.
func (h *heard) Close() error {
	h.close.Do(func() { watched.drop(h) })
	return h.TCPConn.Close()
}
