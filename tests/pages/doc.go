// Package pages proves that the pages are true: their blocks run, their links lead somewhere, what they name is
// there, settings are those of the comments, and tables and plots are those that the benchmarks measured and the
// stores draw.
package pages
