package mpiexec

import (
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
)

// hidden has the flags of impi-node whose values are passed in its environment, and the variables
// for them. All users can see a command line, but should not see values of -x; and a word of it is
// at most 128 KiB long, which is too short for a list of some thousand machines. @NAME means what
// the variables NAME, NAME_1, NAME_2, ... have together.
var hidden = map[string]string{"-programs": "IMPI_PROGRAMS", "-on": "IMPI_MACHINES"}

// maxVariable is the most bytes of a value in one variable: the system takes 128 KiB with its name.
const maxVariable = 96 << 10

// FlagsToEnviron moves the values of flags that may be long or secret from a command line of
// impi-node into variables of its environment.
func FlagsToEnviron(args []string) (words, environ []string) {
	words = slices.Clone(args)
	for i := 0; i+1 < len(words) && words[i] != "--"; i++ {
		name, value := hidden[words[i]], words[i+1]
		if name == "" || value == "" {
			continue
		}
		i++
		words[i] = "@" + name
		for k := 0; len(value) > 0; k++ {
			part := value[:min(maxVariable, len(value))]
			value = value[len(part):]
			environ = append(environ, nth(name, k)+"="+part)
		}
	}
	return words, environ
}

func nth(name string, k int) string {
	if k == 0 {
		return name
	}
	return name + "_" + strconv.Itoa(k)
}

// FlagFromEnviron returns the value of a flag that FlagsToEnviron has moved, or value if it has
// not. It removes the variable from the environment, which procs inherit.
func FlagFromEnviron(value string) (string, error) {
	name, moved := strings.CutPrefix(value, "@")
	if !moved {
		return value, nil
	}
	var b strings.Builder
	for k := 0; ; k++ {
		part, found := os.LookupEnv(nth(name, k))
		if !found {
			break
		}
		b.WriteString(part)
		if err := os.Unsetenv(nth(name, k)); err != nil {
			return "", err
		}
	}
	if b.Len() == 0 {
		return "", fmt.Errorf("there is no variable %s in the environment", name)
	}
	return b.String(), nil
}
