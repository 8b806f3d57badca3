package abi

import (
	"fmt"
	"slices"
	"strings"
)

var (
	// asItIs are procedures that are told where memory is, and copy nothing from or to it.
	asItIs = pattern(`^MPI_(Get_address|Free_mem|Buffer_attach|\w+_attach_buffer|Win_create|Win_attach|Win_detach|File_\w+_end|Fetch_and_op|Compare_and_swap)(_c)?$`)
	// later are procedures that use their buffers after they have returned.
	later = pattern(`^MPI_(I[a-z]+_?\w*|[A-Z]\w+_init|File_i(read|write)\w*|File_\w+_begin|Put|Get|Accumulate|Get_accumulate|R(put|get|accumulate|get_accumulate))(_c)?$`)
)

// descriptors writes the procedures of mpi_f08 that have buffers, which are told by descriptors
// what is in them: a section of an array need not be contiguous.
func descriptors(all []*procedure) string {
	var b strings.Builder
	b.WriteString(generatedC + "#include \"fortran.h\"\n")
	for _, p := range all {
		if p.choice && !p.older {
			b.WriteString(described(p))
		}
	}
	b.WriteString("\n// What follows is for large counts. INTEGERs of 8 bytes need no others.\n#ifndef IMPI_INTEGER8\n")
	for _, p := range all {
		if p.choice && p.overloads() {
			b.WriteString(described(p.large))
		}
	}
	b.WriteString("\n#endif\n")
	return b.String()
}

// overloads reports whether the procedure for large counts can be told from p.
func (p *procedure) overloads() bool {
	if p.large == nil {
		return false
	}
	for i, d := range p.dummies {
		if p.large.dummies[i].role != d.role {
			return true // all wide INTEGERs have 8 bytes
		}
	}
	return false
}

// described writes the procedure that converts descriptors to what pmpi_x_ takes.
func described(p *procedure) string {
	var params, args, plain, before, after []string
	where := "impi_raise(code, NULL, NULL, NULL)"
	for i, d := range p.dummies {
		if w := map[string]string{"Comm": "impi_raise(code, comm, NULL, NULL)", "Win": "impi_raise(code, NULL, win, NULL)", "File": "impi_raise(code, NULL, NULL, fh)"}[d.kind]; w != "" && d.role == handle && !d.out {
			where = w
		}
		ctype := "integer"
		switch d.role {
		case wide:
			ctype = "MPI_" + map[string]string{"ADDRESS": "Aint", "COUNT": "Count", "OFFSET": "Offset"}[d.kind]
		case text:
			ctype = "struct impi_descriptor"
			args = append(args, d.Name+"->base")
			params, plain = append(params, ctype+" *"+d.Name), append(plain, "char *")
			continue
		case pointer:
			ctype = "void"
		case buffer:
			ctype = "struct impi_descriptor"
			arg := "s_" + d.Name + ".at"
			before = append(before, "struct impi_choice s_"+d.Name+";")
			switch {
			case asItIs().MatchString(p.Name):
				arg = d.Name + "->base"
				before = before[:len(before)-1]
			case !later().MatchString(p.Name):
				before = append(before, fmt.Sprintf("impi_packed(&s_%s, %s, &code);", d.Name, d.Name))
				after = append(after, fmt.Sprintf("impi_unpacked(&s_%s, %v);", d.Name, flagOf(d.out)))
			case p.counted(i):
				follow := p.dummies[i+1 : i+3]
				before = append(before, fmt.Sprintf("impi_typed(&s_%s, %s, *%s, *%s, &code);", d.Name, d.Name, follow[0].Name, follow[1].Name))
				after = append(after, "impi_untyped(&s_"+d.Name+");")
			default:
				before = append(before, fmt.Sprintf("impi_whole(&s_%s, %s, &code);", d.Name, d.Name))
			}
			args, params, plain = append(args, arg), append(params, ctype+" *"+d.Name), append(plain, "void *")
			continue
		}
		args, params, plain = append(args, retyped(p, i)), append(params, ctype+" *"+d.Name), append(plain, ctype+" *")
	}
	plain = append(plain, "integer *")
	lengths := ""
	for _, d := range p.dummies {
		if d.role == text {
			lengths += ", " + d.Name + "->elem_len"
			plain = append(plain, "size_t")
		}
	}
	var b strings.Builder
	fmt.Fprintf(&b, "\nvoid pmpi_%s_(%s);\n", p.symbol(), strings.Join(plain, ", "))
	fmt.Fprintf(&b, "\nvoid pmpi_%s_f08ts_(%s, integer *ierror)\n{\n", p.symbol(), strings.Join(params, ", "))
	call := fmt.Sprintf("pmpi_%s_(%s, ierror%s);\n", p.symbol(), strings.Join(args, ", "), lengths)
	if len(before) == 0 {
		b.WriteString("\t" + call)
	} else {
		lines := slices.Concat([]string{"int code = MPI_SUCCESS;"}, before,
			[]string{"if (code == MPI_SUCCESS)", "\t" + strings.TrimSpace(call), "else if (" + where + ", ierror != NULL)", "\t*ierror = code;"}, after)
		b.WriteString("\t" + strings.Join(lines, "\n\t") + "\n")
	}
	fmt.Fprintf(&b, "}\nDESCRIBED(%s)\n", p.symbol())
	return b.String()
}

func flagOf(b bool) int {
	if b {
		return 1
	}
	return 0
}

// counted reports whether the buffer i has a count and a datatype of its own, in whose place those
// of a section can be. Operations want elements of the datatypes that they are for.
func (p *procedure) counted(i int) bool {
	if i < 0 || i+2 >= len(p.dummies) || p.dummies[i].role != buffer || !later().MatchString(p.Name) {
		return false
	}
	count, datatype := p.dummies[i+1], p.dummies[i+2]
	reduces := false
	for _, d := range p.dummies {
		reduces = reduces || d.Name == "op"
	}
	accumulates := strings.Contains(strings.ToLower(p.Name), "accumulate")
	return strings.HasSuffix(count.Name, "count") && !count.array && datatype.kind == "Datatype" && !datatype.array && (!reduces || accumulates)
}

// retyped returns what is passed for the argument i. For the count or the datatype of a buffer
// before it that is the section's, which has its own if it is not contiguous.
func retyped(p *procedure, i int) string {
	d := p.dummies[i]
	switch {
	case p.counted(i-1) && d.role == wide:
		return "&s_" + p.dummies[i-1].Name + ".wide"
	case p.counted(i - 1):
		return "&s_" + p.dummies[i-1].Name + ".count"
	case p.counted(i - 2):
		return "&s_" + p.dummies[i-2].Name + ".type"
	}
	return d.Name
}
