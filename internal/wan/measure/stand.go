package measure

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/openimpi/impi/internal/wan"
	"github.com/openimpi/impi/internal/wan/area"
)

// stand stands in for the test of packages that make namespaces for tests (netns.TB).
type stand struct{ cleanup []func() }

// cannot is the value of a panic: why an area cannot be made.
type cannot string

// Helper implements netns.TB.
func (b *stand) Helper() {}

// Cleanup registers f to be called when the area is removed.
func (b *stand) Cleanup(f func()) { b.cleanup = append(b.cleanup, f) }

// Skip ends make.
func (b *stand) Skip(why ...any) { panic(cannot(fmt.Sprint(why...))) }

// Fatalf ends make.
func (b *stand) Fatalf(format string, a ...any) { panic(cannot(fmt.Sprintf(format, a...))) }

func (b *stand) close() {
	for _, f := range slices.Backward(b.cleanup) {
		func() {
			defer func() {
				if why, ok := recover().(cannot); ok {
					fmt.Fprintln(os.Stderr, "wan:", string(why))
				}
			}()
			f()
		}()
	}
}

func (b *stand) make(o *Options, row Row, sites int) (dir string, a *area.Area, err error) {
	defer func() {
		if why, ok := recover().(cannot); ok {
			err = fmt.Errorf("%w: %s", errNoArea, strings.TrimSpace(string(why)))
		}
	}()
	dir, err = os.MkdirTemp("", "impi-wan-")
	if err != nil {
		return "", nil, err
	}
	b.Cleanup(func() { _ = os.RemoveAll(dir) })
	a = area.New(b, area.Options{Sites: sites, Seed: o.Seed, Shape: func(int, int) wan.Shape { return o.Shape(row) }})
	if o.Buffers > 0 {
		for _, s := range a.Sites {
			for name, usual := range map[string]string{"rmem": "4096 131072", "wmem": "4096 16384"} {
				set := fmt.Sprintf("net.ipv4.tcp_%s=%s %d", name, usual, o.Buffers)
				if out, err := s.Command(context.Background(), "sysctl", "-q", "-w", set).CombinedOutput(); err != nil {
					return "", nil, fmt.Errorf("sysctl %s: %w: %s", set, err, out)
				}
			}
		}
	}
	for _, set := range o.Sysctl {
		for _, s := range a.Sites {
			if out, err := s.Command(context.Background(), "sysctl", "-q", "-w", set).CombinedOutput(); err != nil {
				return "", nil, fmt.Errorf("sysctl %s: %w: %s", set, err, out)
			}
		}
	}
	return dir, a, nil
}
