// Package spelling finds the known word that a misspelled one may mean.
package spelling

// longest is the longest word, in bytes, that is compared: a longer one is no slip of the hand.
const longest = 64

// Distance returns how many letters of a, which somebody has written, are to be changed, added or left out to have b. Of an a
// that is longer than 64 bytes it returns the length.
func Distance(a, b string) int {
	if len(a) > longest {
		return len(a)
	}
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		before := row[0]
		row[0] = i + 1
		for j := range len(b) {
			changed := before
			if a[i] != b[j] {
				changed++
			}
			before = row[j+1]
			row[j+1] = min(changed, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}
