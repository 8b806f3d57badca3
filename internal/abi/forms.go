package abi

import (
	"slices"
	"strings"
)

// AllFunctions returns the functions of MPI: those that the text of mpi.h declares, each with the
// forms that follow from it, and the conversions of handles. Functions that mpi.h does not declare
// have Derived set.
func AllFunctions(header string) ([]Function, error) {
	declared, err := ParseHeader(header)
	if err != nil {
		return nil, err
	}
	for _, kind := range kinds[1:] {
		t := "MPI_" + strings.Replace(kind, "Type", "Datatype", 1)
		name := strings.ToLower(strings.TrimPrefix(t, "MPI_"))
		declared = append(declared,
			Function{Name: "MPI_" + kind + "_toint", Result: "int", Params: t + " " + name, Derived: true},
			Function{Name: "MPI_" + kind + "_fromint", Result: t, Params: "int " + name, Derived: true})
	}
	var all []Function
	for _, f := range declared {
		for _, f := range f.forms() {
			all = append(all, f)
			large := f.large()
			if large.Params != f.Params && !slices.ContainsFunc(declared, func(d Function) bool { return d.Name == large.Name }) {
				all = append(all, large)
			}
		}
	}
	for i := range all {
		if all[i].Args, err = parseArgs(all[i].Params); err != nil {
			return nil, err
		}
	}
	return all, nil
}

// forms are a function and, of a collective operation, the nonblocking and the persistent one.
func (f Function) forms() []Function {
	name := strings.TrimPrefix(f.Name, "MPI_")
	if !slices.ContainsFunc(collectives, func(c collective) bool { return c.name == name }) {
		return []Function{f}
	}
	return []Function{
		f,
		{Name: "MPI_I" + strings.ToLower(name[:1]) + name[1:], Result: f.Result, Params: f.Params + ", MPI_Request *request", Derived: true},
		{Name: f.Name + "_init", Result: f.Result, Params: f.Params + ", MPI_Info info, MPI_Request *request", Derived: true},
	}
}

// narrow are functions that have no form for large counts: what they count are objects and procs.
var narrow = pattern(`^MPI_(T_|Wait|Test|Start|Request_|Alloc_mem|Group_|Comm_size|Comm_remote_size|Comm_spawn|Type_match_size)`)

// These parameters are MPI_Counts of functions for large counts, and those MPI_Aints. Of windows
// the sizes and displacements in bytes are MPI_Aints of all functions, and a distributed array is
// of so many procs.
var (
	wideCount = pattern(`\b(?:int|MPI_Aint)( \*?(?:(?:send|recv|in|out|origin_|target_|result_)?count|(?:send|recv)counts|(?:in|out)?size|` +
		`blocklength|stride|position|extent|lb|true_lb|true_extent|array_of_(?:blocklengths|displacements|sizes|subsizes|starts|gsizes))\b)`)
	wideAint     = pattern(`\bint( \*?(?:[sr]?displs|disp_unit)\b)`)
	wideCallback = pattern(`\b(MPI_(?:User|Datarep_conversion)_function)\b`)
)

// large is the function for large counts, which has the same parameters if there is none.
func (f Function) large() Function {
	g := Function{Name: f.Name + "_c", Result: f.Result, Params: f.Params, Derived: true}
	if narrow().MatchString(f.Name) {
		return g
	}
	params := strings.Split(f.Params, ", ")
	for i, p := range params {
		if p == "MPI_Aint size" || p == "MPI_Aint *size" && strings.HasPrefix(f.Name, "MPI_Win_") || p == "int size" && f.Name == "MPI_Type_create_darray" {
			continue
		}
		p = wideCount().ReplaceAllString(p, "MPI_Count$1")
		p = wideAint().ReplaceAllString(p, "MPI_Aint$1")
		params[i] = wideCallback().ReplaceAllString(p, "${1}_c")
	}
	g.Params = strings.Join(params, ", ")
	return g
}
