package proto

// The handshake. Everything here is part of the protocol: changing it needs
// another protocol version.
const (
	// Version is the highest version of the protocol that this package speaks (go-plugin's
	// application protocol version), and Oldest the lowest. Both sides use the highest that
	// they share.
	Version = 2
	Oldest  = 1

	// CookieKey and CookieValue tell a plugin that a node has started it.
	CookieKey   = "IMPI_TRANSPORT_PLUGIN"
	CookieValue = "7d1f0d0e3b5c4a6f9a41c8c2d2f6be11"

	// ServiceName is the plugin's name in go-plugin's plugin set.
	ServiceName = "transport"

	// EnvBuiltin names the transport to serve, for a binary with several built in.
	EnvBuiltin = "IMPI_BUILTIN_TRANSPORT"

	// EnvLogLevel is the lowest level that the node wants to get: trace, debug, info, warn,
	// error or off.
	EnvLogLevel = "IMPI_PLUGIN_LOG_LEVEL"

	// DescriptorFD is the plugin's descriptor for its end of the descriptor channel.
	DescriptorFD = 3

	// MaxConfigure is the maximum size of a ConfigureRequest, in bytes.
	MaxConfigure = 1 << 20

	// MaxMessage is the maximum size of a message that either side accepts, in bytes.
	MaxMessage = 2 << 20

	// RingLayout is the version of the layout of rings (package plugins/sdk/support/ring),
	// and WakeSocket the way in which their sides wake each other.
	RingLayout = 1
	WakeSocket = "socket"

	// StreamWindow and ConnWindow are HTTP/2 windows: the maximum bytes under way in one link with
	// data plane "grpc", and in all of them together.
	StreamWindow = 1 << 20
	ConnWindow   = 8 << 20

	// MaxWaiting is the maximum number of links that a plugin holds before they are opened. Beyond
	// that it accepts none until one of them is opened or closed.
	MaxWaiting = 256
)
