package node

import (
	"slices"

	"github.com/openimpi/impi/config"
)

// appNum returns the number of a site's program among those of the job file (MPI_APPNUM). Sites
// with the same command run the same program.
func appNum(sites []config.Site, mine config.Site) int {
	var commands [][]string
	for _, s := range sites {
		command := s.Program.Command
		if s.Foreign || slices.ContainsFunc(commands, func(c []string) bool { return slices.Equal(c, command) }) {
			continue
		}
		if slices.Equal(command, mine.Program.Command) {
			break
		}
		commands = append(commands, command)
	}
	return len(commands)
}
