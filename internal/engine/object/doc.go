// Package object has what MPI's objects have beside communication: attributes of communicators and
// datatypes, the predefined ones, constructors of datatypes, and the info object of the environment.
package object
