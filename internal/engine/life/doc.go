// Package life begins and ends a proc: Init, Finalize, and ranks of simulators.
package life
