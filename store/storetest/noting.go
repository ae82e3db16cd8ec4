package storetest

import (
	"context"
	"math"
	"strings"

	"github.com/stretchr/testify/require"

	"github.com/ration-go/ration/store"
)

// noteRules are about what workers know of limits.
var noteRules = []rule{
	{"an account keeps the note of the highest revision, whatever is booked", func(h *harness) {
		a := h.each(atMost(4, 10*sec), "a", "b")
		h.slots(a, 0, 0)
		require.Zero(h.t, h.note("a", store.Note{Revision: 7}), "a request without a text keeps nothing")
		longest := store.Note{Revision: min(1<<52, math.MaxInt), Text: strings.Repeat("x", store.MaxNote)}
		first := store.Note{Revision: 3, Text: "one of\nthree \x00 lines"}
		for _, n := range []struct{ given, kept store.Note }{
			{first, first},
			{store.Note{Revision: 2, Text: "older"}, first},
			{store.Note{Revision: 9}, first},
			{store.Note{Revision: 3, Text: "three"}, store.Note{Revision: 3, Text: "three"}},
			{longest, longest},
		} {
			require.Equal(h.t, n.kept, h.note("a", n.given))
			h.bookWith(a)
			require.Equal(h.t, n.kept, h.note("a", store.Note{}))
		}
		require.Zero(h.t, h.note("b", store.Note{}), "another account's")
	}},
	{"a malformed Note is refused", func(h *harness) {
		h.slots(h.single(atMost(4, 10*sec)), 0)
		for says, r := range map[string]store.NoteRequest{
			"no budget":     {Account: "a"},
			"no account":    {Budget: h.budget},
			"revision -1":   {Budget: h.budget, Account: "a", Note: store.Note{Revision: -1}},
			"a text of 16k": {Budget: h.budget, Account: "a", Note: store.Note{Text: strings.Repeat("x", store.MaxNote+1)}},
		} {
			_, err := h.store.Note(h.t.Context(), r)
			h.malformed(err, says)
		}
		ctx, stop := context.WithCancel(h.t.Context())
		stop()
		_, err := h.store.Note(ctx, store.NoteRequest{Budget: h.budget, Account: "a"})
		require.ErrorIs(h.t, err, context.Canceled)
	}},
}

// note has the store keep a note, and returns the one that it keeps then.
func (h *harness) note(account string, n store.Note) store.Note {
	h.t.Helper()
	kept, err := h.store.Note(h.t.Context(), store.NoteRequest{Budget: h.budget, Account: account, Note: n})
	require.NoError(h.t, err)
	return kept
}
