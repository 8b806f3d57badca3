package proto

// The handshake. Everything here is part of the protocol: changing it needs
// another protocol version.
const (
	// Version is go-plugin's application protocol version, the newest that is spoken
	// here, and Oldest the oldest one: both sides use the highest that they share.
	Version = 2
	Oldest  = 1

	// CookieKey and CookieValue tell a plugin that a node has started it.
	CookieKey   = "IMPI_TRANSPORT_PLUGIN"
	CookieValue = "7d1f0d0e3b5c4a6f9a41c8c2d2f6be11"

	// ServiceName is the plugin's name in go-plugin's plugin set.
	ServiceName = "transport"

	// EnvBuiltin names the transport that a binary with several built in has to
	// serve.
	EnvBuiltin = "IMPI_BUILTIN_TRANSPORT"

	// EnvLogLevel is the least severe level that the node wants to see: trace,
	// debug, info, warn, error or off.
	EnvLogLevel = "IMPI_PLUGIN_LOG_LEVEL"

	// DescriptorFD is the number under which the plugin has its end of the
	// descriptor channel.
	DescriptorFD = 3

	// MaxConfigure is the size of the largest ConfigureRequest, in bytes.
	MaxConfigure = 1 << 20

	// MaxMessage is the size of the largest message that either side takes.
	MaxMessage = 2 << 20

	// RingLayout is the version of the layout of rings (package transports/support/ring), and
	// WakeSocket how their sides wake each other.
	RingLayout = 1
	WakeSocket = "socket"

	// Windows of HTTP/2, in bytes: what may be under way in one link whose data plane
	// is "grpc", and in all together.
	StreamWindow = 1 << 20
	ConnWindow   = 8 << 20

	// MaxWaiting is how many links a plugin holds that nobody has opened. It
	// accepts no more until one of them is opened or closed.
	MaxWaiting = 256
)
