package store

import "fmt"

// A Note is what workers know of why an account's limits are in force: what the provider has announced, or
// by how much they are lowered, so that another worker can go on when the one that knows has ended.
type Note struct {
	// Revision is that of the limits that the note is about.
	Revision int
	// Text is at most [MaxNote] bytes, which mean nothing to a store. Empty: none is kept.
	Text string
}

// MaxNote is how many bytes a Note's Text may have.
const MaxNote = 16_384

// A NoteRequest asks for the note of an account, after another was kept.
type NoteRequest struct {
	// Budget is the budget's name.
	Budget string
	// Account is the account's ID.
	Account string
	// Note is to be kept. Without a Text, nothing is.
	Note Note
}

// Validate returns why the request is malformed, or nil.
func (r NoteRequest) Validate() error {
	switch {
	case !ValidAccountID(r.Account):
		return accountIDError(r.Account)
	case r.Note.Revision < 0 || int64(r.Note.Revision) > 1<<52:
		return fmt.Errorf("ration: NoteRequest.Note.Revision is %d: it must be from 0 to 2^52", r.Note.Revision)
	case len(r.Note.Text) > MaxNote:
		return fmt.Errorf("ration: NoteRequest.Note.Text has %d bytes: it must have at most %d", len(r.Note.Text), MaxNote)
	}
	return ValidateBudgetName(r.Budget)
}
