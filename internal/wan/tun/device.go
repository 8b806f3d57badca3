package tun

import (
	"fmt"
	"net/netip"
	"os/exec"
	"strings"

	"golang.org/x/sys/unix"
)

// Clone is the path of the device file that creates TUN devices.
const Clone = "/dev/net/tun"

// Port is a TUN device that is to be made: the end of the wide area in a site.
type Port struct {
	Namespace string       // network namespace, as ip netns names it
	Device    string       // device name in this namespace, where the device is made; must be free
	Name      string       // device name in Namespace
	Address   netip.Prefix // address of the site, in the network that all ports share; IPv4
}

// Remedy is the instruction for users where there are no TUN devices.
const Remedy = "run as root, or have " + Clone + " writable, on a kernel with TUN (modprobe tun)"

// Usable returns the reason why TUN devices cannot be made, or nil if they can be tried.
func Usable() error {
	fd, err := unix.Open(Clone, unix.O_RDWR|unix.O_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("%s cannot be opened: %w", Clone, err)
	}
	return unix.Close(fd)
}

// open makes the device here, moves it to its namespace and sets it up. It is gone when the file is
// closed.
func (p Port) open(mtu int) (fd int, err error) {
	fd, err = unix.Open(Clone, unix.O_RDWR|unix.O_CLOEXEC|unix.O_NONBLOCK, 0)
	if err != nil {
		return -1, fmt.Errorf("open %s: %w: %s", Clone, err, Remedy)
	}
	defer func() {
		if err != nil {
			_ = unix.Close(fd)
		}
	}()
	request, err := unix.NewIfreq(p.Device)
	if err != nil {
		return -1, fmt.Errorf("a device of the name %q: %w", p.Device, err)
	}
	request.SetUint16(unix.IFF_TUN | unix.IFF_NO_PI | unix.IFF_TUN_EXCL | unix.IFF_VNET_HDR)
	if err := unix.IoctlIfreq(fd, unix.TUNSETIFF, request); err != nil {
		return -1, fmt.Errorf("make the device %s: %w: is it there already, or are the rights missing (CAP_NET_ADMIN)?", p.Device, err)
	}
	if unix.IoctlSetInt(fd, unix.TUNSETOFFLOAD, offloadsUDP) != nil {
		if err := unix.IoctlSetInt(fd, unix.TUNSETOFFLOAD, offloads); err != nil {
			return -1, fmt.Errorf("packets that are not cut of %s: %w: it takes Linux 3.8", p.Device, err)
		}
	}
	for _, args := range [][]string{
		{"link", "set", p.Device, "netns", p.Namespace, "name", p.Name},
		{"-n", p.Namespace, "address", "add", p.Address.String(), "dev", p.Name},
		{"-n", p.Namespace, "link", "set", p.Name, "mtu", fmt.Sprint(mtu), "txqueuelen", fmt.Sprint(waiting), "up"},
	} {
		if out, err := exec.Command("ip", args...).CombinedOutput(); err != nil {
			return -1, fmt.Errorf("ip %s: %w: %s", strings.Join(args, " "), err, strings.TrimSpace(string(out)))
		}
	}
	return fd, nil
}

// waiting is how many IP packets the kernel keeps until the network reads them. It must be enough
// for the time that other processes have the core: the queue that matters is that of the line.
const waiting = 10000
