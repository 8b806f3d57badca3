package mpi

import (
	"errors"
	"slices"
	"testing"

	"github.com/openimpi/impi/core/datatype"
	"github.com/openimpi/impi/core/mpierr"
)

// What one rank packs the other unpacks, in pieces, strided at both ends, whatever
// representation lies between the two.
func TestPack(t *testing.T) {
	for name, data := range map[string]func(from, to int) string{
		"one machine": nil,
		"external32":  func(int, int) string { return "external32" },
		"two others": func(from, to int) string {
			return [][]string{{"native", "native-be", "external32"}, {"native-be", "native", "native-be"}, {"external32", "native-be", "native"}}[from][to]
		},
	} {
		t.Run(name, func(t *testing.T) {
			layout{procs: 3, data: data}.run(t, func(t *testing.T, c *Comm) error {
				column, err := TypeVector(3, 1, 4, TypeOf[float64]())
				if err = first(err, column.Commit()); err != nil {
					return err
				}
				a, errA := c.PackSize(1, column)
				b, errB := c.PackSize(2, TypeOf[int32]())
				if err := first(errA, errB); err != nil {
					return err
				}
				switch c.Rank() {
				case 0:
					out := make([]byte, a+b)
					m := []float64{1, 0, 0, 0, 2, 0, 0, 0, 3}
					at, err := c.Pack(Typed(m, 1, column), out, 0)
					at, err2 := c.Pack(Of([]int32{-7, 8}), out, at)
					return first(err, err2, expect("position", at, a+b), c.Send(Typed(out, len(out), TypePacked()), 1, 3))
				case 1:
					in := make([]byte, a+b)
					st, err := c.Recv(Typed(in, len(in), TypePacked()), 0, 3)
					m, n := make([]float64, 9), make([]int32, 2)
					at, err2 := c.Unpack(in, 0, Typed(m, 1, column))
					at, err3 := c.Unpack(in, at, Of(n))
					if !slices.Equal(m, []float64{1, 0, 0, 0, 2, 0, 0, 0, 3}) || !slices.Equal(n, []int32{-7, 8}) {
						t.Errorf("%v %v", m, n)
					}
					return first(err, err2, err3, expect("position", at, a+b), expect("bytes", st.Bytes(), a+b))
				}
				return nil
			})
		})
	}
}

func TestPackFaults(t *testing.T) {
	layout{procs: 1}.run(t, func(t *testing.T, c *Comm) error {
		out := make([]byte, 15)
		for name, f := range map[string]struct {
			call func() (int64, error)
			want mpierr.Class
		}{
			"no room":        {func() (int64, error) { return c.Pack(Of([]float64{1, 2}), out, 0) }, mpierr.Truncate},
			"before":         {func() (int64, error) { return c.Pack(Of([]int8{1}), out, -1) }, mpierr.Arg},
			"nil type":       {func() (int64, error) { return c.Pack(At(nil, 1, nil), out, 0) }, mpierr.Type},
			"negative count": {func() (int64, error) { return c.PackSize(-1, TypeOf[int8]()) }, mpierr.Count},
			"datarep":        {func() (int64, error) { return PackExternal("native", Of([]int8{1}), out, 0) }, mpierr.UnsupportedDatarep},
		} {
			if _, err := f.call(); err == nil || ErrorClass(err) != f.want {
				t.Errorf("%s: %v of class %v, want %v", name, err, ErrorClass(err), f.want)
			}
		}
		return nil
	})
}

func TestPackExternal(t *testing.T) {
	n, err := PackExternalSize("external32", 2, TypeOf[int32]())
	out := make([]byte, n)
	at, err2 := PackExternal("external32", Of([]int32{1, -2}), out, 0)
	if err := errors.Join(err, err2); err != nil || at != 8 || !slices.Equal(out, []byte{0, 0, 0, 1, 255, 255, 255, 254}) {
		t.Fatal(out, at, err)
	}
	in := make([]int32, 2)
	if _, err := UnpackExternal("external32", out, 0, Of(in)); err != nil || !slices.Equal(in, []int32{1, -2}) {
		t.Error(in, err)
	}
}

func TestTypeConstructorsSayWhoFailed(t *testing.T) {
	if _, err := TypeContiguous(-1, TypeOf[int8]()); !errors.Is(err, datatype.ErrCount) || ErrorClass(err) != mpierr.Count {
		t.Error(err)
	}
	if _, err := TypeVector(1, 1, 1, nil); ErrorClass(err) != mpierr.Type {
		t.Error(err)
	}
}
