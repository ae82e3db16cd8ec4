// Package algorithms demands the exact slots that each algorithm grants, from both stores,
// and plays each of them against a provider that counts the same way and must never refuse.
package algorithms
