package main

import (
	"fmt"
	"math/rand/v2"
	"os"
)

const (
	mostPorts = 16    // ports that are tried for one listener
	firstPort = 10240 // the first port that a listener gets
)

// quietPort returns a port that the kernel gives to nobody by itself, or 0 if it may give any.
// While nobody listens at a port, as when a plugin is restarted, diallers of this machine go on
// trying; the kernel may then give one of them just this port to dial from, which connects it with
// itself, and the listener cannot come back.
func quietPort() int {
	text, err := os.ReadFile("/proc/sys/net/ipv4/ip_local_port_range")
	if err != nil {
		return 0
	}
	var from, to int
	if _, err := fmt.Sscan(string(text), &from, &to); err != nil {
		return 0
	}
	return portOutside(from, to)
}

func portOutside(from, to int) int {
	switch {
	case from-firstPort >= 1000:
		return firstPort + rand.IntN(from-firstPort)
	case 65535-to >= 1000:
		return to + 1 + rand.IntN(65535-to)
	}
	return 0
}
