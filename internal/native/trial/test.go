package trial

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"text/tabwriter"

	"github.com/openimpi/impi/config"
	"github.com/openimpi/impi/internal/cmdline"
	"github.com/openimpi/impi/internal/native"
)

// report is what the test has found, as JSON. Adding fields does not change its schema.
type report struct {
	Schema       int             `json:"schema"`
	Vendor       string          `json:"vendor"`
	native.Found                 // measured by the shim
	Alone        *native.Figures `json:"alone,omitempty"`   // by a program that is linked to that MPI itself
	Problem      string          `json:"problem,omitempty"` // why Alone is missing
}

const schema = 1

// test has the launcher start processes of this program, which try the shim, and then a program
// that is linked to that MPI itself.
func (c *command) test(ctx context.Context) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	shim, info, err := native.Build(ctx, c.cc, c.says)
	if err != nil {
		return err
	}
	r := report{Schema: schema, Vendor: info.Vendor}
	if r.Found, err = c.run(ctx, self, "native", rank, shim); err != nil {
		return err
	}
	var alone native.Found
	program, err := native.BuildMeasurement(ctx, c.cc, c.says)
	if err == nil {
		alone, err = c.run(ctx, program)
	}
	if err != nil {
		r.Problem = err.Error() // it is known that the shim works
	} else {
		r.Fabric, r.Alone = alone.Fabric, &alone.Figures
	}
	if c.json {
		return cmdline.WriteJSON(c.out, r)
	}
	return c.show(&r)
}

func (c *command) show(r *report) error {
	threads, fabric := "any thread may call it", "not told"
	if r.OneThread {
		threads = "only one thread may call it, so that each call takes two switches of threads: see docs/native.md"
	}
	if r.Fabric != "" {
		fabric = r.Fabric
	}
	fmt.Fprintf(c.out, "%s\n%d processes; %s\nfabric: %s\n", r.Library, r.Processes, threads, fabric)
	t := tabwriter.NewWriter(c.out, 0, 8, 2, ' ', tabwriter.AlignRight)
	trip, stream := []any{r.HalfRoundTrip}, []any{r.Stream / 1e9}
	heading, trips, streams := "by impi\t", "%v\t", "%.2f GB/s\t"
	if a := r.Alone; a != nil {
		heading, trips, streams = heading+"alone\tratio\t", trips+"%v\t%.2f\t", streams+"%.2f GB/s\t%.2f\t"
		trip = append(trip, a.HalfRoundTrip, float64(r.HalfRoundTrip)/float64(a.HalfRoundTrip))
		stream = append(stream, a.Stream/1e9, r.Stream/a.Stream)
	}
	fmt.Fprintf(t, "\t%s\n8 bytes, half a round trip\t"+trips+"\n1 MiB messages, one way\t"+streams+"\n", append(append([]any{heading}, trip...), stream...)...)
	err := t.Flush()
	if r.Problem != "" {
		c.says("a program that is linked to that MPI itself was not measured: " + r.Problem)
	}
	return err
}

// run has the launcher start a command, and gives what rank 0 of it says.
func (c *command) run(ctx context.Context, command ...string) (f native.Found, err error) {
	words := strings.Fields(c.launch)
	if len(words) == 0 {
		words = []string{"mpirun", "-n", "2"}
	}
	n := config.Native{MPICC: c.cc}
	words[0] = n.Beside(".", words[0])
	cmd := exec.CommandContext(ctx, words[0], append(words[1:], command...)...)
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, c.complaints
	err = cmd.Run()
	said := false
	for line := range strings.Lines(out.String()) {
		_, text, ok := strings.Cut(line, native.FoundPrefix)
		if ok && json.NewDecoder(strings.NewReader(text)).Decode(&f) == nil {
			said = true
			continue
		}
		fmt.Fprint(c.complaints, line) // the line is the launcher's
	}
	name := filepath.Base(words[0])
	var ended *exec.ExitError
	switch {
	case errors.As(err, &ended):
		return f, fmt.Errorf("%s: %w", name, err)
	case err != nil:
		return f, fmt.Errorf("the launcher of that MPI cannot be started: %w; load its module, or give it by -launch", err)
	case !said || f.HalfRoundTrip <= 0 || f.Stream <= 0:
		return f, fmt.Errorf("%s has ended well, and nothing was heard of the processes that it was to start: does it start them, and pass on what they write?", name)
	}
	return f, nil
}
