// Package slowlog proves that no script keeps Redis for long, whatever an account holds: its
// neighbours in the same Redis wait as long.
package slowlog
