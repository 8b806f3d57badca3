package wrapper

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// Reasons that only Fortran has.
var (
	errNoCache  = errors.New("there is no folder for the module mpi: set XDG_CACHE_HOME or HOME")
	errNoModule = errors.New("the compiler does not take the module mpi; gfortran is needed")
)

// moduleSources are the modules mpi and mpi_f08, in the folder of the headers. Compilers write
// modules in formats of their own, so the wrapper has each of them compile them once. They have no
// code. A compiler that does not take the second one has the first.
var moduleSources = []string{"mpi.F90", "mpi_f08.F90"}

// eight reports whether the arguments make INTEGER 8 bytes long: -fdefault-integer-8 is gfortran's
// and flang's option, -i8 that of ifx.
func eight(args []string) bool {
	return slices.Contains(args, "-fdefault-integer-8") || slices.Contains(args, "-i8")
}

// modes are ways to have the modules compiled into a folder, MODULES: those of gfortran 10 and
// later, of others that know its options, and of ifx.
var modes = [][]string{
	{mismatch, "-fsyntax-only", "-w", "-JMODULES"},
	{"-fsyntax-only", "-w", "-JMODULES"},
	{"-c", "-o", os.DevNull, "-module", "MODULES"},
}

// mismatch makes gfortran 10 and later take buffers of any type; earlier ones do so
// anyway, and do not know it.
const mismatch = "-fallow-argument-mismatch"

// flagsFile is the name of a file beside mpi.mod, with what the compiler is given in addition to
// its folder.
const flagsFile = "flags"

// module returns the flags with which a compiler finds the modules in the user's cache.
// They are compiled if the compiler or their sources are not those of an earlier time. The
// arguments are those of the program.
func module(compiler, args []string, includeDir string, getenv func(string) string) ([]string, error) {
	cache := getenv("XDG_CACHE_HOME")
	if home := getenv("HOME"); cache == "" && home != "" {
		cache = filepath.Join(home, ".cache")
	}
	if !filepath.IsAbs(cache) {
		return nil, errNoCache
	}
	if eight(args) {
		compiler = append(slices.Clone(compiler), args[slices.IndexFunc(args, func(a string) bool { return eight([]string{a}) })])
	}
	key, err := moduleKey(compiler, includeDir)
	if err != nil {
		return nil, err
	}
	cache = filepath.Join(cache, "impi")
	dir := filepath.Join(cache, "module-"+key)
	flags, err := os.ReadFile(filepath.Join(dir, flagsFile))
	if errors.Is(err, os.ErrNotExist) {
		flags, err = makeModule(compiler, includeDir, cache, dir)
	}
	if err != nil {
		return nil, fmt.Errorf("the module mpi: %w", err)
	}
	return append([]string{"-I" + dir}, strings.Fields(string(flags))...), nil
}

// moduleKey returns the same key for the same compiler and header.
func moduleKey(compiler []string, includeDir string) (string, error) {
	path, err := exec.LookPath(compiler[0])
	if err != nil {
		return "", fmt.Errorf("%w: %w", errNoCompiler, err)
	}
	info, err := os.Stat(path)
	if err != nil {
		return "", fmt.Errorf("the compiler: %w", err)
	}
	var all []byte
	for _, name := range append([]string{Fortran.Header}, moduleSources...) {
		text, err := os.ReadFile(filepath.Join(includeDir, name))
		if err != nil {
			return "", fmt.Errorf("%w: %w", errNoHeader, err)
		}
		all = append(all, text...)
	}
	sum := sha256.Sum256(fmt.Appendf(nil, "%q %q %d %d\n%s", compiler, path, info.Size(), info.ModTime().UnixNano(), all))
	return fmt.Sprintf("%x", sum[:8]), nil
}

// makeModule fills a folder of its own and renames it, so that another wrapper at the
// same time sees all of it or nothing.
func makeModule(compiler []string, includeDir, cache, dir string) (flags []byte, err error) {
	if err := os.MkdirAll(cache, 0o700); err != nil {
		return nil, err
	}
	temp, err := os.MkdirTemp(cache, "new-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(temp) // nothing is there after the renaming
	var out []byte
	for _, mode := range modes {
		flag := ""
		if mode[0] == mismatch {
			flag = mismatch
		}
		if out, err = compileModules(compiler, mode, includeDir, temp); err != nil {
			continue
		}
		if err := os.WriteFile(filepath.Join(temp, flagsFile), []byte(flag), 0o600); err != nil {
			return nil, err
		}
		if err := os.Rename(temp, dir); err != nil && !errors.Is(err, os.ErrExist) {
			return nil, err
		}
		return []byte(flag), nil
	}
	return nil, fmt.Errorf("%w: %w\n%s", errNoModule, err, out)
}

// compileModules compiles the modules in one of modes. The error is about the first module.
func compileModules(compiler, mode []string, includeDir, dir string) (out []byte, err error) {
	for i, name := range moduleSources {
		words := slices.Concat(compiler, mode, []string{"-I" + includeDir, "-I" + dir, filepath.Join(includeDir, name)})
		if eight(compiler) {
			words = append(words, "-DIMPI_INTEGER8")
		}
		for i := range words {
			words[i] = strings.Replace(words[i], "MODULES", dir, 1)
		}
		text, fault := exec.Command(words[0], words[1:]...).CombinedOutput()
		if i == 0 && fault != nil {
			return text, fault
		}
	}
	return nil, nil
}
