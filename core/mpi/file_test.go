package mpi

import (
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"testing"
	"unsafe"

	"github.com/openimpi/impi/core/datatype"
	"github.com/openimpi/impi/core/mpierr"
)

// inFile runs body on several procs that have one new file open.
func inFile(t *testing.T, body func(c *Comm, f *File) error) (name string) {
	t.Helper()
	name = filepath.Join(t.TempDir(), "data")
	layout{procs: 3}.run(t, func(_ *testing.T, c *Comm) error {
		f, err := c.FileOpen(name, ModeCreate|ModeReadWrite, nil)
		if err != nil {
			return err
		}
		return errors.Join(body(c, f), f.Close())
	})
	return name
}

func contentOf(t *testing.T, name string) string {
	t.Helper()
	b, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// Members write the stripes of a file, each by a view of its own, and read those of another.
func TestFileViews(t *testing.T) {
	name := inFile(t, func(c *Comm, f *File) error {
		byteType := datatype.Basic(datatype.Byte)
		stripe, err := TypeVector(1, 2, 2, byteType)
		if err == nil {
			stripe, err = TypeResized(stripe, 0, int64(2*c.Size()))
		}
		if err == nil {
			err = stripe.Commit()
		}
		if err != nil {
			return err
		}
		view := FileView{Displacement: int64(2 * c.Rank()), Etype: byteType, Filetype: stripe, Datarep: "native"}
		mine := []byte{'a' + byte(c.Rank()), 'A' + byte(c.Rank()), 'a' + byte(c.Rank()), 'A' + byte(c.Rank())}
		if err := f.SetView(view); err != nil {
			return err
		}
		st, err := f.WriteAll(Of(mine))
		if err := first(err, expect("written", st.Bytes(), int64(4))); err != nil {
			return err
		}
		at, err := f.Position()
		in, err2 := f.ByteOffset(3)
		got, err3 := f.View()
		if err := first(err, err2, err3, expect("position", at, int64(4)), expect("byte", in, int64(2*c.Rank()+7)),
			expect("displacement", got.Displacement, int64(2*c.Rank())), expect("datarep", got.Datarep, "native")); err != nil {
			return err
		}
		view.Displacement = int64(2 * ((c.Rank() + 1) % c.Size()))
		theirs := make([]byte, 5)
		if err := first(f.Sync(), f.SetView(view)); err != nil {
			return err
		}
		st, err = f.ReadAtAll(1, Of(theirs))
		if err := first(err, expect("read where the file ends", st.Bytes(), int64(3))); err != nil {
			return err
		}
		next := byte((c.Rank() + 1) % c.Size())
		return expect("of the next one", string(theirs[:3]), string([]byte{'A' + next, 'a' + next, 'A' + next}))
	})
	if got := contentOf(t, name); got != "aAbBcCaAbBcC" {
		t.Errorf("%q", got)
	}
}

// Pointers: the individual one, the shared one in any order and by rank, and what begins and ends.
func TestFilePointers(t *testing.T) {
	name := inFile(t, func(c *Comm, f *File) error {
		me := []byte{'0' + byte(c.Rank())}
		if _, err := f.WriteOrdered(Of(me)); err != nil {
			return err
		}
		shared, err := f.PositionShared()
		if err := first(err, expect("shared pointer", shared, int64(3)), Barrier(c)); err != nil { // nobody moves it before all have looked
			return err
		}
		if _, err := f.WriteShared(Of([]byte("xy"))); err != nil {
			return err
		}
		if err := Barrier(c); err != nil {
			return err
		}
		size, err := f.Size()
		if err := first(err, expect("size", size, int64(9))); err != nil {
			return err
		}
		to, err := f.Seek(-6, SeekEnd)
		if err := first(err, expect("place", to, int64(3))); err != nil {
			return err
		}
		two := make([]byte, 2)
		q, err := f.Iread(Of(two))
		if err != nil {
			return err
		}
		st, err := q.Wait()
		if err := first(err, expect("read", string(two), "xy"), expect("bytes", st.Bytes(), int64(2))); err != nil {
			return err
		}
		if err := first(f.SeekShared(0, SeekSet), f.ReadOrderedBegin(Of(two[:1])), class("a second one", f.ReadAllBegin(Of(make([]byte, 1))), mpierr.Arg)); err != nil {
			return err
		}
		st, err = f.SplitEnd()
		return first(err, expect("by rank", two[0], me[0]), expect("bytes", st.Bytes(), int64(1)), class("nothing begun", second(f.SplitEnd()), mpierr.Arg))
	})
	if got := contentOf(t, name); got != "012xyxyxy" {
		t.Errorf("%q", got)
	}
}

func TestFileExternal32(t *testing.T) {
	name := inFile(t, func(c *Comm, f *File) error {
		ints := datatype.Basic(datatype.Int32)
		if err := f.SetView(FileView{Etype: ints, Filetype: ints, Datarep: "external32"}); err != nil {
			return err
		}
		if _, err := f.WriteAt(int64(c.Rank()), Of([]int32{int32(c.Rank()) + 1})); err != nil {
			return err
		}
		if err := first(f.Sync(), Barrier(c)); err != nil {
			return err
		}
		all := make([]int32, 3)
		if _, err := f.ReadAt(0, Of(all)); err != nil {
			return err
		}
		return same("all", []int{int(all[0]), int(all[1]), int(all[2])}, []int{1, 2, 3})
	})
	if got := contentOf(t, name); got != "\x00\x00\x00\x01\x00\x00\x00\x02\x00\x00\x00\x03" {
		t.Errorf("%q", got)
	}
}

func TestFileErrors(t *testing.T) {
	folder := t.TempDir()
	name := filepath.Join(folder, "data")
	layout{procs: 2}.run(t, func(_ *testing.T, c *Comm) error {
		open := func(name string, mode int) error {
			_, err := c.FileOpen(name, mode, nil)
			return err
		}
		if err := first(class("no way to open", open(name, ModeCreate), mpierr.Amode), class("not there", open(name, ModeReadOnly), mpierr.NoSuchFile),
			class("a folder", open(folder, ModeReadWrite), mpierr.BadFile)); err != nil {
			return err
		}
		f, err := c.FileOpen(name, ModeCreate|ModeExclusive|ModeReadWrite|ModeDeleteOnClose, nil)
		if err != nil {
			return err
		}
		size := int64(5)
		if c.Rank() == 0 {
			size = -1
		}
		err = first(class("there already", open(name, ModeCreate|ModeExclusive|ModeReadWrite), mpierr.FileExists),
			class("size of the first", f.SetSize(size), mpierr.Arg), class("whence", second(f.Seek(0, 7)), mpierr.Arg), class("before the file", second(f.Seek(-1, SeekSet)), mpierr.Arg),
			class("offset", second(f.ReadAt(-1, Of([]byte{1}))), mpierr.Arg), class("no datatype", second(f.Write(Buffer{})), mpierr.Type),
			class("representation", f.SetView(FileView{Etype: datatype.Basic(datatype.Byte), Filetype: datatype.Basic(datatype.Byte), Datarep: "mine"}), mpierr.UnsupportedDatarep),
			f.Close())
		var none *File
		return first(err, class("closed", f.Sync(), mpierr.File), class("closed twice", f.Close(), mpierr.File), class("nil", second(none.Size()), mpierr.File),
			class("deleted", FileDelete(name), mpierr.NoSuchFile))
	})
}

// Each method refuses files that are nil or closed.
func TestMethodsOfNoFile(t *testing.T) {
	layout{procs: 1}.run(t, func(t *testing.T, c *Comm) error {
		closed, err := c.FileOpen(filepath.Join(t.TempDir(), "data"), ModeCreate|ModeReadWrite, nil)
		if err := first(err, closed.Close()); err != nil {
			return err
		}
		typ := reflect.TypeFor[*File]()
		if typ.NumMethod() < 40 {
			t.Errorf("%d methods are few", typ.NumMethod())
		}
		for i := range typ.NumMethod() {
			m := typ.Method(i)
			for _, f := range []*File{nil, closed} {
				args := []reflect.Value{reflect.ValueOf(f)}
				for k := 1; k < m.Type.NumIn(); k++ {
					args = append(args, reflect.Zero(m.Type.In(k)))
				}
				out := m.Func.Call(args)
				bad, _ := out[len(out)-1].Interface().(error)
				if !errors.Is(bad, ErrFile) || ErrorClass(bad) != mpierr.File {
					t.Errorf("%s of %v: %v", m.Name, f, bad)
				}
			}
		}
		return nil
	})
}

// TestFileDatarep: data are in a file as the program's functions have them, at the elements that
// these are told.
func TestFileDatarep(t *testing.T) {
	var told []Conversion
	move := func(c Conversion, to, from []byte) {
		for i := range c.Count {
			to[i] = ^from[i]
		}
		told = append(told, c)
	}
	inverse := Datarep{
		Name: "inverse", Extent: func(*Datatype) (int64, error) { return 1, nil },
		Read:  func(c Conversion) error { move(c, unsafe.Slice((*byte)(c.Memory), c.Count), c.File); return nil },
		Write: func(c Conversion) error { move(c, c.File, unsafe.Slice((*byte)(c.Memory), c.Count)); return nil },
	}
	for _, d := range []Datarep{{Name: "native", Extent: inverse.Extent}, {Name: "", Extent: inverse.Extent}, {Name: "no extent"}} {
		want := mpierr.Arg
		if d.Name == "native" {
			want = mpierr.DupDatarep
		}
		if err := classed(d.Name, RegisterDatarep(d), want); err != nil {
			t.Error(err)
		}
	}
	if err := errors.Join(RegisterDatarep(inverse), classed("twice", RegisterDatarep(inverse), mpierr.DupDatarep)); err != nil {
		t.Fatal(err)
	}
	name := inFile(t, func(c *Comm, f *File) error {
		byteType := datatype.Basic(datatype.Byte)
		if err := f.SetView(FileView{Etype: byteType, Filetype: byteType, Datarep: "inverse"}); err != nil || c.Rank() > 0 {
			return err
		}
		_, err := f.WriteAt(0, Of([]byte{1, 2, 3}))
		got := make([]byte, 5)
		st, err2 := f.ReadAt(1, Of(got))
		return first(errors.Join(err, err2), expect("read", st.Bytes(), int64(2)), expect("bytes", string(got), "\x02\x03\x00\x00\x00"))
	})
	if got := contentOf(t, name); got != "\xfe\xfd\xfc" {
		t.Errorf("the file has %q", got)
	}
	if len(told) != 2 || told[0].Count != 3 || len(told[0].File) != 3 || told[1].Count != 2 || told[1].Position != 0 {
		t.Errorf("%+v", told)
	}
}
