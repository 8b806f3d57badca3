package mpi

import (
	"github.com/openimpi/impi/internal/engine/file"
	"github.com/openimpi/impi/internal/engine/proc"
)

// The access modes of a file, with the values of the MPI ABI. One of ModeReadOnly, ModeReadWrite and
// ModeWriteOnly has to be given.
const (
	ModeAppend        = file.ModeAppend // all pointers begin at the end
	ModeCreate        = file.ModeCreate
	ModeDeleteOnClose = file.ModeDeleteOnClose
	ModeExclusive     = file.ModeExclusive // with ModeCreate: it must not exist
	ModeReadOnly      = file.ModeReadOnly
	ModeReadWrite     = file.ModeReadWrite
	ModeSequential    = file.ModeSequential // only the shared pointer is used
	ModeWriteOnly     = file.ModeWriteOnly
)

// Where Seek and SeekShared count from, and the displacement of a view that stands for where the
// shared pointer is, with the values of the MPI ABI.
const (
	SeekCur             = file.SeekCur
	SeekEnd             = file.SeekEnd
	SeekSet             = file.SeekSet
	DisplacementCurrent = file.DisplacementCurrent
)

// ErrFile means a file that is nil, or was closed.
var ErrFile = file.ErrFile

// File is a file that all members of a communicator have opened. Each reads and writes it by its
// own system calls, so that they need a file system that all of them see. Errors are returned and
// no handler is told of them; they have the classes of files (MPI ch. 14), and those of the
// communication between the members. Methods that all members call fail for all of them.
//
// A File may be used by several goroutines.
type File file.File

// FileView is how a member sees a file: from byte Displacement on there are items of Filetype, one
// after the other, which are made of Etypes and have holes that the member does not see. Offsets
// count Etypes. Datarep says how data lie in the file: native, internal or external32.
type FileView struct {
	Displacement    int64
	Etype, Filetype *Datatype
	Datarep         string
}

// FileOpen opens a file for all members of c, who all call it with the same name and mode, a sum
// of modes (MPI_File_open). The info key impi_shared_dir names a folder, which all members see, for
// what keeps the shared pointer; without it that is beside the file. A nil info has no hints.
func (c *Comm) FileOpen(name string, mode int, info *Info) (*File, error) {
	return outFile(file.Opened(c.in(), name, mode, info.in()))
}

// FileDelete deletes a file (MPI_File_delete).
func FileDelete(name string) error { return file.Deleted(name) }

// Close closes the file. All members call it. The file is of no use afterwards, whatever the error
// is (MPI_File_close).
func (f *File) Close() error { return file.Do("Close", f.in(), (*file.File).Close) }

// Size is that of the file in bytes (MPI_File_get_size).
func (f *File) Size() (int64, error) { return file.Call("Size", f.in(), (*file.File).Size) }

// SetSize cuts the file off after size bytes, or makes it longer. All members call it
// (MPI_File_set_size).
func (f *File) SetSize(size int64) error {
	return file.Do("SetSize", f.in(), func(f *file.File) error { return f.SetSize(size) })
}

// Preallocate makes the file at least size bytes long. All members call it
// (MPI_File_preallocate).
func (f *File) Preallocate(size int64) error {
	return file.Do("Preallocate", f.in(), func(f *file.File) error { return f.Preallocate(size) })
}

// Sync has what was written reach the storage. All members call it (MPI_File_sync).
func (f *File) Sync() error { return file.Do("Sync", f.in(), (*file.File).Sync) }

// Group gives the group of the members (MPI_File_get_group).
func (f *File) Group() (*Group, error) {
	return outGroup(file.Call("Group", f.in(), (*file.File).Group))
}

// Mode gives the mode that the file was opened with (MPI_File_get_amode).
func (f *File) Mode() (int, error) {
	return file.Call("Mode", f.in(), func(f *file.File) (int, error) { return f.Mode(), nil })
}

// SetInfo adds hints. All members call it (MPI_File_set_info).
func (f *File) SetInfo(info *Info) error {
	return file.Do("SetInfo", f.in(), func(f *file.File) error { return f.SetInfo(info.in()) })
}

// GetInfo gives a copy of the hints, which the caller has to Free (MPI_File_get_info).
func (f *File) GetInfo() (*Info, error) {
	return outInfo(file.Call("GetInfo", f.in(), (*file.File).Info))
}

// SetAtomicity says whether what several members do at a time happens one after the other. All
// members call it (MPI_File_set_atomicity).
func (f *File) SetAtomicity(on bool) error {
	return file.Do("SetAtomicity", f.in(), func(f *file.File) error { return f.SetAtomicity(on) })
}

// Atomicity tells what SetAtomicity has said, false at first (MPI_File_get_atomicity).
func (f *File) Atomicity() (bool, error) {
	return file.Call("Atomicity", f.in(), func(f *file.File) (bool, error) { return f.Atomicity(), nil })
}

// Extent is how many bytes apart items of t lie in the file (MPI_File_get_type_extent).
func (f *File) Extent(t *Datatype) (int64, error) {
	return file.Call("Extent", f.in(), func(f *file.File) (int64, error) { return f.Extent(t) })
}

// SetView gives each member a view of its own, and sets all pointers to its beginning. All members
// call it; Datarep and the extent of Etype are the same everywhere. The datatypes may be freed
// (MPI_File_set_view).
func (f *File) SetView(v FileView) error {
	return file.Do("SetView", f.in(), func(f *file.File) error { return f.SetView(file.View(v), nil) })
}

// View gives the caller's view. Derived datatypes in it are the caller's to free
// (MPI_File_get_view).
func (f *File) View() (FileView, error) {
	return outFileView(file.Call("View", f.in(), (*file.File).View))
}

// Seek moves the individual pointer by etypes, and gives where it is then (MPI_File_seek).
func (f *File) Seek(offset int64, whence int) (int64, error) {
	return file.Call("Seek", f.in(), func(f *file.File) (int64, error) { return f.Seek(offset, whence) })
}

// Position is where the individual pointer is, in etypes (MPI_File_get_position).
func (f *File) Position() (int64, error) {
	return file.Call("Position", f.in(), func(f *file.File) (int64, error) { return f.Position(), nil })
}

// ByteOffset is the byte of the file at which the etype number offset of the view lies
// (MPI_File_get_byte_offset).
func (f *File) ByteOffset(offset int64) (int64, error) {
	return file.Call("ByteOffset", f.in(), func(f *file.File) (int64, error) { return f.ByteOffset(offset) })
}

// SeekShared moves the shared pointer by etypes. All members call it with the same arguments
// (MPI_File_seek_shared).
func (f *File) SeekShared(offset int64, whence int) error {
	return file.Do("SeekShared", f.in(), func(f *file.File) error { return f.SeekShared(offset, whence) })
}

// PositionShared is where the shared pointer is, in etypes (MPI_File_get_position_shared).
func (f *File) PositionShared() (int64, error) {
	return file.Call("PositionShared", f.in(), (*file.File).PositionShared)
}

// SplitEnd completes the split operation that has begun (MPI_File_read_all_end and its like).
func (f *File) SplitEnd() (Status, error) {
	return outStatus(file.Call("SplitEnd", f.in(), func(f *file.File) (proc.Status, error) { return f.SplitEnd() }))
}
