package area

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/openimpi/impi/internal/skips"
	"github.com/openimpi/impi/internal/wan"
)

// patience is how long a test waits for what a busy machine may delay.
const patience = 2 * time.Minute

// two makes an area of two sites, and skips the test without one.
func two(t *testing.T, o Options) *Area {
	t.Helper()
	o.Sites = 2
	return New(t, o)
}

func all(s wan.Shape) func(from, to int) wan.Shape {
	return func(int, int) wan.Shape { return s }
}

var (
	received = regexp.MustCompile(`(\d+) received`)
	twice    = regexp.MustCompile(`\+(\d+) duplicates`)
	times    = regexp.MustCompile(`(?m)^rtt min/avg/max/mdev = ([0-9.]+)/`)
)

// ping sends some packets from the first site to an address. It returns how many answers came, how
// many of them twice, and the shortest time in milliseconds.
func ping(t *testing.T, a *Area, n int, address string) (answers, doubled int, shortest float64) {
	t.Helper()
	out, err := a.Sites[0].Command(t.Context(), "ping", "-n", "-q", "-c", fmt.Sprint(n), "-i", "0.002", "-W", "10", address).CombinedOutput()
	var exit *exec.ExitError
	if err != nil && (!errors.As(err, &exit) || exit.ExitCode() != 1) {
		t.Fatalf("ping: %v: %s", err, out)
	}
	m := received.FindSubmatch(out)
	if m == nil {
		t.Fatalf("ping says %s", out)
	}
	answers, _ = strconv.Atoi(string(m[1]))
	if m := twice.FindSubmatch(out); m != nil {
		doubled, _ = strconv.Atoi(string(m[1]))
	}
	shortest = math.Inf(1)
	if m := times.FindSubmatch(out); m != nil {
		shortest, _ = strconv.ParseFloat(string(m[1]), 64)
	}
	return answers, doubled, shortest
}

func TestRoundTrip(t *testing.T) {
	skips.Program(t, "ping")
	a := two(t, Options{Rails: 2, Shape: func(from, _ int) wan.Shape {
		return wan.Shape{Rate: 1e9, Delay: time.Duration(10+5*from) * time.Millisecond} // 25 ms there and back
	}})
	for rail := range 2 {
		within := false
		for begun := time.Now(); !within && time.Since(begun) < patience; { // the machine may be late
			n, _, ms := ping(t, a, 5, Address(1, rail).String())
			if ms < 25 {
				t.Fatalf("rail %d: an answer came in %v ms, before 25 ms", rail, ms)
			}
			within = n == 5 && ms < 30
		}
		if !within {
			t.Errorf("rail %d: five answers never came, one of them within 30 ms", rail)
		}
		if n := a.Counts(0, 1, rail).Offered; n < 5 {
			t.Errorf("rail %d has passed %d packets", rail, n)
		}
	}
	// What is reshaped holds for the next packet.
	if err := a.Reshape(0, 1, wan.Shape{Delay: 60 * time.Millisecond}); err != nil {
		t.Fatal(err)
	}
	if _, _, ms := ping(t, a, 3, a.Sites[1].Address); ms < 75 {
		t.Errorf("an answer took %v ms, of lines with 60 and 15 ms", ms)
	}
}

func TestLossAndDuplicates(t *testing.T) {
	skips.Program(t, "ping")
	const n = 400
	a := two(t, Options{Seed: 3, Shape: all(wan.Shape{Delay: time.Millisecond, Loss: 0.1, Duplicate: 0.05})})
	answers, doubled, _ := ping(t, a, n, a.Sites[1].Address)
	there, back := a.Counts(0, 1, 0), a.Counts(1, 0, 0)
	for begun := time.Now(); back.Offered < n-there.Lost+there.Duplicated && time.Since(begun) < patience; {
		runtime.Gosched() // ping has not waited for the last
		there, back = a.Counts(0, 1, 0), a.Counts(1, 0, 0)
	}
	if there.Offered != n || back.Offered != n-there.Lost+there.Duplicated {
		t.Errorf("of %d packets: %+v, back %+v", n, there, back)
	}
	total := int(back.Offered - back.Lost + back.Duplicated)
	if got := answers + doubled; got > total || got < total*3/4 {
		t.Errorf("%d answers and %d more of the same, where %d were passed", answers, doubled, total)
	}
	if there.Lost < n/20 || there.Lost > n/5 || back.Lost < n/20 || back.Lost > n/5 {
		t.Errorf("lost %d there and %d back of %d, want a tenth", there.Lost, back.Lost, n)
	}
}

// iperf returns how many bits per second of payload TCP carries from the first site to the second.
func iperf(t *testing.T, a *Area, args ...string) float64 {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	server := a.Sites[1].Command(ctx, "iperf3", "-s", "-1", "--forceflush")
	out, err := server.StdoutPipe()
	if err == nil {
		err = server.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	defer func() { cancel(); _ = server.Wait() }()
	said, one := "", make([]byte, 1024)
	for !strings.Contains(said, "listening") {
		n, err := out.Read(one)
		if err != nil {
			t.Fatalf("iperf3 -s: %v: %s", err, said)
		}
		said += string(one[:n])
	}
	text, err := a.Sites[0].Command(ctx, "iperf3", append([]string{"-J", "-c", a.Sites[1].Address}, args...)...).Output()
	var result struct {
		Error string
		End   struct {
			Received struct {
				Rate float64 `json:"bits_per_second"`
			} `json:"sum_received"`
		}
	}
	if wrong := json.Unmarshal(text, &result); wrong != nil || result.Error != "" || err != nil {
		t.Fatalf("iperf3: %v: %s", err, text)
	}
	return result.End.Received.Rate
}

func TestRateOfTCP(t *testing.T) {
	skips.Program(t, "iperf3")
	const rate = 20e6
	for _, delay := range []time.Duration{500 * time.Microsecond, 15 * time.Millisecond} {
		shape := wan.Shape{Rate: rate, Delay: delay, Queue: 1 << 18}
		a := two(t, Options{Shape: all(shape)})
		// 1500 bytes have 1448 of TCP's, with its timestamps.
		most, best := rate*1448./1500, 0.
		for begun := time.Now(); best < 0.5*most && time.Since(begun) < patience; {
			got := iperf(t, a, "-n", "3M")
			if best = max(best, got); got > 1.1*most {
				t.Errorf("%v: TCP carries %.1f Mb/s, of %.1f", 2*delay, got/1e6, most/1e6)
				break
			}
		}
		if best < 0.5*most {
			t.Errorf("%v: TCP carries %.1f Mb/s, of %.1f", 2*delay, best/1e6, most/1e6)
		}
		t.Logf("%v: %.1f Mb/s of %.1f", 2*delay, best/1e6, most/1e6)
	}
}

// TestMain is also the program that streams, in the sites.
func TestMain(m *testing.M) {
	if address := os.Getenv("WAN_STREAM"); address != "" {
		if err := stream(address, os.Getenv("WAN_ROLE")); err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

const streamed = 8 << 20

// stream sends or receives numbers that do not repeat soon, so that no part can stand for another.
func stream(address, role string) error {
	numbers := rand.NewChaCha8([32]byte{1})
	if role == "client" {
		c, err := net.Dial("tcp", address)
		if err != nil {
			return err
		}
		if _, err := io.CopyN(c, numbers, streamed); err != nil {
			return err
		}
		return c.Close()
	}
	l, err := net.Listen("tcp", address)
	if err != nil {
		return err
	}
	fmt.Println("ready")
	c, err := l.Accept()
	if err != nil {
		return err
	}
	got, want := make([]byte, 1<<16), make([]byte, 1<<16)
	for n := 0; ; {
		k, err := c.Read(got)
		_, _ = numbers.Read(want[:k])
		if !bytes.Equal(got[:k], want[:k]) {
			return fmt.Errorf("what came after %d bytes is not what was sent", n)
		}
		if n += k; errors.Is(err, io.EOF) && n == streamed {
			return nil
		}
		if err != nil {
			return fmt.Errorf("after %d bytes: %w", n, err)
		}
	}
}

// Of what the kernel has not cut, single packets are lost, doubled and late, and the stream is
// whole.
func TestStreamOverBadLineIsWhole(t *testing.T) {
	shape := wan.Shape{Rate: 1e9, Delay: time.Millisecond, Queue: 1 << 18, Loss: 0.005, Duplicate: 0.01, Reorder: 0.01, ReorderDelay: time.Millisecond}
	a := two(t, Options{Seed: 1, Shape: all(shape)})
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	program := func(site int, role string) *exec.Cmd {
		cmd := a.Sites[site].Command(ctx, self)
		cmd.Env = append(os.Environ(), "WAN_STREAM="+a.Sites[1].Address+":5000", "WAN_ROLE="+role)
		return cmd
	}
	server := program(1, "server")
	out, err := server.StdoutPipe()
	if err == nil {
		err = server.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	said := bufio.NewReader(out)
	if line, err := said.ReadString('\n'); err != nil {
		t.Fatalf("%v: %s", err, line)
	}
	if text, err := program(0, "client").CombinedOutput(); err != nil {
		t.Errorf("%v: %s", err, text)
	}
	if text, err := io.ReadAll(said); err != nil || len(text) > 0 {
		t.Errorf("%v: %s", err, text)
	}
	if err := server.Wait(); err != nil {
		t.Error(err)
	}
	if c := a.Counts(0, 1, 0); c.Lost == 0 || c.Duplicated == 0 || c.Reordered == 0 || c.Offered < streamed/1448 {
		t.Errorf("the line has done nothing: %+v", c)
	}
}
