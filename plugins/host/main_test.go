package host

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log"
	"net"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/go-plugin"
	"go.uber.org/goleak"
	"golang.org/x/sys/unix"
	"google.golang.org/grpc"

	"github.com/openimpi/impi/plugins/sdk"
	"github.com/openimpi/impi/plugins/sdk/link"
	"github.com/openimpi/impi/plugins/sdk/proto"
	"github.com/openimpi/impi/plugins/sdk/proto/handover"
	"github.com/openimpi/impi/plugins/sdk/transports"
	"github.com/openimpi/impi/plugins/sdk/transports/socket"
	"github.com/openimpi/impi/transports/quic"
	"github.com/openimpi/impi/transports/tcp"
	unixlink "github.com/openimpi/impi/transports/unix"
)

// envMode makes this test binary, run as a plugin, misbehave in some way.
const envMode = "IMPI_TEST_MODE"

// envNode makes this test binary run one of the functions in nodes.
const envNode = "IMPI_TEST_NODE"

func TestMain(m *testing.M) {
	if sdk.IsPlugin() {
		servePlugin(os.Getenv(envMode))
		return
	}
	if node := nodes[os.Getenv(envNode)]; node != nil {
		node()
		return
	}
	goleak.VerifyTestMain(m)
}

// servePlugin is the main of all plugins of these tests.
func servePlugin(mode string) {
	odd := &oddity{Transport: tcp.New(), mode: mode}
	switch sdk.Builtin() {
	case "unix":
		odd.Transport = unixlink.New()
	case "quic":
		odd.Transport = quic.New()
	}
	switch mode {
	case "exit":
		fmt.Fprintln(os.Stderr, "the licence has expired")
		os.Exit(3)
	case "print":
		fmt.Println("hello from main")
		unix.Write(1, []byte("hello from C\n"))
	case "otherversion":
		serveOther(99, proto.CookieValue)
		return
	case "newerversion": // it cannot work with an older node
		serveOther(proto.Version+1, proto.CookieValue)
		return
	case "othercookie":
		serveOther(99, "something else")
		return
	case "nomtls":
		os.Unsetenv("PLUGIN_CLIENT_CERT")
	case "rogue":
		fd, err := unix.FcntlInt(proto.DescriptorFD, unix.F_DUPFD_CLOEXEC, 10)
		if err != nil {
			log.Fatal(err)
		}
		if odd.fds, err = handover.Open(fd); err != nil {
			log.Fatal(err)
		}
	case "mute": // shakes hands, and then nobody listens
		path := filepath.Join(os.Getenv("PLUGIN_UNIX_SOCKET_DIR"), "mute")
		if _, err := net.Listen("unix", path); err != nil {
			log.Fatal(err)
		}
		out := os.NewFile(uintptr(realStdout()), "stdout")
		fmt.Fprintf(out, "1|%d|unix|%s|grpc|\n", proto.Version, path)
		select {}
	case "stubborn":
		signal.Ignore(syscall.SIGTERM)
	}
	sdk.Serve(sdk.Options{Transport: odd, Protocols: protocolsOf(mode)})
}

// protocolsOf takes a mode such as "protocols 2 3" apart. Nil: what the sdk speaks.
func protocolsOf(mode string) (list []int) {
	words, ok := strings.CutPrefix(mode, "protocols ")
	if !ok {
		return nil
	}
	for _, w := range strings.Fields(words) {
		v, err := strconv.Atoi(w)
		if err != nil {
			log.Fatal(err)
		}
		list = append(list, v)
	}
	return list
}

// serveOther is a plugin that is not built with our SDK.
func serveOther(version int, cookie string) {
	os.Stdout = os.NewFile(uintptr(realStdout()), "stdout")
	plugin.Serve(&plugin.ServeConfig{
		HandshakeConfig:  plugin.HandshakeConfig{MagicCookieKey: proto.CookieKey, MagicCookieValue: cookie},
		VersionedPlugins: map[int]plugin.PluginSet{version: {proto.ServiceName: otherPlugin{version: version}}},
		GRPCServer:       plugin.DefaultGRPCServer,
	})
}

// realStdout finds the descriptor that the sdk has put the handshake's output
// aside under: the lowest one above those that the node has given, as nothing else is open yet.
func realStdout() int {
	first := proto.DescriptorFD + 1
	if os.Getenv(proto.EnvControl) != "" {
		first = proto.ControlFD + 1
	}
	for fd := first; fd < 64; fd++ {
		if name, err := os.Readlink(fmt.Sprintf("/proc/self/fd/%d", fd)); err == nil && strings.HasPrefix(name, "pipe:") {
			return fd
		}
	}
	return 1
}

// otherPlugin is a plugin that states a protocol version and implements little else.
type otherPlugin struct {
	plugin.NetRPCUnsupportedPlugin
	proto.UnimplementedTransportServer
	version int
}

func (o otherPlugin) GRPCServer(_ *plugin.GRPCBroker, to *grpc.Server) error {
	proto.RegisterTransportServer(to, o)
	return nil
}

func (o otherPlugin) Info(context.Context, *proto.InfoRequest) (*proto.InfoResponse, error) {
	return &proto.InfoResponse{Name: sdk.Builtin(), Protocols: []uint32{uint32(o.version)}}, nil
}

func (otherPlugin) GRPCClient(context.Context, *plugin.GRPCBroker, *grpc.ClientConn) (any, error) {
	return nil, nil
}

// oddity is a transport that does something else when asked to.
type oddity struct {
	transports.Transport
	mode string
	fds  *handover.Conn
	ails atomic.Bool
}

// Health is what a Dial to "ail" or "heal" has made it.
func (o *oddity) Health() error {
	if o.mode == "unwell" { // says who it is, and nothing more
		select {}
	}
	if o.ails.Load() {
		return errors.New("the buffers are small")
	}
	return nil
}

func (o *oddity) Schema() []transports.Setting {
	s := o.Transport.Schema()
	if o.mode == "settings" {
		return []transports.Setting{
			{Name: "path", Type: transports.TypeString, Required: true, Doc: "where it is"},
			{Name: "speed", Type: transports.TypeNumber, Default: 4.0},
			{Name: "names", Type: transports.TypeStrings, Default: []string{"a"}},
			{Name: "fast", Type: transports.TypeBool},
		}
	}
	if o.mode == "env" {
		s = append(s, transports.Setting{Name: "env", Type: transports.TypeString, Doc: strings.Join(os.Environ(), "\n")})
	}
	return s
}

func (o *oddity) Configure(settings map[string]any) error {
	switch o.mode {
	case "settings":
		if settings["path"] == "bad" {
			return &transports.SettingError{Name: "path", Problem: "is bad", Remedy: "make it good"}
		}
		if got, want := fmt.Sprint(settings), "map[names:[a] path:x speed:4]"; len(settings) == 3 && got != want {
			return fmt.Errorf("got %s, want %s", got, want)
		}
		return nil
	case "print":
		fmt.Println("hello from Configure")
	case "levels":
		l := sdk.Logger()
		l.Trace("t-line")
		l.Debug("d-line")
		l.Info("i-line", "key", "value")
		l.Warn("w-line")
		l.Error("e-line")
		log.Printf("[WARN] std-line")
		fmt.Fprintln(os.Stderr, "err-line")
	case "all levels":
		sayAtAllLevels()
	}
	return o.Transport.Configure(settings)
}

// sayAtAllLevels writes a line at each level in each form that a node understands; only in
// the first form does the plugin itself leave out what the node does not want.
func sayAtAllLevels() {
	for _, level := range []hclog.Level{hclog.Trace, hclog.Debug, hclog.Info, hclog.Warn, hclog.Error} {
		name, upper := level.String(), strings.ToUpper(level.String())
		sdk.Logger().Log(level, "sdk "+name)
		log.Printf("[%s] std %s", upper, name)
		for _, format := range []string{
			"[%[2]s] text %[1]s", `{"@level":"%[1]s","@message":"hclog %[1]s"}`,
			`{"time":"2026-01-01T00:00:00Z","level":"%[2]s","msg":"slog %[1]s"}`, `{"level":"%[1]s","message":"zap %[1]s","ts":1}`,
		} {
			fmt.Fprintf(os.Stderr, format+"\n", name, upper)
		}
	}
	fmt.Fprintln(os.Stderr, "plain debug")
	// The logs go to the process's own standard error, the rest by the control connection.
	sdk.Logger().Error("the end of the logs")
	fmt.Fprintln(os.Stderr, "[ERROR] the end")
}

func (o *oddity) Dial(ctx context.Context, to transports.DialSpec) (link.Link, error) {
	switch to.Address {
	case "ail", "heal":
		o.ails.Store(to.Address == "ail")
		return nil, errors.New("felt")
	case "say":
		sdk.Logger().Debug("a detail")
		sdk.Logger().Info("what was dialled", "address", to.Address)
		return nil, errors.New("said")
	case "crash":
		panic("dialled into the abyss")
	case "hang":
		<-ctx.Done()
		return nil, ctx.Err()
	case "exec", "daemon": // a child that inherits what it can; a daemon leaves our group
		cmd := exec.Command("/bin/sleep", "1000")
		cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: to.Address == "daemon"}
		cmd.Stderr = os.NewFile(2, "stderr")
		err := cmd.Start()
		return nil, fmt.Errorf("child %d %v", cmd.Process.Pid, err)
	}
	l, err := o.Transport.Dial(ctx, to)
	if err != nil {
		return nil, err
	}
	switch o.mode {
	case "userspace":
		return struct{ link.Link }{l}, nil
	case "preread":
		return &chatty{Link: l.(*socket.Link)}, nil
	case "blocking":
		unix.SetNonblock(l.Handle(), false)
		return &chatty{Link: l.(*socket.Link), blocking: true}, nil
	case "rogue":
		return &rogue{Link: l.(*socket.Link), fds: o.fds}, nil
	}
	return l, nil
}

// chatty hands over bytes that it claims to have read, or a descriptor that a
// careless program made blocking.
type chatty struct {
	*socket.Link
	blocking bool
}

func (c *chatty) Detach() (int, []byte, error) {
	fd, preread, err := c.Link.Detach()
	if c.blocking {
		return fd, preread, cmp.Or(err, unix.SetNonblock(fd, false))
	}
	return fd, append([]byte("already read:"), preread...), err
}

// rogue sends descriptors that nobody asked for before the right one.
type rogue struct {
	*socket.Link
	fds *handover.Conn
}

func (r *rogue) Detach() (int, []byte, error) {
	for id := uint64(0); id < 64; id++ {
		a, _ := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
		unix.Close(a[1])
		if err := r.fds.Send(&handover.Record{Kind: handover.KindLink, Link: 1000 + id, Mode: handover.ModeFD, FDs: a[:1]}, farOff()); err != nil {
			return -1, nil, err
		}
	}
	return r.Link.Detach()
}
