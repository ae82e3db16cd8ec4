// Package outages proves what a fleet does while its store is down, slow or cut off from
// some workers, and after Redis has lost its logs or its clock has stepped.
package outages
