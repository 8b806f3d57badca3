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

// moduleSource is the module mpi. Compilers write modules in formats of their own, so
// the wrapper has each of them compile it once.
const moduleSource = `module mpi
  implicit none
  include 'mpif.h'
end module mpi
`

// mismatch makes gfortran 10 and later take buffers of any type; earlier ones do so
// anyway, and do not know it.
const mismatch = "-fallow-argument-mismatch"

// flagsFile lies beside mpi.mod: what the compiler is given beside its folder.
const flagsFile = "flags"

// module returns the flags with which a compiler finds the module mpi in the user's cache.
// It is compiled if the compiler or mpif.h are not those of an earlier time.
func module(compiler []string, includeDir string, getenv func(string) string) ([]string, error) {
	cache := getenv("XDG_CACHE_HOME")
	if home := getenv("HOME"); cache == "" && home != "" {
		cache = filepath.Join(home, ".cache")
	}
	if !filepath.IsAbs(cache) {
		return nil, errNoCache
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

// moduleKey is the same for the same compiler and header.
func moduleKey(compiler []string, includeDir string) (string, error) {
	path, err := exec.LookPath(compiler[0])
	if err != nil {
		return "", fmt.Errorf("%w: %w", errNoCompiler, err)
	}
	info, err := os.Stat(path)
	if err != nil {
		return "", fmt.Errorf("the compiler: %w", err)
	}
	text, err := os.ReadFile(filepath.Join(includeDir, Fortran.Header))
	if err != nil {
		return "", fmt.Errorf("%w: %w", errNoHeader, err)
	}
	sum := sha256.Sum256(fmt.Appendf(nil, "%q %q %d %d\n%s%s", compiler, path, info.Size(), info.ModTime().UnixNano(), moduleSource, text))
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
	source := filepath.Join(temp, "mpi.f90")
	if err := os.WriteFile(source, []byte(moduleSource), 0o600); err != nil {
		return nil, err
	}
	var out []byte
	for _, flag := range []string{mismatch, ""} {
		words := slices.Concat(compiler, strings.Fields(flag), []string{"-fsyntax-only", "-J" + temp, "-I" + includeDir, source})
		if out, err = exec.Command(words[0], words[1:]...).CombinedOutput(); err != nil {
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
