package main

import (
	"os"
	"os/signal"
	"syscall"
)

// passedOn returns the signals that are passed on to the procs, whose programs decide what
// they mean. Signals that are not read before stop are dropped.
func passedOn() (signals <-chan syscall.Signal, stop func()) {
	c, out, quit := make(chan os.Signal, 16), make(chan syscall.Signal), make(chan struct{})
	signal.Notify(c, syscall.SIGUSR1, syscall.SIGUSR2)
	go func() {
		for {
			select {
			case s := <-c:
				select {
				case out <- s.(syscall.Signal):
				case <-quit:
					return
				}
			case <-quit:
				return
			}
		}
	}()
	return out, func() {
		signal.Stop(c)
		close(quit)
	}
}

// passOn passes each signal to f until stop is called.
func passOn(signals <-chan syscall.Signal, f func(syscall.Signal)) (stop func()) {
	quit := make(chan struct{})
	go func() {
		for {
			select {
			case s := <-signals:
				f(s)
			case <-quit:
				return
			}
		}
	}()
	return func() { close(quit) }
}
