//go:build cgo && !386 && !arm

package main

import "C"

import "github.com/openimpi/impi/core/mpi"

const maxPortName = 1024

//export abiOpenPort
func abiOpenPort(info, name uintptr) int32 {
	return on("Open_port", 0, func() error {
		i, err := infoOf(info)
		if err != nil {
			return err
		}
		port, err := mpi.OpenPort(i)
		if err != nil {
			return err
		}
		_, err = putText("port_name", name, maxPortName, port)
		return err
	})
}

//export abiClosePort
func abiClosePort(name uintptr) int32 {
	return on("Close_port", 0, func() error {
		port, err := text("port_name", name, maxPortName)
		if err != nil {
			return err
		}
		return mpi.ClosePort(port)
	})
}

// meet makes an intercommunicator by a port, which matters at the root.
func meet(fn string, name, info uintptr, root int32, c, out uintptr, f func(c *commObject, port string, i *mpi.Info) (*mpi.Comm, error)) int32 {
	return construct(fn, c, out, func(c *commObject) (*mpi.Comm, error) {
		if int(root) != c.Rank() {
			return f(c, "", nil)
		}
		port, err := text("port_name", name, maxPortName)
		if err != nil {
			return nil, err
		}
		i, err := infoOf(info)
		if err != nil {
			return nil, err
		}
		return f(c, port, i)
	})
}

//export abiCommAccept
func abiCommAccept(name, info uintptr, root int32, c, out uintptr) int32 {
	return meet("Comm_accept", name, info, root, c, out, func(c *commObject, port string, i *mpi.Info) (*mpi.Comm, error) {
		return c.Accept(port, i, int(root))
	})
}

//export abiCommConnect
func abiCommConnect(name, info uintptr, root int32, c, out uintptr) int32 {
	return meet("Comm_connect", name, info, root, c, out, func(c *commObject, port string, i *mpi.Info) (*mpi.Comm, error) {
		return c.Connect(port, i, int(root))
	})
}

// naming is a call about a service's name.
func naming(fn string, service, info uintptr, f func(name string, i *mpi.Info) error) int32 {
	return on(fn, 0, func() error {
		name, err := text("service_name", service, 1<<16)
		if err != nil {
			return err
		}
		i, err := infoOf(info)
		if err != nil {
			return err
		}
		return f(name, i)
	})
}

//export abiPublishName
func abiPublishName(service, info, name uintptr) int32 {
	return naming("Publish_name", service, info, func(s string, i *mpi.Info) error {
		port, err := text("port_name", name, maxPortName)
		if err != nil {
			return err
		}
		return mpi.PublishName(s, i, port)
	})
}

//export abiUnpublishName
func abiUnpublishName(service, info, name uintptr) int32 {
	return naming("Unpublish_name", service, info, func(s string, i *mpi.Info) error {
		port, err := text("port_name", name, maxPortName)
		if err != nil {
			return err
		}
		return mpi.UnpublishName(s, i, port)
	})
}

//export abiLookupName
func abiLookupName(service, info, name uintptr) int32 {
	return naming("Lookup_name", service, info, func(s string, i *mpi.Info) error {
		port, err := mpi.LookupName(s, i)
		if err != nil {
			return err
		}
		_, err = putText("port_name", name, maxPortName, port)
		return err
	})
}
