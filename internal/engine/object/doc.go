// Package object has the parts of MPI's objects that do not communicate: attributes of
// communicators and datatypes, constructors of datatypes, and MPI_INFO_ENV.
package object
