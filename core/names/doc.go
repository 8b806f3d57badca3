// Package names decides about the names under which jobs publish ports (docs/dynamic.md): who may
// publish and unpublish what (Table), when a node connects, what it publishes again then and which
// request it makes again (Client), and at which server a name is kept (DefaultScope). Package
// internal/names has the server and the clients.
//
// A name belongs to the job that published it. It ends with the connection on which it was
// published, and so with the job, however the job ends.
package names
