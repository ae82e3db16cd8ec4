// Package pages proves that the tables and plots in README and docs are those that the
// benchmarks measured and the stores draw, that README's code compiles, and that links
// lead somewhere.
package pages
