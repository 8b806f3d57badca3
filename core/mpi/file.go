package mpi

// FileView is how a member sees a file: from byte Displacement on there are items of Filetype, one
// after the other, which are made of Etypes and have holes that the member does not see. Offsets
// count Etypes. Datarep says how data lie in the file: native, internal or external32.
type FileView struct {
	Displacement    int64
	Etype, Filetype *Datatype
	Datarep         string
}
