package file

import (
	"fmt"
	"math"
	"sync"
	"unsafe"

	"github.com/openimpi/impi/core/datatype"
	"github.com/openimpi/impi/core/mpierr"
	"github.com/openimpi/impi/internal/engine/proc"
)

// maxDatarep is the most bytes of a representation's name (MPI_MAX_DATAREP_STRING - 1).
const maxDatarep = 127

// Datarep is a representation of data in files, defined by functions of the program (MPI-4.1,
// 14.5.3).
type Datarep struct {
	Name string

	// Extent returns the number of bytes of an element of a predefined datatype in a file.
	Extent func(t *proc.Datatype) (int64, error)

	// Read and Write convert elements between memory and the form in a file; nil means that data
	// are in a file as in memory, and Extent must agree. They may call no function of a file.
	Read, Write func(c Conversion) error
}

// Conversion is a request to a Datarep to convert Count elements. In File they follow each other,
// each with its extent in the file. In Memory they are laid out as the elements of items of
// Datatype, one item after the other, beginning with the element at index Position.
type Conversion struct {
	Memory   unsafe.Pointer
	Datatype *proc.Datatype
	File     []byte
	Count    int
	Position int64
}

// registered are the representations of this process by their names, until it ends.
var registered struct {
	mu     sync.Mutex
	byName map[string]*Datarep
}

// Register registers a representation in this process, so that views may name it (MPI-4.1, 14.5.3).
// Each name can be registered once.
func Register(d Datarep) error {
	switch d.Name {
	case "native", "internal", external32:
		return fault(mpierr.DupDatarep, "data representation %q: the name is MPI's", d.Name)
	}
	switch {
	case d.Name == "" || len(d.Name) > maxDatarep:
		return fmt.Errorf("%w: a data representation with a name of %d bytes, it has 1 to %d", proc.ErrArg, len(d.Name), maxDatarep)
	case d.Extent == nil:
		return fmt.Errorf("%w: data representation %q has no function for extents", proc.ErrArg, d.Name)
	}
	registered.mu.Lock()
	defer registered.mu.Unlock()
	if registered.byName[d.Name] != nil {
		return fault(mpierr.DupDatarep, "data representation %q is registered already", d.Name)
	}
	if registered.byName == nil {
		registered.byName = make(map[string]*Datarep)
	}
	registered.byName[d.Name] = &d
	return nil
}

func datarepOf(name string) *Datarep {
	registered.mu.Lock()
	defer registered.mu.Unlock()
	return registered.byName[name]
}

// measure is the elements of items of a datatype, the bytes that they take in a file, and those in
// memory, without gaps.
type measure struct{ elements, bytes, memory int64 }

func (m *measure) add(n int64, x measure) {
	m.elements += n * x.elements
	m.bytes += n * x.bytes
	m.memory += n * x.memory
}

func (d *Datarep) extent(t *proc.Datatype) (measure, error) {
	n, err := d.Extent(t)
	switch {
	case err != nil:
		return measure{}, fault(mpierr.Conversion, "data representation %q: the extent of %v: %v", d.Name, t, err)
	case n < 0 || n > math.MaxInt32:
		return measure{}, fault(mpierr.Conversion, "data representation %q: the extent of %v is %d", d.Name, t, n)
	}
	return measure{1, n, t.Packed(datatype.Native)}, nil
}

func (d *Datarep) measure(t *proc.Datatype) (all measure, err error) {
	err = d.blocks(t, func(x measure, n int64, _ *proc.Datatype) (bool, error) {
		all.add(n, x)
		return true, nil
	})
	return all, err
}

// within returns the elements of items of t, from the first one on, that fit into so many bytes of
// a file.
func (d *Datarep) within(t *proc.Datatype, room int64) (fit measure, err error) {
	x, err := d.measure(t)
	if err != nil || x.bytes == 0 {
		return fit, err
	}
	fit.add(room/x.bytes, x)
	room %= x.bytes
	if room == 0 || t.Named() {
		return fit, nil
	}
	err = d.blocks(t, func(x measure, n int64, part *proc.Datatype) (bool, error) {
		whole := n
		if x.bytes > 0 {
			whole = min(n, room/x.bytes)
		}
		fit.add(whole, x)
		if room -= whole * x.bytes; whole == n {
			return true, nil
		}
		more, err := d.within(part, room)
		fit.add(1, more)
		return false, err
	})
	return fit, err
}

// blocks calls f for the parts of an item of t, in their order: n items of a datatype, which is nil
// for t itself if it is predefined, and what one of them measures. f returns false to end it.
func (d *Datarep) blocks(t *proc.Datatype, f func(x measure, n int64, part *proc.Datatype) (bool, error)) error {
	if t.Named() {
		x, err := d.extent(t)
		if err == nil {
			_, err = f(x, 1, nil)
		}
		return err
	}
	c, err := t.Contents()
	if err != nil {
		return err
	}
	defer func() {
		for _, part := range c.Types {
			if !part.Named() {
				_ = part.Free()
			}
		}
	}()
	lengths := c.Ints
	if len(c.Counts) > 0 {
		lengths = c.Counts
	}
	for i, part := range c.Types {
		n := int64(0)
		switch {
		case c.Combiner == datatype.CombinerStruct:
			n = lengths[1+i]
		case part.Size() > 0: // all other combiners have one datatype, and a number of its items
			n = t.Size() / part.Size()
		}
		if n == 0 {
			continue
		}
		x, err := d.measure(part)
		if err != nil {
			return err
		}
		if more, err := f(x, n, part); err != nil || !more {
			return err
		}
	}
	return nil
}

// store writes items to mem in the form that they have in a file, in which each takes as many bytes
// as it measures.
func (d *Datarep) store(t *proc.Datatype, at unsafe.Pointer, count int, mem []byte) error {
	x, err := d.measure(t)
	if err != nil {
		return err
	}
	if d.Write == nil {
		return d.asInMemory(t, x, func() { t.Encode(inMemory, mem, at, count, 0) })
	}
	return d.convert(d.Write, Conversion{Memory: at, Datatype: t, File: mem, Count: count * int(x.elements)})
}

// load stores count items in memory from mem, in which they have the form of a file. mem may end
// before the last one.
func (d *Datarep) load(t *proc.Datatype, at unsafe.Pointer, count int, mem []byte) error {
	fit, err := d.within(t, int64(len(mem)))
	if err != nil {
		return err
	}
	if d.Read == nil {
		return d.asInMemory(t, fit, func() { t.Decode(inMemory, at, count, 0, mem, nil) })
	}
	return d.convert(d.Read, Conversion{Memory: at, Datatype: t, File: mem, Count: int(fit.elements)})
}

func (d *Datarep) convert(f func(Conversion) error, c Conversion) error {
	if c.Count == 0 {
		return nil
	}
	if err := f(c); err != nil {
		return fault(mpierr.Conversion, "data representation %q: %d elements of items of %v: %v", d.Name, c.Count, c.Datatype, err)
	}
	return nil
}

// asInMemory calls f if what was measured takes as many bytes in a file as in memory, and returns
// an error otherwise.
func (d *Datarep) asInMemory(t *proc.Datatype, x measure, f func()) error {
	if x.bytes != x.memory {
		return fault(mpierr.Conversion, "data representation %q: there is no function to convert, and items of %v take other bytes in a file than in memory", d.Name, t)
	}
	f()
	return nil
}
