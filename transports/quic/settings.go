package quic

import (
	"errors"
	"fmt"
	"net/netip"
	"time"

	"github.com/quic-go/quic-go"

	"github.com/openimpi/impi/plugins/sdk/transports"
	"github.com/openimpi/impi/plugins/sdk/transports/identity"
	"github.com/openimpi/impi/plugins/sdk/transports/socket"
	"github.com/openimpi/impi/plugins/sdk/transports/stripe"
)

const (
	mib = 1 << 20
	// defaultWindow is enough for 1 Gbit/s over 100 ms, and as much as the library's
	// congestion window can grow to.
	defaultWindow = 16 * mib
	// startWindow is the window that the receiver of a link grants at first. The library
	// enlarges it while the bytes are taken as fast as they come. A link that is not read
	// costs no more than this.
	startWindow = mib
	// defaultBuffer is the size of UDP buffers that the library recommends.
	defaultBuffer = 7 * mib
	// handshakeTime bounds the peer's part of a handshake. It is as long as with TLS over
	// TCP, because of busy machines.
	handshakeTime = 10 * time.Second
	// defaultStreams is as for tcp.
	defaultStreams = 8.0
	// near is the round trip below which one connection is enough.
	near     = 5 * time.Millisecond
	maxLinks = 1 << 14
)

// schema lists the settings, those of the identity first.
var schema = append(identity.Settings(true), []transports.Setting{
	{Name: "lanes", Type: transports.TypeNumber, Default: 2.0, Doc: "most connections to one peer; its links are spread over them, each on a stream of its own"},
	{Name: "streams", Type: transports.TypeNumber, Default: defaultStreams, Doc: "most connections that carry the bytes of a link made to this site, up to 32, on a stream each; a link begins with one and gets the others once it has carried 256 KiB, if the round trip is 5 ms or more"},
	{Name: "window", Type: transports.TypeNumber, Default: float64(defaultWindow), Doc: "bytes that may be under way on a link, from 65536; bandwidth times round trip"},
	socket.SilenceSetting(),
	{Name: "keepalive", Type: transports.TypeNumber, Doc: "seconds of silence after which the peer is asked whether it lives, and soon after another way to it is tried; a quarter of silence if it is not written"},
	{Name: "idle_timeout", Type: transports.TypeNumber, Doc: "silence, finer: seconds without a sign of life after which the link counts as broken; at least twice keepalive"},
	{Name: "handshake_timeout", Type: transports.TypeNumber, Default: handshakeTime.Seconds(), Doc: "seconds that a peer has for its part of a handshake"},
	{Name: "udp_buffer", Type: transports.TypeNumber, Default: float64(defaultBuffer), Doc: "bytes of each buffer of a UDP socket; the kernel may give less, which is warned of"},
	{Name: "bind", Type: transports.TypeString, Default: "", Doc: "IP address to listen on instead of the host's advertised one, for hosts behind address translation; 0.0.0.0 or :: for all"},
	{Name: "port_range", Type: transports.TypeString, Default: "", Doc: `UDP ports to listen on, as "first-last", when no port is given; for firewalls`},
}...)

// settings are the values of one Configure; they are immutable.
type settings struct {
	id                  *identity.Identity
	connections         int
	streams             int           // maximum streams of a link that is dialled to our listeners, each on a connection of its own
	near                time.Duration // the constant near; tests set it
	window              int
	keepalive, idle     time.Duration
	handshake           time.Duration
	buffer              int
	bind                netip.Addr
	firstPort, lastPort uint16
}

// Schema lists the settings.
func (t *Transport) Schema() []transports.Setting {
	return append([]transports.Setting(nil), schema...)
}

// Configure sets the settings of connections and listeners that are made after it.
func (t *Transport) Configure(given map[string]any) error {
	s := &settings{near: near}
	var errs [11]error
	s.id, errs[0] = identity.Load(given)
	s.connections, errs[1] = socket.Whole(given, named("lanes"), 1, 64)
	s.streams, errs[10] = socket.Whole(given, named("streams"), 1, stripe.MaxConnections)
	s.window, errs[2] = socket.Whole(given, named("window"), 64<<10, 1<<30)
	silence, err := socket.Silence(given)
	if errs[9] = err; silence == 0 {
		silence = socket.MaxSilence
	}
	s.idle, errs[4] = seconds(given, named("idle_timeout"), silence)
	s.keepalive, errs[3] = seconds(given, named("keepalive"), s.idle/4)
	s.handshake, errs[5] = seconds(given, named("handshake_timeout"), handshakeTime)
	s.buffer, errs[6] = socket.Whole(given, named("udp_buffer"), 64<<10, socket.MaxBuffer)
	s.bind, errs[7] = socket.Bind(given, named("bind"))
	s.firstPort, s.lastPort, errs[8] = socket.PortRange(given, named("port_range"))
	if errs[3] == nil && errs[4] == nil && s.idle < 2*s.keepalive {
		errs[4] = &transports.SettingError{
			Name: "idle_timeout", Problem: fmt.Sprintf("%v is less than twice the keepalive of %v", s.idle, s.keepalive),
			Remedy: "give it or silence more, or ask more often with keepalive"}
	}
	if err := errors.Join(errs[:]...); err != nil {
		return err
	}
	t.settings.Store(s)
	return nil
}

func named(name string) transports.Setting {
	for _, s := range schema {
		if s.Name == name {
			return s
		}
	}
	panic("quic: no setting " + name)
}

// seconds reads a time, which is absent if it is not set.
func seconds(given map[string]any, of transports.Setting, absent time.Duration) (time.Duration, error) {
	v, ok := given[of.Name].(float64)
	if !ok {
		return absent, nil
	}
	if v < 0.05 || v > 3600 || v != v {
		return 0, &transports.SettingError{
			Name: of.Name, Problem: fmt.Sprintf("%v is not possible", v), Remedy: "write seconds from 0.05 to 3600"}
	}
	return time.Duration(v * float64(time.Second)), nil
}

// config returns the library's configuration. links is how many streams the peer may open.
func (s *settings) config(links int64) *quic.Config {
	return &quic.Config{
		Versions:                   []quic.Version{quic.Version1},
		HandshakeIdleTimeout:       s.handshake,
		MaxIdleTimeout:             libraryIdle, // see watch
		KeepAlivePeriod:            s.keepalive,
		InitialStreamReceiveWindow: uint64(min(startWindow, s.window)),
		MaxStreamReceiveWindow:     uint64(s.window),
		// With one window for all links, a link that is not read could block the others.
		// The links' own windows bound what a connection can buffer.
		InitialConnectionReceiveWindow: uint64(s.window) * maxLinks,
		MaxConnectionReceiveWindow:     uint64(s.window) * maxLinks,
		MaxIncomingStreams:             links,
		MaxIncomingUniStreams:          -1,
	}
}
