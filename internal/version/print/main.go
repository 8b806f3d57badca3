// Command print prints the release, for make package.
package main

import (
	"fmt"

	"github.com/openimpi/impi/internal/version"
)

func main() { fmt.Println(version.Release) }
