package redisstore

import (
	"fmt"
	"slices"
	"strconv"

	"github.com/ration-go/ration/store"
)

// A pool's accounts have an index in Redis, which a script makes that finds none: of all accounts, or of those that the
// pool had before. A pool of 10,000 that loses a token sends a kilobyte in place of one for each 20 accounts.

// mostChanges is how many accounts at most may have come and gone for an index to be made from the one before.
const mostChanges = 100

// indexes are the accounts of which this process has used an index last.
type indexes map[indexKey]*store.Accounts

// An indexKey is what indexes that are made from each other have in common.
type indexKey struct {
	budget, queue string
	units         int
}

// indexName names the index of accounts for so many units: see lua/book.lua.
func indexName(a *store.Accounts, units int) string { return fmt.Sprintf("%s*%d", a.Digest(), units) }

// changes returns the arguments that make the index of a key from the one before; nil: it must be made of all accounts.
func (x *indexes) changes(key batchKey) []any {
	a := key.accounts
	if a.Len() == 1 {
		return nil
	}
	of := indexKey{key.budget, a.Queue(key.scopes, key.reserve), key.units}
	before := (*x)[of]
	if *x == nil || len(*x) > mostChanges { // of budgets and queues that come and go
		*x = make(indexes)
	}
	(*x)[of] = a
	if before == nil || before == a || !slices.EqualFunc(before.LimitSets(), a.LimitSets(), func(o, p store.LimitSet) bool { return o.Name == p.Name }) {
		return nil
	}
	args := []any{"copy " + strconv.Itoa(a.Len()), indexName(before, key.units)}
	i, j := 0, 0
	for i < before.Len() || j < a.Len() {
		switch {
		case i < before.Len() && j < a.Len() && before.At(i).ID == a.At(j).ID:
			if before.SetOf(i) != a.SetOf(j) {
				args = append(args, "-"+memberOf(before, i), "+"+memberOf(a, j))
			}
			i, j = i+1, j+1
		case j == a.Len() || i < before.Len() && before.At(i).ID < a.At(j).ID:
			args = append(args, "-"+memberOf(before, i))
			i++
		default:
			args = append(args, "+"+memberOf(a, j))
			j++
		}
		if len(args) > mostChanges {
			return nil
		}
	}
	return args
}
