package links

import (
	"errors"
	"os"
	"os/user"
	"strconv"
)

// UserID returns the number of a user. Only root may ask about another user.
func UserID(name string) (int, error) {
	if os.Geteuid() != 0 {
		return 0, errors.New("-user is for root: a node answers only its own user and root")
	}
	if n, err := strconv.Atoi(name); err == nil {
		return n, nil
	}
	u, err := user.Lookup(name)
	if err != nil {
		return 0, err
	}
	return strconv.Atoi(u.Uid)
}
