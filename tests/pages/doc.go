// Package pages proves that the tables and plots in docs are those that the benchmarks
// measured and that the stores draw.
package pages
