package conformance

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/openimpi/impi/plugins/sdk/link"
	"github.com/openimpi/impi/plugins/sdk/transports"
	"github.com/openimpi/impi/transports/tcp"
)

// Speed is the speed of one data plane of the plugin on this machine, and of our tcp in the same
// run, the two measured by turns. Absolute numbers of a shared machine mean little; ratios mean
// something.
type Speed struct {
	Plane transports.DataPlane `json:"plane"`

	// Half round trip of 64 bytes, in microseconds, median.
	HalfRoundTrip    float64 `json:"half_round_trip_us"`
	TCPHalfRoundTrip float64 `json:"tcp_half_round_trip_us"`

	// Bytes per second of a stream of 64 KiB messages, one way.
	Stream    float64 `json:"stream_bytes_per_second"`
	TCPStream float64 `json:"tcp_stream_bytes_per_second"`
}

// Latency returns the plugin's half round trip in units of our tcp's.
func (s Speed) Latency() float64 { return s.HalfRoundTrip / s.TCPHalfRoundTrip }

// Throughput returns the plugin's stream in units of our tcp's.
func (s Speed) Throughput() float64 { return s.Stream / s.TCPStream }

type measurement struct {
	rounds int
	each   time.Duration
}

var speedCases = []Case{
	{ID: "P-SPEED-01", Name: "speed", Kind: Correct, run: speed,
		Rule: "round trips and a stream, as fast as the link can, go on to their end: no transfer hangs"},
}

// speed measures the data plane, for the report. That it is slow violates nothing.
func speed(e *env) {
	m := measurement{rounds: 3, each: 200 * time.Millisecond}
	if e.quick {
		m = measurement{rounds: 3, each: 50 * time.Millisecond}
	}
	*e.speed = e.measure(m)
}

// transfer bounds the time of one measurement, and names it if it hangs.
func (e *env) transfer(whose, what string, run func(ctx context.Context) (float64, error)) float64 {
	ctx, cancel := context.WithTimeout(context.Background(), e.wait)
	defer cancel()
	x, err := run(ctx)
	if errors.Is(err, context.DeadlineExceeded) {
		e.Fatalf("%s over %s have not ended within %v: a transfer hangs", what, whose, e.wait)
	}
	if err != nil {
		e.Fatalf("%s over %s: %v", what, whose, err)
	}
	return x
}

func (e *env) measure(m measurement) Speed {
	ours := tcp.New()
	e.must(ours.Configure(transports.Defaults(ours.Schema())))
	subjects := []transports.Transport{e.host().Transport(), ours}
	var half, stream [2][]float64
	var ends [2][2]link.Link
	ctx := e.context()
	for i, t := range subjects {
		ln, err := t.Listen(ctx, e.at())
		e.must(err)
		e.Cleanup(func() { ln.Close() })
		ends[i][0], err = t.Dial(ctx, transports.DialSpec{Address: ln.Address()})
		e.must(err)
		ends[i][1], err = ln.Accept(ctx)
		e.must(err)
		e.Cleanup(func() { ends[i][0].Close(); ends[i][1].Close() })
	}
	for range m.rounds {
		for i := range subjects {
			whose := []string{"the plugin's link", "our tcp"}[i]
			h := e.transfer(whose, "round trips of 64 bytes", func(ctx context.Context) (float64, error) {
				return pingPong(ctx, ends[i][0], ends[i][1], m.each)
			})
			s := e.transfer(whose, "messages of 64 KiB", func(ctx context.Context) (float64, error) {
				return pour(ctx, ends[i][0], ends[i][1], m.each)
			})
			half[i], stream[i] = append(half[i], h), append(stream[i], s)
		}
	}
	return Speed{Plane: e.plane, HalfRoundTrip: median(half[0]), TCPHalfRoundTrip: median(half[1]),
		Stream: median(stream[0]), TCPStream: median(stream[1])}
}

func median(x []float64) float64 {
	slices.Sort(x)
	return x[len(x)/2]
}

// pingPong returns the half round trip of 64 bytes in microseconds.
func pingPong(ctx context.Context, a, b link.Link, d time.Duration) (float64, error) {
	echo := make(chan error, 1)
	go func() {
		buf := make([]byte, 64)
		for {
			if err := receive(ctx, b, buf); err != nil || buf[0] == 1 {
				echo <- err
				return
			}
			if err := send(ctx, b, buf); err != nil {
				echo <- err
				return
			}
		}
	}()
	buf := make([]byte, 64)
	trips := 0
	begin := time.Now()
	for ; time.Since(begin) < d; trips++ {
		if err := send(ctx, a, buf); err != nil {
			return 0, err
		}
		if err := receive(ctx, a, buf); err != nil {
			return 0, err
		}
	}
	took := time.Since(begin)
	buf[0] = 1
	if err := send(ctx, a, buf); err != nil {
		return 0, err
	}
	return float64(took.Nanoseconds()) / 2000 / float64(max(1, trips)), <-echo
}

// pour returns the bytes per second from a to b, timed until the receiver's count has
// come back.
func pour(ctx context.Context, a, b link.Link, d time.Duration) (float64, error) {
	const size = 64 << 10
	counted := make(chan error, 1)
	go func() {
		buf := make([]byte, size)
		for {
			if err := receive(ctx, b, buf); err != nil {
				counted <- err
				return
			}
			if buf[0] == 1 {
				counted <- send(ctx, b, make([]byte, 8))
				return
			}
		}
	}()
	buf := make([]byte, size)
	begin := time.Now()
	n := 1
	for ; time.Since(begin) < d; n++ {
		if err := send(ctx, a, buf); err != nil {
			return 0, err
		}
	}
	buf[0] = 1
	if err := send(ctx, a, buf); err != nil {
		return 0, err
	}
	answer := make([]byte, 8)
	if err := receive(ctx, a, answer); err != nil {
		return 0, err
	}
	return float64(n*size) / time.Since(begin).Seconds(), <-counted
}
