// Package external is a store that was written against packages limit, store and storetest
// alone, as any other author of a store would write one. It shows what the contract
// demands, in as few lines as possible: one mutex, and for each account the list of its
// bookings, from which every question is answered by walking it.
//
// It exists for the test that it passes, so all of it stands in test files: begin with
// store_test.go and book_test.go.
package external
