// Package smoke is a short fleet of four processes on a real Redis: what make test looks at of a fleet.
package smoke
