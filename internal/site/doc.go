// Package site opens what a site offers to the others: its transports with their plugins, and
// on each of its hosts the listeners where channels and direct links arrive.
package site
