package abi

import (
	"cmp"
	"fmt"
	"io/fs"
	"regexp"
	"slices"
	"strings"
)

// The generated files for Fortran, from the root of the repository.
const (
	fortranHeader      = "include/mpif.h"
	fortranModule      = "include/mpi.F90"
	fortranModule08    = "include/mpi_f08.F90"
	fortranCalls       = "cmd/impifort/library/calls.c"
	fortranCalls8      = "cmd/impifort/library/calls8.c"
	fortranDescriptors = "cmd/impifort/library/descriptors.c"
)

// GenerateFortran returns the text of the files for Fortran, by their names: mpif.h with the
// constants, the sources of the modules, and the calls, for INTEGERs of 4 and of 8 bytes.
func GenerateFortran(root fs.FS) (map[string]string, error) {
	data, err := fs.ReadFile(root, headerFile)
	if err != nil {
		return nil, err
	}
	text := string(data)
	fns, err := AllFunctions(text)
	if err != nil {
		return nil, err
	}
	all, err := fortranProcedures(fns)
	if err != nil {
		return nil, err
	}
	extensionText, beside, err := readExtensions(root)
	if err != nil {
		return nil, err
	}
	constants, err := fortranConstants(text + extensionText)
	if err != nil {
		return nil, err
	}
	both := slices.Concat(all, beside)
	return map[string]string{
		fortranHeader: mpif(constants), fortranModule: moduleMPI(both), fortranModule08: moduleF08(constants, both), fortranExtensions: extensions(beside),
		fortranCalls: fortranFunctions(all, false), fortranCalls8: fortranFunctions(all, true), fortranDescriptors: descriptors(all),
	}, nil
}

type role int

const (
	number    role = iota // INTEGER or LOGICAL
	wide                  // INTEGER of a kind of MPI's
	handle                // INTEGER or TYPE(MPI_X)
	buffer                // of any type
	status                // INTEGER(MPI_STATUS_SIZE) or TYPE(MPI_Status)
	text                  // CHARACTER
	pointer               // to memory of MPI: an address or TYPE(C_PTR)
	attribute             // an attribute's value, or an argument of a callback
	function              // of the program
)

type dummy struct {
	Arg
	role    role
	kind    string // of a handle: Comm; of a wide number: ADDRESS; of a function: its type in C
	in, out bool
	array   bool
	logical bool
	length  string // of an array, in C
}

type procedure struct {
	Function
	dummies []dummy
	large   *procedure // its variant for large counts, with as many arguments
	special bool       // special.c has it
	older   bool       // deprecated: not in the module mpi_f08
	choice  bool       // it has buffers
}

// name is the name without MPI_, or MPIX_.
func (p *procedure) name() string {
	_, name, _ := strings.Cut(p.Name, "_")
	return name
}

// symbol is the name for the linker, in C.
func (p *procedure) symbol() string { return strings.ToLower(p.name()) }

// specials are the functions that special.c has.
var specials = pattern(`^MPI_(Init|Init_thread|(Buffer|Comm|Session)_detach_buffer(_c)?|Buffer_detach(_c)?|` +
	`(Comm|Type|Win)_(create_keyval|get_attr|set_attr)|Attr_put|Attr_get|Keyval_create|Op_create(_c)?|` +
	`(Comm|Win|File|Session)_create_errhandler|Grequest_start|Register_datarep(_c)?|Comm_spawn(_multiple)?|` +
	`Info_get|Info_get_string|Session_get_nth_pset|Info_create_env)$`)

// notFortran are functions of C alone. Those that return no error are written by hand.
var notFortran = pattern(`^MPI_(T_.*|\w+_toint|\w+_fromint|Abi_.et_fortran_\w+|Pcontrol|Wtime|Wtick|Aint_add|Aint_diff|P(send|recv)_init_c)$`)

func fortranProcedures(fns []Function) ([]*procedure, error) {
	var all []*procedure
	for _, pair := range Pairs(fns) {
		if notFortran().MatchString(pair.Small.Name) {
			continue
		}
		p, err := newProcedure(pair.Small)
		if err != nil {
			return nil, err
		}
		if pair.Large != nil && !notFortran().MatchString(pair.Large.Name) {
			if p.large, err = newProcedure(*pair.Large); err != nil {
				return nil, err
			}
		}
		all = append(all, p)
	}
	return all, nil
}

func newProcedure(f Function) (*procedure, error) {
	p := &procedure{Function: f, special: specials().MatchString(f.Name)}
	p.older = strings.HasPrefix(f.Name, "MPI_Attr_") || strings.HasPrefix(f.Name, "MPI_Keyval_")
	for _, a := range f.Args {
		if a.Name == "argc" || a.Type == "char ***" || p.name() == "Info_create_env" && a.Name == "argv" {
			continue // Fortran has neither
		}
		d, err := p.describe(a)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", f.Name, err)
		}
		p.choice = p.choice || d.role == buffer
		p.dummies = append(p.dummies, d)
	}
	return p, nil
}

var (
	handleType = pattern(`^(?:const )?MPI_(Comm|Group|Datatype|Op|Request|Info|Errhandler|Win|File|Session|Message)( \*)?$`)
	numberType = pattern(`^(?:const )?int(?: \*)?$`)
	wideType   = pattern(`^(?:const )?MPI_(Aint|Count|Offset)(?: \*)?$`)
	statusType = pattern(`^(?:const )?MPI_Status \*$`)
	textType   = pattern(`^(?:const )?char \*+( \*)?$`)
	bufferType = pattern(`^(?:const )?void \*$`)
	funcType   = pattern(`^(MPI_\w+_function(?:_c)?) \*$`)
	agrees     = pattern(`^MPIX_Comm_i?agree$`) // their flag is bits
	logicals   = pattern(`^(flag|commute|reorder|periods|remain_dims|weighted|high)$`)
)

// kindOf is the kind of INTEGER that has the values of a type of C.
var kindOf = map[string]string{"Aint": "ADDRESS", "Count": "COUNT", "Offset": "OFFSET"}

func (p *procedure) describe(a Arg) (dummy, error) {
	d := dummy{Arg: a}
	// Weights are lists whose C type is a pointer: compilers warn of MPI_UNWEIGHTED for an array.
	d.array = strings.HasSuffix(a.Name, "weights") || regexp.MustCompile(`\b`+a.Name+`\[`).MatchString(p.Params)
	behind := strings.HasSuffix(a.Type, "*")
	d.in = !behind || strings.HasPrefix(a.Type, "const ") || p.changes(a)
	d.out = behind && !strings.HasPrefix(a.Type, "const ")
	if a.Name == "ranges" {
		d.in, d.out = true, false
	}
	switch t := a.Type; {
	case strings.HasPrefix(a.Name, "attribute_val") || a.Name == "extra_state":
		d.role, d.kind, d.in = attribute, "ADDRESS", !d.out || !strings.Contains(p.name(), "get")
		d.out = !d.in
		if p.older {
			d.kind = ""
		}
	case bufferType().MatchString(t) && (a.Name == "baseptr" || a.Name == "buffer_addr"):
		d.role = pointer
	case bufferType().MatchString(t):
		d.role = buffer
	case funcType().MatchString(t):
		d.role, d.kind, d.in, d.out = function, funcType().FindStringSubmatch(t)[1], true, false
	case statusType().MatchString(t):
		d.role = status
	case textType().MatchString(t):
		d.role = text
		if strings.Contains(a.Name, "argv") || strings.Contains(a.Name, "commands") {
			d.in, d.out = true, false
		} else if strings.HasPrefix(t, "const char") {
			d.array = false // datarep[]
		}
	case wideType().MatchString(t):
		d.role, d.kind = wide, kindOf[wideType().FindStringSubmatch(t)[1]]
	case handleType().MatchString(t):
		d.role, d.kind = handle, handleType().FindStringSubmatch(t)[1]
	case numberType().MatchString(t):
		d.role, d.logical = number, logicals().MatchString(a.Name) && !agrees().MatchString(p.Name)
	default:
		return d, fmt.Errorf("%s is a %s, which Fortran does not have", a.Name, a.Type)
	}
	if d.array {
		d.length = p.length(a.Name)
	}
	return d, nil
}

var (
	ends    = pattern(`^MPI_(\w+_(free|free_keyval|disconnect|commit)|File_close|Session_finalize|Wait|Test|Cancel|Start)$`)
	changed = []string{"position", "buflen", "pset_len", "message", "array_of_requests"}
)

// changes reports whether the function reads what is behind a pointer before it writes it.
func (p *procedure) changes(a Arg) bool {
	switch {
	case ends().MatchString(p.Name):
		return a.Name != "status" && a.Name != "flag"
	case a.Name == "message":
		return strings.HasSuffix(strings.TrimSuffix(p.Name, "_c"), "mrecv") || strings.HasSuffix(strings.TrimSuffix(p.Name, "_c"), "Mrecv")
	case strings.HasPrefix(p.Name, "MPI_Status_set_"):
		return a.Name == "status"
	case agrees().MatchString(p.Name):
		return a.Name == "flag"
	case p.Name == "MPI_Dims_create":
		return a.Name == "dims"
	}
	return slices.Contains(changed, a.Name)
}

// lengths maps arrays, by name or where that is not enough by function and name, to their lengths
// in C. Functions that have a form for large counts need none: there INTEGERs of 8 bytes are as C
// has them.
var lengths = map[string]string{
	"ranks": "*n", "ranks1": "*n", "ranks2": "*n", "ranges": "3 * *n",
	"dims": "*ndims", "periods": "*ndims", "remain_dims": "impi_cartdim(*comm)",
	"MPI_Cart_get.dims": "*maxdims", "MPI_Cart_get.periods": "*maxdims", "coords": "*maxdims", "MPI_Cart_rank.coords": "impi_cartdim(*comm)",
	"index": "*nnodes", "edges": "(*nnodes > 0 ? index[*nnodes - 1] : 0)", "neighbors": "*maxneighbors",
	"MPI_Graph_get.index": "*maxindex", "MPI_Graph_get.edges": "*maxedges",
	"MPI_Dist_graph_create.sources": "*n", "degrees": "*n",
	"MPI_Dist_graph_create.destinations": "impi_sum(*n, degrees)", "weights": "impi_sum(*n, degrees)",
	"MPI_Dist_graph_create_adjacent.sources": "*indegree", "MPI_Dist_graph_create_adjacent.sourceweights": "*indegree",
	"MPI_Dist_graph_create_adjacent.destinations": "*outdegree", "MPI_Dist_graph_create_adjacent.destweights": "*outdegree",
	"sources": "*maxindegree", "sourceweights": "*maxindegree", "destinations": "*maxoutdegree", "destweights": "*maxoutdegree",
	"array_of_partitions": "*length", "array_of_types": "*count", "array_of_integers": "*max_integers", "array_of_datatypes": "*max_datatypes",
	"array_of_distribs": "*ndims", "array_of_dargs": "*ndims", "array_of_psizes": "*ndims",
	"sendtypes": "impi_partners(*comm, sendbuf, 0, NEIGHBOR)", "recvtypes": "impi_partners(*comm, NULL, 1, NEIGHBOR)",
}

func (p *procedure) length(name string) string {
	if strings.HasPrefix(name, "array_of_") && slices.ContainsFunc(p.Args, func(a Arg) bool { return a.Name == "array_of_requests" }) {
		if strings.Contains(p.Name, "some") {
			return "*incount"
		}
		return "*count"
	}
	n := cmp.Or(lengths[p.Name+"."+name], lengths[name])
	neighbor := "0"
	if strings.Contains(strings.ToLower(p.Name), "neighbor") {
		neighbor = "1"
	}
	return strings.Replace(n, "NEIGHBOR", neighbor, 1)
}
