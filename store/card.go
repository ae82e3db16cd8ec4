package store

import (
	"cmp"
	"errors"
	"fmt"
	"time"

	"github.com/ration-go/ration/limit"
)

// An Edition tells which of an account's limits are in force: those of the latest edition that any request has named,
// or a card has.
type Edition struct {
	// Revision is the number of the configuration that the limits are of, or that their card was made over: an operator
	// raises it. It is from 0 to 2^52, and counts before Version.
	Revision int
	// Version is that of the [Card] with the limits, of the account or of the budget. Zero: they are the configuration's own.
	Version int64
}

// Compare returns -1, 0 or 1: whether the edition is earlier than the other, the same, or later.
func (e Edition) Compare(o Edition) int {
	return cmp.Or(cmp.Compare(e.Revision, o.Revision), cmp.Compare(e.Version, o.Version))
}

func (e Edition) validate(of string) error {
	switch {
	case e.Revision < 0 || int64(e.Revision) > 1<<52:
		return fmt.Errorf("ration: %s.Revision is %d: it must be from 0 to 2^52", of, e.Revision)
	case e.Version < 0 || e.Version > 1<<52:
		return fmt.Errorf("ration: %s.Version is %d: it must be from 0 to 2^52", of, e.Version)
	}
	return nil
}

// A Card is what the fleet has agreed on of the limits of an account or, for accounts without limits of their own, of the
// whole budget. A store keeps one of each, and decides which of two changes is made. The zero Card is none.
type Card struct {
	// Edition has the version that the store gave the card: later ones have higher versions, also after the store
	// has lost its data, since it counts on from what callers know. An account without a card has the edition that it was
	// booked with: a Version of zero, or that of the budget's card.
	Edition
	// Limits are in force. They must not be changed.
	Limits []limit.Limit
	// Why is at most [MaxWhy] bytes, which mean nothing to a store: who gave the limits, and what callers need to know
	// to change them. Empty: nobody said.
	Why string
}

// Since returns when the card was made, or the budget's whose limits it has, on the store's clock, to within the number of
// changes in that microsecond. The zero time: it is none, or the configuration's.
func (c *Card) Since() time.Time {
	if c.Version == 0 {
		return time.Time{}
	}
	return time.UnixMicro(c.Version)
}

// MaxWhy is how many bytes a Card's Why may have.
const MaxWhy = 16_384

// A CardRequest asks for a card, or changes it.
type CardRequest struct {
	// Budget is the budget's name.
	Budget string
	// Account is the account's ID. Empty: the card is the budget's, of accounts without limits of their own.
	Account string
	// Known is the latest edition that the caller has seen of the card, or of the limits that it wants to replace: if a later
	// one is in force, nothing is changed. The new card has its Revision; the budget's the highest one that limits were booked
	// with, if that is higher.
	Known Edition
	// KnownCard is the Version of the budget's card that the caller knows, as in a [BookRequest]: if the budget has another,
	// an account's card is not changed, and the reply is Behind. Of the budget's own card it counts for nothing.
	KnownCard int64
	// Limits are those of the new card: an account's without a Unit and Per, since each of its meters has a card of its own. Nil:
	// the card is only asked for.
	Limits []limit.Limit
	// Why is that of the new card.
	Why string
	// Now stands for the store's clock. Zero: the store's clock.
	Now time.Time
}

// Validate returns why the request is malformed, or nil.
func (r CardRequest) Validate() error {
	switch {
	case r.Account != "" && !ValidAccountID(r.Account):
		return accountIDError(r.Account)
	case len(r.Why) > MaxWhy:
		return fmt.Errorf("ration: CardRequest.Why has %d bytes: it must have at most %d", len(r.Why), MaxWhy)
	case r.Limits == nil && r.Why != "":
		return errors.New("ration: CardRequest.Why needs Limits")
	}
	if err := r.Known.validate("CardRequest.Known"); err != nil {
		return err
	}
	if err := (Edition{Version: r.KnownCard}).validate("CardRequest.KnownCard"); err != nil {
		return err
	}
	if r.Limits != nil {
		if err := limit.Validate(r.Limits); err != nil {
			return fmt.Errorf("ration: CardRequest: %w", err)
		}
		if _, others := limit.Split(r.Limits); r.Account != "" && others != nil {
			return fmt.Errorf("ration: CardRequest: account %s: limit %v: what counts a unit, or each value of a key, has a card of its own", r.Account, others[0])
		}
	}
	if err := ValidateBudgetName(r.Budget); err != nil {
		return err
	}
	return validateNow(r.Now)
}

// A CardReply answers a CardRequest.
type CardReply struct {
	// Card is kept now. Zero: there is none.
	Card Card
	// Changed tells that it is the request's.
	Changed bool
	// Behind tells that it is not because the budget's card is not of the version KnownCard.
	Behind bool
}
