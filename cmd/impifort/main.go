// Command impifort compiles and links Fortran programs that use MPI. See
// docs/c-programs.md.
package main

import (
	"os"

	"github.com/openimpi/impi/internal/wrapper"
)

func main() { os.Exit(wrapper.Main(wrapper.Fortran)) }
