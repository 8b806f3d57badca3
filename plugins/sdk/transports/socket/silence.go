package socket

import (
	"errors"
	"fmt"
	"slices"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/openimpi/impi/plugins/sdk/transports"
)

// DefaultSilence is the default time for which a peer may be silent.
const DefaultSilence = 10 * time.Second

// MaxSilence is the longest time that SetSilence accepts, and MinSilence the shortest.
const (
	MinSilence = 2 * time.Second
	MaxSilence = time.Hour
)

// SilenceSetting returns the setting that gets the value of limits { silence }.
func SilenceSetting() transports.Setting {
	return transports.Setting{
		Name: transports.SilenceName, Type: transports.TypeNumber, Default: DefaultSilence.Seconds(),
		Doc: "seconds after which a peer of which nothing is heard is lost; 0: never; the job file's limits { silence } if it is not written here",
	}
}

// Silence returns the value of the setting of SilenceSetting: whole seconds, or 0.
func Silence(settings map[string]any) (time.Duration, error) {
	s, err := Whole(settings, SilenceSetting(), 0, int(MaxSilence/time.Second))
	d := time.Duration(s) * time.Second
	if err == nil && d > 0 && d < MinSilence {
		err = &transports.SettingError{
			Name: transports.SilenceName, Problem: fmt.Sprintf("%v is too short", d), Remedy: fmt.Sprintf("write %v or more, or 0 for never", MinSilence.Seconds())}
	}
	return d, err
}

// asking says how the kernel checks the peer of a TCP connection while nothing is sent:
// after idle seconds, then count times, every interval seconds.
type asking struct{ idle, interval, count int }

// askingFor divides a time of silence among the checks.
func askingFor(silence time.Duration) asking {
	s := int(silence / time.Second)
	if s < 4 {
		return asking{s - 1, 1, 1}
	}
	every := max(1, s/5)
	return asking{s - 3*every, every, 3}
}

// silence is the time after which a peer that does not answer is lost.
func (a asking) silence() time.Duration {
	return time.Duration(a.idle+a.interval*a.count) * time.Second
}

// SetSilence makes the kernel notice, while nothing is sent, that the peer of a TCP socket
// has gone, within the given time. The kernels of both ends do this, whatever their
// processes do. While data is not acknowledged, Link does it.
//
// TCP_USER_TIMEOUT would do both, but Linux then also ends a connection whose peer answers
// all the time that it has no room, because its process computes or is stopped.
func SetSilence(fd int, silence time.Duration) error {
	if silence <= 0 {
		return nil
	}
	a := askingFor(min(max(silence, MinSilence), MaxSilence))
	for _, o := range []struct{ level, name, value int }{
		{unix.SOL_SOCKET, unix.SO_KEEPALIVE, 1},
		{unix.SOL_TCP, unix.TCP_KEEPIDLE, a.idle},
		{unix.SOL_TCP, unix.TCP_KEEPINTVL, a.interval},
		{unix.SOL_TCP, unix.TCP_KEEPCNT, a.count},
	} {
		if err := unix.SetsockoptInt(fd, o.level, o.name, o.value); err != nil {
			return fmt.Errorf("set option %d/%d of a TCP socket to %d: %w", o.level, o.name, o.value, err)
		}
	}
	return nil
}

// silenceOf returns what was set on a socket, perhaps by a plugin; 0 if it is not a TCP
// socket, or nothing was set.
func silenceOf(fd int) time.Duration {
	if on, err := unix.GetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_KEEPALIVE); err != nil || on == 0 {
		return 0
	}
	var v [3]int
	for i, name := range []int{unix.TCP_KEEPIDLE, unix.TCP_KEEPINTVL, unix.TCP_KEEPCNT} {
		var err error
		if v[i], err = unix.GetsockoptInt(fd, unix.SOL_TCP, name); err != nil {
			return 0
		}
	}
	return asking{v[0], v[1], v[2]}.silence()
}

// mute reports whether the state of a TCP connection shows that the peer's kernel does not
// answer any more: we wait for it to acknowledge something, have retransmitted, and nothing
// at all has come for limit. A peer that has announced that it has no room answers only
// probes, which become rare; such a peer is left to the checks of an idle connection.
func mute(i *unix.TCPInfo, limit time.Duration) bool {
	heard := time.Duration(min(i.Last_ack_recv, i.Last_data_recv)) * time.Millisecond
	return i.Unacked > 0 && i.Snd_wnd > 0 && i.Retransmits > 0 && heard >= limit
}

// silent reports whether the kernel's error of a connection means that the peer does not
// answer. When the kernel gives up, it returns the last error that it got from the network,
// if any.
func silent(err error) bool {
	lost := []syscall.Errno{syscall.ETIMEDOUT, syscall.EHOSTUNREACH, syscall.ENETUNREACH, syscall.EHOSTDOWN, syscall.ENETDOWN}
	return slices.ContainsFunc(lost, func(e syscall.Errno) bool { return errors.Is(err, e) })
}
