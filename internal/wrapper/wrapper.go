// Package wrapper is what the commands impicc, impicxx and impifort do: they call the
// compiler with what a program needs to find mpi.h and the library beside the
// arguments that they were given.
package wrapper

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"syscall"

	"github.com/openimpi/impi/internal/cmdline"
	"github.com/openimpi/impi/internal/version"
)

// Language is what the wrapper of a language needs to find the compiler and to explain itself.
type Language struct {
	Name      string   // name of the wrapper
	What      string   // C, C++ or Fortran
	Header    string   // file to look for
	Linked    []string // libraries, each with its -l
	Example   string   // a program's source
	Variables []string // environment variables that may name the compiler, the strongest first
	Options   []string // options that name the compiler, as in -cc=clang
	Compilers []string // compilers to look for in PATH, the best first
}

// The wrappers.
var (
	C = Language{
		Name: "impicc", What: "C", Header: "mpi.h", Linked: []string{"-lmpi_abi"}, Example: "prog.c",
		Variables: []string{"IMPI_CC", "CC"},
		Options:   []string{"-cc="}, Compilers: []string{"cc", "gcc", "clang"},
	}
	CXX = Language{
		Name: "impicxx", What: "C++", Header: "mpi.h", Linked: []string{"-lmpi_abi"}, Example: "prog.cc",
		Variables: []string{"IMPI_CXX", "CXX"},
		Options:   []string{"-cxx=", "-CC="}, Compilers: []string{"c++", "g++", "clang++"},
	}
	Fortran = Language{
		Name: "impifort", What: "Fortran", Header: "mpif.h", Linked: []string{"-limpi_fortran", "-lmpi_abi"}, Example: "prog.f90",
		Variables: []string{"IMPI_FC", "FC"},
		Options:   []string{"-fc="}, Compilers: []string{"gfortran"},
	}
)

// Main does a wrapper's work: the process becomes the compiler, or prints what
// was asked for. It returns the exit status.
func Main(lang Language) int {
	self, err := os.Executable()
	if err != nil {
		return fail(os.Stderr, lang, err)
	}
	r := parse(lang, os.Args[1:])
	switch {
	case cmdline.WantsInstall(r.args):
		if err := (&cmdline.Command{Name: lang.Name, Help: help(lang)}).Install(r.args); err != nil {
			return fail(os.Stderr, lang, err)
		}
		return 0
	case r.help:
		fmt.Fprint(os.Stdout, help(lang))
		return 0
	case r.version:
		compilerVersion(lang, r, self)
		fmt.Fprintln(os.Stdout, lang.Name, version.String())
		return 0
	}
	c, err := newCommand(lang, r, self, os.Getenv)
	if err != nil {
		return fail(os.Stderr, lang, err)
	}
	if r.show != "" {
		text, err := c.show(r.show)
		if err != nil {
			return fail(os.Stderr, lang, err)
		}
		fmt.Fprintln(os.Stdout, text)
		return 0
	}
	path, err := c.program()
	if err != nil {
		return fail(os.Stderr, lang, err)
	}
	return fail(os.Stderr, lang, fmt.Errorf("%s: %w", path, syscall.Exec(path, c.words(), os.Environ())))
}

// compilerVersion has the compiler say what it is, if there is one: build systems use --version to
// find out what they compile with.
func compilerVersion(lang Language, r request, self string) {
	words, err := findCompiler(lang, r.compiler, self, os.Getenv)
	if err != nil {
		return
	}
	c := exec.Command(words[0], append(words[1:], "--version")...)
	c.Stdout, c.Stderr = os.Stdout, os.Stderr
	_ = c.Run() // our own text follows in any case
}

func fail(w io.Writer, lang Language, err error) int {
	fmt.Fprintf(w, "%s: %v\n", lang.Name, err)
	return 1
}

type request struct {
	help     bool
	version  bool
	show     string // what to print; empty: compile
	compiler string // given by an option
	noPath   bool   // do not put the library's path into the program
	args     []string
}

// shows are the options that print something. Users know both families, and CMake asks with each of
// them.
var shows = map[string]string{
	"-show": "all", "-showme": "all", "-showme:command": "command",
	"-showme:compile": "compile", "-showme:link": "link",
	"-showme:incdirs": "incdirs", "-showme:libdirs": "libdirs", "-showme:libs": "libs",
	"-compile_info": "compile command", "-compile-info": "compile command",
	"-link_info": "link command", "-link-info": "link command",
}

func parse(lang Language, args []string) request {
	var r request
	for _, a := range args {
		what, shown := shows[strings.Replace(a, "--show", "-show", 1)]
		compiler, named := cutAny(a, lang.Options)
		switch {
		case shown:
			r.show = what
		case named:
			r.compiler = compiler
		case a == "-norpath":
			r.noPath = true
		case a == "-help" || a == "--help" || a == "-showme:help":
			r.help = true
		case a == "-showme:version":
			r.version = true
		default:
			r.args = append(r.args, a)
		}
	}
	r.word()
	return r
}

// word takes a single word that is no file for a request for help or the version.
func (r *request) word() {
	if len(r.args) != 1 {
		return
	}
	if _, err := os.Stat(r.args[0]); err != nil {
		r.help = r.help || cmdline.WantsHelp(r.args)
		r.version = r.version || cmdline.WantsVersion(r.args)
	}
}

func cutAny(s string, prefixes []string) (rest string, ok bool) {
	for _, p := range prefixes {
		if rest, ok = strings.CutPrefix(s, p); ok {
			return rest, true
		}
	}
	return "", false
}

func help(lang Language) string {
	return strings.NewReplacer("NAME", lang.Name, "WHAT", lang.What, "OPTION", lang.Options[0], "prog.c", lang.Example, "part.c", strings.Replace(lang.Example, "prog", "part", 1),
		"FIRST", lang.Variables[0], "SECOND", lang.Variables[1]).Replace(`NAME compiles and links WHAT programs that use MPI.

Usage: NAME [options] [the compiler's options and files]

Examples:
  NAME -O2 -o prog prog.c             then: impiexec -n 4 ./prog
  NAME -c part.c
  NAME -show -o prog prog.c           print the command, run nothing

Options of its own; all others are for the compiler:
  -show, -showme          print the whole command
  -showme:compile         print what is added to compile; also :link, :incdirs,
                          :libdirs, :libs and :command
  -compile_info           print the command that compiles; -link_info: that links
  OPTIONPROG               use this compiler
  -norpath                do not write the library's folder into the program
  -h, -help, --help       print this
  -version, --version     print the compiler's version and that of NAME

The compiler is that of OPTION, else of FIRST or SECOND in the environment, else
the system's. The library is looked for beside the folder of NAME itself. Programs
remember its folder (RUNPATH); LD_LIBRARY_PATH is looked at before that.
`)
}
