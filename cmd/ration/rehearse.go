package main

import (
	"context"
	"crypto/rand"
	"errors"
	"strings"
	"time"

	"github.com/ration-go/ration"
	"github.com/ration-go/ration/internal/redisstore"
	"github.com/ration-go/ration/limit"
	"github.com/ration-go/ration/store"
)

// rehearse does all that a worker does with a store, with a budget of that name. Every script runs once, and a message goes from the one to the other.
func rehearse(ctx context.Context, kept *ration.RedisStore, budget string) error {
	accounts, err := store.NewAccounts(store.Account{ID: "trial", Limits: []limit.Limit{
		limit.PerHour(100), {Max: 100, Window: time.Hour, Algorithm: limit.FixedWindow, FirstUse: true}, limit.PerHour(100).Using(limit.GCRA),
	}})
	if err != nil {
		return err
	}
	account := accounts.At(0)
	heard := make(chan struct{}, 1)
	stop := kept.Watch(budget, func(news store.News) {
		if news.Account != "" {
			return // it says that slots are free, and here only pauses are waited for
		}
		select {
		case heard <- struct{}{}:
		default:
		}
	})
	defer stop()
	select { // that the watch has begun is heard too
	case <-heard:
	case <-time.After(2 * time.Second):
		return errors.New("nothing is heard of what changes: give the user the channels ration:v2:*, with resetchannels &ration:v2:* +subscribe +publish")
	}
	booked, err := kept.Book(ctx, store.BookRequest{ID: store.NewBookingID(), Budget: budget, Accounts: accounts, Cost: 1, MaxWait: store.Forever})
	if err != nil {
		return err
	}
	steps := []func() error{
		func() error {
			_, err := kept.Hold(ctx, store.HoldRequest{Budget: budget, Holder: store.NewBookingID(), Bookings: []store.Booking{booked}})
			return err
		},
		func() error { return kept.Cancel(ctx, store.CancelRequest{Booking: booked}) },
		func() error {
			return kept.Record(ctx, store.RecordRequest{ID: store.NewBookingID(), Budget: budget, Account: account, Spent: []store.Spending{{Slot: booked.Now, Cost: 1}}})
		},
		func() error {
			_, err := kept.Reconcile(ctx, store.ReconcileRequest{Budget: budget, Account: account, Slot: booked.Now, Counted: []int{2, 2, 2}})
			return err
		},
		func() error {
			return kept.Reset(ctx, store.ResetRequest{Budget: budget, Account: account, At: booked.Now.Add(time.Minute)})
		},
		func() error {
			_, err := kept.Usage(ctx, store.UsageRequest{Budget: budget, Accounts: accounts})
			return err
		},
		func() error {
			_, err := kept.Pause(ctx, store.PauseRequest{Budget: budget, Account: account.ID, For: time.Minute, Cause: "ration doctor"})
			return err
		},
		func() error {
			_, err := kept.Quarantine(ctx, store.QuarantineRequest{Budget: budget, Token: "trial", Reason: "trial", For: time.Minute})
			return err
		},
		func() error {
			_, err := kept.Status(ctx, store.StatusRequest{Budget: budget, Worker: "doctor"})
			return err
		},
	}
	for _, step := range steps {
		if err := step(); err != nil {
			return err
		}
	}
	select {
	case <-heard:
	case <-time.After(2 * time.Second):
		return errors.New("a pause was not heard of within 2 s: give the user the channels ration:v2:*, with &ration:v2:* and +publish")
	}
	_, err = kept.Resume(ctx, store.ResumeRequest{Budget: budget, Account: account.ID, Forget: true})
	return err
}

// trial does all that a worker does, with a budget of its own, which it removes. What it may not
// remove expires within a day.
func (p *patient) trial(ctx context.Context) {
	budget := "doctor-" + strings.ToLower(rand.Text())
	defer func() {
		ctx, stop := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
		defer stop()
		redisstore.Remove(ctx, p.client, budget)
	}()
	if err := rehearse(ctx, p.kept, budget); err != nil {
		change := "The error says what to change."
		if failed, is := errors.AsType[*ration.StoreError](err); is && errors.Is(failed.Err, context.DeadlineExceeded) {
			change = "It did not answer in time."
		}
		p.add("trial", "wrong", err.Error(), change)
		return
	}
	p.add("trial", "ok", "a budget was booked, cancelled, recorded, paused, resumed and forgotten", "")
}
