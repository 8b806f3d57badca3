package abi

import (
	"fmt"
	"io/fs"
	"strings"
)

// The functions that are not MPI's: their header, and the calls of Fortran, which are in a separate
// object: a program that calls none of them can be linked with a library of MPI's ABI that does not
// have them.
const (
	extensionHeader   = "include/mpi-ext.h"
	fortranExtensions = "cmd/impifort/library/extensions.c"
)

func readExtensions(root fs.FS) (text string, all []*procedure, err error) {
	data, err := fs.ReadFile(root, extensionHeader)
	if err != nil {
		return "", nil, err
	}
	fns, err := parseHeader(string(data), extensionHeader, "MPIX_")
	if err != nil {
		return "", nil, err
	}
	for _, f := range fns {
		p, err := newProcedure(f)
		if err != nil {
			return "", nil, err
		}
		all = append(all, p)
	}
	return string(data), all, nil
}

// writtenLater are the functions of mpi-ext.h that write a number when their request is completed.
// With INTEGERs of 8 bytes there is no place for it.
var writtenLater = map[string]bool{"MPIX_Comm_iagree": true}

func extensions(all []*procedure) string {
	var b strings.Builder
	b.WriteString(generatedC + "#include \"fortran.h\"\n#include <mpi-ext.h>\n\n#ifndef IMPI_INTEGER8\n")
	for _, p := range all {
		b.WriteString(fortranFunction(p, p, false))
	}
	b.WriteString("\n#else\n")
	for _, p := range all {
		if !writtenLater[p.Name] {
			b.WriteString(fortranFunction(p, p, true))
			continue
		}
		var params []string
		for _, d := range p.dummies {
			params = append(params, "integer *"+d.Name)
		}
		fmt.Fprintf(&b, "\n// Its int would be written into an INTEGER of 8 bytes when this has returned.\nvoid p%s_(%s, integer *ierror)\n{\n", strings.ToLower(p.Name), strings.Join(params, ", "))
		for _, d := range p.dummies[1:] {
			fmt.Fprintf(&b, "\t(void)%s;\n", d.Name)
		}
		fmt.Fprintf(&b, "\timpi_raise(MPI_ERR_UNSUPPORTED_OPERATION, comm, NULL, NULL);\n\tif (ierror != NULL)\n\t\t*ierror = MPI_ERR_UNSUPPORTED_OPERATION;\n}\nNAMES_X(%s)\n", p.symbol())
	}
	b.WriteString("\n#endif\n")
	return b.String()
}
