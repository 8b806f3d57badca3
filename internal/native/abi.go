package native

import (
	"debug/elf"
	"fmt"
	"regexp"
	"strconv"
)

var abiOf = regexp.MustCompile(`(?m)^#define IMPI_NATIVE_ABI (\d+)$`)

// ABI returns the version of the functions that a shim has to have.
func ABI() uint32 {
	n, _ := strconv.ParseUint(string(abiOf.FindSubmatch(shimHeader)[1]), 10, 32) // a test has it
	return uint32(n)
}

// ShimABI returns the version of the functions of a shim, which is read and not loaded: the MPI that
// it is for need not be there.
func ShimABI(path string) (uint32, error) {
	f, err := elf.Open(path)
	if err != nil {
		return 0, err
	}
	defer func() { _ = f.Close() }()
	symbols, err := f.DynamicSymbols()
	if err != nil {
		return 0, err
	}
	for _, s := range symbols {
		if s.Name != shimProduct.symbol || int(s.Section) >= len(f.Sections) || s.Section == elf.SHN_UNDEF {
			continue
		}
		in := f.Sections[s.Section]
		var b [4]byte
		if _, err := in.ReadAt(b[:], int64(s.Value-in.Addr)); err != nil {
			return 0, err
		}
		return f.ByteOrder.Uint32(b[:]), nil
	}
	return 0, fmt.Errorf("there is no %s in it", shimProduct.symbol)
}
