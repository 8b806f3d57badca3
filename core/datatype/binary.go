package datatype

import (
	"encoding/binary"
	"errors"
	"fmt"
)

// ErrEncoding is wrapped by the error for bytes that AppendBinary does not produce.
var ErrEncoding = errors.New("not a datatype")

// The limits of ParseType: maximum depth of nested types, and maximum numbers of types and of their
// arguments.
const (
	maxDepth = 64
	maxTypes = 1 << 16
	maxArgs  = 1 << 20
)

// binaryVersion begins each encoding.
const binaryVersion = 1

// AppendBinary appends a description of t for ParseType in another process, such as the target of a
// one-sided operation (MPI-4.1, 12.3). Predefined types are named by their handles; the other
// process uses its own elements for them, with the sizes of its host.
//
// The encoding is a version and the type: its combiner, followed by the handle of a predefined
// type, or by the arguments in the order of Contents (their number, then each as a signed varint)
// and the types among them, each encoded in the same way.
func (t *Type) AppendBinary(b []byte) ([]byte, error) {
	d, err := usable(t)
	if err != nil {
		return b, err
	}
	a := appender{b: append(b, binaryVersion)}
	a.append(d, 0)
	if a.types > maxTypes || a.args > maxArgs || a.depth > maxDepth {
		return b, fmt.Errorf("datatype: %w: %d types, %d deep, with %d arguments", ErrTooLarge, a.types, a.depth, a.args)
	}
	return a.b, nil
}

type appender struct {
	b                  []byte
	types, args, depth int
}

func (a *appender) append(d *def, depth int) {
	a.types, a.depth = a.types+1, max(a.depth, depth)
	a.b = append(a.b, byte(d.combiner))
	if d.named() {
		a.b = binary.AppendUvarint(a.b, uint64(d.handle))
		return
	}
	ints, addrs := d.arguments()
	a.list(ints)
	a.list(addrs)
	for _, old := range d.olds() {
		if a.types > maxTypes || depth > maxDepth { // ParseType would refuse it
			return
		}
		a.append(old, depth+1)
	}
}

func (a *appender) list(values []int64) {
	a.args += len(values)
	a.b = binary.AppendUvarint(a.b, uint64(len(values)))
	for _, v := range values {
		a.b = binary.AppendVarint(a.b, v)
	}
}

// ParseType makes the type that AppendBinary has encoded at the start of b, and returns the rest of
// b. The type is not committed, unless it is a predefined one. For other bytes the error is
// ErrEncoding, or that of a constructor.
func ParseType(b []byte) (*Type, []byte, error) {
	if len(b) == 0 || b[0] != binaryVersion {
		return nil, b, fmt.Errorf("datatype: %w: no version %d", ErrEncoding, binaryVersion)
	}
	p := parser{b: b[1:]}
	t, err := p.parse(0)
	if err != nil {
		return nil, b, err
	}
	return t, p.b, nil
}

type parser struct {
	b           []byte
	types, args int
}

func (p *parser) parse(depth int) (*Type, error) {
	if p.types++; p.types > maxTypes || depth > maxDepth {
		return nil, fmt.Errorf("datatype: %w: more than %d types, or %d deep", ErrEncoding, maxTypes, maxDepth)
	}
	if len(p.b) == 0 {
		return nil, fmt.Errorf("datatype: %w: it ends early", ErrEncoding)
	}
	combiner := Combiner(p.b[0])
	p.b = p.b[1:]
	if combiner == CombinerNamed {
		return p.named()
	}
	ints, err := p.list()
	if err != nil {
		return nil, err
	}
	addrs, err := p.list()
	if err != nil {
		return nil, err
	}
	construct, types, err := making(combiner, ints, addrs)
	if err != nil {
		return nil, err
	}
	var olds []*Type
	for range types {
		old, err := p.parse(depth + 1)
		if err != nil {
			return nil, err
		}
		olds = append(olds, old)
	}
	return construct(olds)
}

func (p *parser) named() (*Type, error) {
	handle, n := binary.Uvarint(p.b)
	if n <= 0 || handle > 4095 || ByHandle(int(handle)) == nil {
		return nil, fmt.Errorf("datatype: %w: no predefined type has the handle %#x", ErrEncoding, handle)
	}
	p.b = p.b[n:]
	return ByHandle(int(handle)), nil
}

// list reads a list of arguments, each of which takes at least one byte.
func (p *parser) list() ([]int64, error) {
	length, n := binary.Uvarint(p.b)
	if n <= 0 || length > uint64(len(p.b)-n) || length > uint64(maxArgs-p.args) {
		return nil, fmt.Errorf("datatype: %w: a list of %d arguments in %d bytes", ErrEncoding, length, len(p.b))
	}
	p.b = p.b[n:]
	p.args += int(length)
	values := make([]int64, length)
	for i := range values {
		v, n := binary.Varint(p.b)
		if n <= 0 {
			return nil, fmt.Errorf("datatype: %w: argument %d of %d is missing", ErrEncoding, i, length)
		}
		values[i], p.b = v, p.b[n:]
	}
	return values, nil
}
