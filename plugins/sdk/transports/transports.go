// Package transports is the contract between the product and what moves its bytes: a
// Transport makes links. Implementations are in the folder transports of impi's
// repository and in vendors' own modules; only the mains of plugins import them.
package transports

import (
	"context"
	"net"
	"slices"

	"github.com/openimpi/impi/plugins/sdk/link"
)

// Transport makes links. Its methods may be called from several goroutines.
type Transport interface {
	// Info identifies the transport. It is called before anything else.
	Info() Info

	// Capabilities returns what the transport's links can do.
	Capabilities() Capabilities

	// Schema lists the settings that Configure accepts.
	Schema() []Setting

	// Configure sets the transport's settings: names of Schema to string, float64, bool or
	// []string. The caller has set the defaults and checked the types. Configure may be
	// called again; a setting that cannot change while links are open is a *SettingError.
	// All faults are returned, joined by errors.Join.
	Configure(settings map[string]any) error

	// Listen opens an address where peers can dial. The context bounds only the opening.
	Listen(ctx context.Context, at ListenSpec) (Listener, error)

	// Dial connects to a peer's listener. It fails with a *Error, and returns no later than
	// the context's end.
	Dial(ctx context.Context, to DialSpec) (link.Link, error)
}

// Listener accepts links.
type Listener interface {
	// Accept waits for the next link. After Close it returns link.ErrClosed, also from
	// calls that are waiting. Any other failure is a *Error; after one that is Retryable
	// the listener works as before (somebody without the right identity was refused, the context has
	// ended). A link that arrives as the context ends is not lost. Several goroutines may wait.
	Accept(ctx context.Context) (link.Link, error)

	// Address is what a peer's DialSpec must have to reach this listener. It is printable
	// text without spaces, which only the transport interprets.
	Address() string

	// Close stops accepting. It does not affect accepted links, and may be called again.
	Close() error
}

// Socket is a link over a kernel stream socket. A plugin hands over the descriptor of such
// a link and does not see its bytes (data plane "fd").
type Socket interface {
	link.Link

	// Detach gives up the link. It returns the link's descriptor, which the caller then
	// owns, and bytes that were received but not read yet, which precede those that the
	// descriptor still has. The link is closed. Detach fails while another goroutine is in
	// Send or Recv.
	Detach() (fd int, preread []byte, err error)
}

// Memory is a link through memory that this process and the peer share (package
// plugins/sdk/support/ring). A plugin hands over the memory of such a link and does not see
// its bytes (data plane "peer-shm").
type Memory interface {
	link.Link

	// Detach gives up the link. It returns the descriptors of the memory and of its socket, which
	// the caller then owns, and the side of the memory, 0 or 1, that is this one's. The link is
	// closed. No other call may be in progress.
	Detach() (region, socket, side int, err error)
}

// Conn is a connection with a half-close: after CloseWrite the peer's Read returns io.EOF,
// and reading continues. Close must not discard what Write has taken. If a Conn also has a
// method Break, without arguments or result, it is called when bytes were lost: the peer's
// Read should then fail, and not return io.EOF.
type Conn interface {
	net.Conn
	CloseWrite() error
}

// Piped is a link over a connection that lives in this process, such as a TLS or
// QUIC stream (package plugins/sdk/transports/conn). A plugin passes its bytes on (data planes
// "ring", "stream" and "grpc").
type Piped interface {
	link.Link

	// Detach gives up the link and returns its connection, which the caller then owns. The
	// link is closed. Detach fails once the link was used.
	Detach() (Conn, error)
}

// Relayed is the near side of a link whose bytes a plugin passes on (package
// plugins/sdk/support/relay).
type Relayed interface {
	link.Link

	// Plane returns "ring", "stream" or "grpc".
	Plane() DataPlane

	// Detach gives up the link. It returns the descriptors from which another process can
	// make the same link, which the caller then owns, and the side of a ring that is this
	// one's. The link is closed. No other call may be in progress.
	Detach() (fds []int, side int, err error)
}

// Info says what a transport is called, in job files and in messages, and who has made it.
type Info struct {
	Name    string // as in the config: lower case, [a-z][a-z0-9-]*
	Version string
	Vendor  string
}

// ListenSpec describes where to listen. A transport uses the fields that it needs.
type ListenSpec struct {
	Host string // numeric IP address that the site advertises
	Port int    // 0: any
	Dir  string // private directory, 0700, for socket files
	Name string // short name, unique among this machine's listeners

	// IPChannel requests addresses that FeatureIPChannelIfAsked offers.
	IPChannel bool
}

// DialSpec describes the listener to dial.
type DialSpec struct {
	Address string // a Listener's Address
	From    string // numeric IP address to dial from, or empty
}

// Capabilities describes the properties of a transport's links.
type Capabilities struct {
	DataPlanes []DataPlane // how bytes may leave the plugin, best first
	Features   []Feature
	Reach      Reach
}

// Has reports whether the transport has declared a feature.
func (c Capabilities) Has(f Feature) bool {
	return slices.Contains(c.Features, f)
}

// DataPlane is how a link's bytes get from the proc to the wire (docs/plugin-protocol.md).
type DataPlane string

// The data planes, in the order in which they are preferred.
const (
	PlaneFD      DataPlane = "fd"       // a kernel socket, handed over
	PlanePeerSHM DataPlane = "peer-shm" // rings shared by the two procs themselves
	PlaneRDMA    DataPlane = "rdma"     // messages by a control region between proc and plugin, which reads remote memory
	PlaneRing    DataPlane = "ring"     // rings between proc and plugin
	PlaneStream  DataPlane = "stream"   // a socket pair; the plugin passes the bytes on
	PlaneGRPC    DataPlane = "grpc"     // the control connection
)

// Feature is a property of a transport's links. Unknown features are ignored.
type Feature string

// The features.
const (
	FeatureEncrypted Feature = "encrypted"  // no third party can read the bytes
	FeaturePeerAuth  Feature = "peer-auth"  // the peer's identity was proven when the link was made
	FeatureIPChannel Feature = "ip-channel" // addresses are "ip:port" of a TCP listener: fit for IMPI channels to foreign hosts

	// FeatureIPChannelIfAsked is FeatureIPChannel for listeners of a ListenSpec with IPChannel.
	FeatureIPChannelIfAsked Feature = "ip-channel-if-asked"
)

// Reach is how far a transport's links go.
type Reach string

// The reaches.
const (
	ReachMachine Reach = "machine" // both ends are on one machine, under one kernel
	ReachNetwork Reach = "network"
)

// Setting is one attribute of a transport's config block.
type Setting struct {
	Name     string
	Type     SettingType
	Required bool
	Default  any // string, float64, bool or []string; nil for none
	Doc      string
}

// SettingType is the type of a setting's value.
type SettingType string

// The setting types.
const (
	TypeString  SettingType = "string"
	TypeNumber  SettingType = "number"
	TypeBool    SettingType = "bool"
	TypeStrings SettingType = "list of string"
	// TypePath is a string that names a file. In a job file a relative path starts from the
	// file's folder; the transport gets an absolute one.
	TypePath SettingType = "path"
)
