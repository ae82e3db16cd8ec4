package journal

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"slices"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/ration-go/ration/store"
)

// mostRecorded bounds how many accounts the store is asked to record at once. One after the other would take as many round trips as
// there are accounts, while all wait.
const mostRecorded = 64

// A Record is that of some spendings of a process.
type Record struct {
	// To is the store that records.
	To func(context.Context, store.RecordRequest) error
	// Budget is the name in the store.
	Budget string
	// Worker is the process's ID.
	Worker store.BookingID
	// Why tells, with When, this record from others of the process.
	Why string
	// When is when what is recorded was put together, or lost.
	When time.Time
	// Now is where the store's clock is taken to stand. Zero: where it stands.
	Now time.Time
	// Refused is called with an account that the store does not take, which keeps no other from being recorded, how many spendings
	// it lacks, and why.
	Refused func(account string, count int, err error)
}

// Do records spendings in parts that a store takes at once, many accounts at a time. The IDs of the parts are digests of their
// contents, so that a retry records nothing twice. It returns how many were recorded. An error is temporary, or the context's.
func (r *Record) Do(ctx context.Context, all []Spendings) (count int, err error) {
	var recorded atomic.Int64
	some, failed := errgroup.WithContext(ctx) // if the store does not answer for one, nobody waits for the others
	some.SetLimit(mostRecorded)
	for _, one := range all {
		some.Go(func() error {
			if failed.Err() != nil {
				return failed.Err()
			}
			n, err := r.account(ctx, one)
			recorded.Add(int64(n))
			if failed, _ := errors.AsType[*store.StoreError](err); err != nil && !failed.Temporary() && ctx.Err() == nil {
				r.Refused(one.Account.ID, len(one.List)-n, err)
				return nil
			}
			return err
		})
	}
	err = some.Wait()
	return int(recorded.Load()), err
}

// account records the spendings of one account.
func (r *Record) account(ctx context.Context, one Spendings) (count int, err error) {
	number := 0
	for part := range slices.Chunk(one.List, store.MaxSpendings) {
		err := r.To(ctx, store.RecordRequest{ID: r.part(one.Account.ID, number, part), Budget: r.Budget, Account: one.Account, Total: one.Total, Spent: part, Now: r.Now})
		if err != nil {
			return count, err
		}
		count += len(part)
		number++
	}
	return count, nil
}

// part returns the ID of a part of what is recorded of an account, by its number among the parts: those of one instant may be alike
// otherwise.
func (r *Record) part(account string, number int, part []store.Spending) store.BookingID {
	h := sha256.New()
	text := append(r.Worker[:], r.Why+"\x00"+account...)
	for _, n := range []int64{r.When.UnixMicro(), int64(number), part[0].Slot.UnixMicro(), int64(len(part))} {
		text = binary.BigEndian.AppendUint64(text, uint64(n))
	}
	// A hash never fails to be written.
	_, _ = h.Write(text)
	return store.BookingID(h.Sum(nil)[:16])
}
