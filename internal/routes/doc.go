// Package routes decides which links a site may have to others: by which transports and data
// planes, encrypted or not, resumed or not, and in which representation, as the routes of the
// job file and the business cards of the other sites say.
package routes
