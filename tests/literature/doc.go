// Package literature replays the worked examples of articles and papers on rate limiting,
// and demands the numbers that they print.
package literature
