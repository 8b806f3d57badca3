package stripe

import (
	"fmt"
	"strconv"
	"strings"
)

// mark precedes, in an address, the number of connections that a link may have.
const mark = "/"

// Address adds the maximum number of connections of a link to the address of a listener.
func Address(at string, count int) string {
	if count == 1 {
		return at
	}
	return at + mark + strconv.Itoa(count)
}

// ParseAddress splits an address that Address returned. An address without a number is for one
// connection.
func ParseAddress(text string) (at string, count int, err error) {
	at, number, several := strings.Cut(text, mark)
	if !several {
		return at, 1, nil
	}
	count, err = strconv.Atoi(number)
	if err != nil || count < 2 || count > MaxConnections {
		return "", 0, fmt.Errorf("behind %q it should have a number of connections, from 2 to %d", mark, MaxConnections)
	}
	return at, count, nil
}
