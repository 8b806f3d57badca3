package conformance

import (
	"regexp"
	"strings"
	"sync"
	"testing"
	"unsafe"

	"github.com/openimpi/impi/plugins/sdk/transports"
	"github.com/openimpi/impi/plugins/sdk/transports/fabric"
	"github.com/openimpi/impi/plugins/sdk/transports/fabric/fabrictest"
	"github.com/openimpi/impi/plugins/sdk/transports/transporttest"
)

// fabricFault begins the names of faults of a plugin whose links are by data plane "rdma".
const fabricFault = "fabric: "

// faultyFabric is that plugin. It has the name of the others.
func faultyFabric(fault string) transports.Transport {
	t, err := fabrictest.New()
	if err != nil {
		panic(err)
	}
	t.Wrap = func(c fabric.Conn) fabric.Conn { return &faultyConn{Conn: c, fault: fault} }
	return namedTCP{t}
}

type namedTCP struct{ *fabrictest.Transport }

func (namedTCP) Info() transports.Info {
	return transports.Info{Name: "tcp", Version: "1.0.0", Vendor: "openimpi"}
}

// endsWhenLost is a plugin that ends its messages in order when its proc is gone, and delivers
// something in place of what it cannot read.
const endsWhenLost = "ends when lost"

// faultyConn is a connection with a fault.
type faultyConn struct {
	fabric.Conn
	fault string
	once  sync.Once
	early []fabric.Completion
	first *fabric.Request
	keys  map[string]bool
}

func (c *faultyConn) Read(r fabric.Request) (bool, error) {
	if c.first == nil {
		first := r
		first.Key = append([]byte(nil), r.Key...)
		c.first, c.keys = &first, map[string]bool{}
	}
	switch c.fault {
	case "reads short":
		r.Into = r.Into[:len(r.Into)-1]
	case "reads elsewhere":
		r.From -= min(r.From, 1)
	case "writes beside":
		*(*byte)(unsafe.Add(unsafe.Pointer(&r.Into[0]), -1)) = 1
	case "completes early", endsWhenLost:
		c.early = append(c.early, fabric.Completion{Op: r.Op})
		return true, nil
	case "knows few registrations": // as many as P-RDMA-03 makes if none is closed
		if c.keys[string(r.Key)] = true; len(c.keys) > 80 {
			r.Key, r.From = c.first.Key, c.first.From
		}
	case "reads the first again":
		if len(r.Into) == len(c.first.Into) {
			r.Key, r.From = c.first.Key, c.first.From
		}
	}
	return c.Conn.Read(r)
}

// Break ends the connection.
func (c *faultyConn) Break() {
	if c.fault != endsWhenLost {
		c.Conn.Break()
		return
	}
	c.once.Do(func() {
		last := make([]byte, 32)
		last[0], last[1] = 5, 1                 // package fabric's header: the last message was sent
		_, _ = c.Conn.Send([][]byte{last, nil}) // fails if the peer has gone
	})
}

// Close closes the connection.
func (c *faultyConn) Close() error {
	if c.fault == endsWhenLost {
		return nil // so that the peer notices nothing
	}
	return c.Conn.Close() //nolint:wrapcheck // of the same package
}

func (c *faultyConn) Completed(done []fabric.Completion) int {
	if n := copy(done, c.early); n > 0 {
		c.early = c.early[n:]
		return n
	}
	n := c.Conn.Completed(done)
	if c.fault == "completes twice" && n > 0 && n < len(done) {
		done[n] = done[0]
		n++
	}
	return n
}

func TestFabricFaultsAreFound(t *testing.T) {
	for _, c := range []struct{ fault, id, words string }{
		{"reads short", "P-RDMA-01", "is 0x"},
		{"reads elsewhere", "P-RDMA-01", "is 0x"},
		{"completes early", "P-RDMA-01", "is 0x"},
		{"completes twice", "P-RDMA-01", "link is broken"},
		{"reads the first again", "P-RDMA-02", ""},
		{"reads the first again", "P-RDMA-03", "from region"},
		{"writes beside", "P-RDMA-01", "beside it was written"},
		{endsWhenLost, "P-RDMA-04", "came from a proc that is gone"},
	} {
		t.Run(c.fault+" "+c.id, func(t *testing.T) {
			r := judged(t, fabricFault+c.fault, c.id, transports.PlaneRDMA)
			if r.Verdict != transporttest.Fail || r.Failed != 1 {
				t.Fatalf("not found: %+v", r.Results)
			}
			if x := r.Results[0]; !strings.HasPrefix(x.Reason, c.id+": ") || !strings.Contains(x.Reason, c.words) || x.Remedy == "" {
				t.Errorf("the reason is %q, the remedy %q", x.Reason, x.Remedy)
			}
		})
	}
	sound := judged(t, fabricFault, "P-RDMA", transports.PlaneRDMA)
	if sound.Verdict != transporttest.Pass || sound.Passed != len(rdmaCases) {
		t.Errorf("the sound plugin: %+v", sound.Results)
	}
}

// Registrations are closed to make room if the plugin may keep few, and not by its defaults.
func TestManyRegionsWithLittleRoom(t *testing.T) {
	for _, c := range []struct {
		fault    string
		settings map[string]any
		want     transporttest.Verdict
	}{
		{"", map[string]any{"registered": 256.0 * 1024}, transporttest.Pass},
		{"knows few registrations", nil, transporttest.Pass},
		{"knows few registrations", map[string]any{"registered": 256.0 * 1024}, transporttest.Fail},
	} {
		s := subject(fabricFault + c.fault)
		s.Settings = c.settings
		o := Options{Quick: true, Run: regexp.MustCompile("P-RDMA-03"), Planes: []transports.DataPlane{transports.PlaneRDMA}}
		if c.want == transporttest.Fail { // a plugin that passes needs more time than that beside other work
			o.patience = hasty
		}
		r, err := Run(t.Context(), s, o)
		if err != nil {
			t.Fatal(err)
		}
		if r.Verdict != c.want {
			t.Errorf("fault %q, settings %v: %+v", c.fault, c.settings, r.Results)
		}
	}
}
