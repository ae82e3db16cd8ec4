package redisstore

import (
	"context"

	"github.com/ration-go/ration/store"
)

// Note implements [store.Store].
func (s *Store) Note(ctx context.Context, r store.NoteRequest) (store.Note, error) {
	if err := r.Validate(); err != nil {
		return store.Note{}, err
	}
	reply, err := s.run(ctx, "note", noteScript(), r.Budget, []any{r.Account, r.Note.Revision, r.Note.Text})
	if err != nil {
		return store.Note{}, err
	}
	var revision [1]int64
	reply.numbers(revision[:])
	kept := store.Note{Revision: toInt(revision[0]), Text: reply.rest}
	reply.rest = ""
	return kept, reply.end("note")
}
