// Package cards proves which limits are in force when workers differ in what they know: in the algorithm and the zone of
// their configuration, in the cards that they have heard of and in the accounts that they have used; and that of two who change
// limits at once, in whatever order their questions reach the store, neither is lost and all agree.
package cards
