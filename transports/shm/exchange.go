package shm

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/openimpi/impi/plugins/sdk/support/ring"
)

// The exchange: the dialler sends hello with the region's descriptor; the listener answers
// yes, or no with a reason and a newline. After that the socket belongs to the ring.
const (
	hello    = "impi-shm 1\n"
	yes      = "ok\n"
	no       = "no "
	maxReply = 200
)

var errProtocol = errors.New("the other side does not speak impi-shm")

type refusedError struct{ reason string }

func (e *refusedError) Error() string { return "the other side says: " + e.reason }

// offer makes a region and sends it. It owns sock.
func offer(ctx context.Context, sock, size int) (*ring.Link, error) {
	file, err := ring.CreateForProcs(size)
	if err != nil {
		_ = unix.Close(sock)
		return nil, err
	}
	err = send(ctx, sock, []byte(hello), unix.UnixRights(file))
	if err == nil {
		err = awaitReply(ctx, sock)
	}
	if err != nil {
		_, _ = unix.Close(file), unix.Close(sock)
		return nil, err
	}
	return ring.NewDetachable(file, sock, 0)
}

// accept takes the region that the other side offers. It owns sock.
func accept(ctx context.Context, sock int) (*ring.Link, error) {
	file, err := receiveRegion(ctx, sock)
	if err != nil {
		_ = unix.Close(sock)
		return nil, err
	}
	keep, err := unix.FcntlInt(uintptr(sock), unix.F_DUPFD_CLOEXEC, 0) // to send the refusal, if the ring cannot be made
	if err != nil {
		_, _ = unix.Close(file), unix.Close(sock)
		return nil, err
	}
	defer unix.Close(keep)
	l, err := ring.NewDetachable(file, sock, 1)
	if err != nil {
		_ = send(ctx, keep, []byte(no+strings.ReplaceAll(err.Error(), "\n", " ")+"\n"), nil)
		return nil, err
	}
	if err := send(ctx, keep, []byte(yes), nil); err != nil {
		_ = l.Close()
		return nil, err
	}
	return l, nil
}

func receiveRegion(ctx context.Context, sock int) (file int, err error) {
	b := make([]byte, len(hello)+1)
	oob := make([]byte, unix.CmsgSpace(8*4))
	var n, oobn int
	err = retry(ctx, sock, unix.POLLIN, func() (err error) {
		n, oobn, _, _, err = unix.Recvmsg(sock, b, oob, unix.MSG_DONTWAIT|unix.MSG_CMSG_CLOEXEC)
		return err
	})
	if err != nil {
		return -1, err
	}
	fds := descriptors(oob[:oobn])
	if string(b[:n]) != hello || len(fds) != 1 {
		closeAll(fds)
		return -1, fmt.Errorf("%w: it sent %q with %d descriptors", errProtocol, b[:n], len(fds))
	}
	return fds[0], nil
}

// descriptors returns the descriptors of any control message, so that they can be closed.
func descriptors(oob []byte) (all []int) {
	messages, _ := unix.ParseSocketControlMessage(oob) // what could be parsed is used
	for i := range messages {
		if fds, err := unix.ParseUnixRights(&messages[i]); err == nil {
			all = append(all, fds...)
		}
	}
	return all
}

func closeAll(fds []int) {
	for _, fd := range fds {
		_ = unix.Close(fd)
	}
}

// awaitReply reads the answer to hello and nothing behind it.
func awaitReply(ctx context.Context, sock int) error {
	var line []byte
	b := make([]byte, 1)
	for len(line) < maxReply {
		n := 0
		err := retry(ctx, sock, unix.POLLIN, func() (err error) {
			n, _, err = unix.Recvfrom(sock, b, unix.MSG_DONTWAIT)
			return err
		})
		switch {
		case err != nil:
			return err
		case n == 0:
			return fmt.Errorf("%w: it hung up after %q", errProtocol, line)
		}
		if line = append(line, b[0]); b[0] != '\n' {
			continue
		}
		switch s := string(line); {
		case s == yes:
			return nil
		case strings.HasPrefix(s, no):
			return &refusedError{strings.TrimSpace(s[len(no):])}
		}
		break
	}
	return fmt.Errorf("%w: it answered %q", errProtocol, line)
}

// send sends b and the descriptors in oob by one call, since the other side takes them together.
func send(ctx context.Context, sock int, b, oob []byte) error {
	n := 0
	err := retry(ctx, sock, unix.POLLOUT, func() (err error) {
		n, err = unix.SendmsgN(sock, b, oob, nil, unix.MSG_DONTWAIT|unix.MSG_NOSIGNAL)
		return err
	})
	if err == nil && n < len(b) {
		err = fmt.Errorf("%w: it took %d of %d bytes", errProtocol, n, len(b))
	}
	return err
}

// slice is how long a poll lasts at most before the context is checked.
const slice = 20 * time.Millisecond

func retry(ctx context.Context, sock int, events int16, call func() error) error {
	for {
		err := call()
		if !errors.Is(err, unix.EAGAIN) && !errors.Is(err, unix.EINTR) {
			return err
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
		fds := []unix.PollFd{{Fd: int32(sock), Events: events}}
		if _, err := unix.Poll(fds, int(slice/time.Millisecond)); err != nil && !errors.Is(err, unix.EINTR) {
			return err
		}
	}
}
