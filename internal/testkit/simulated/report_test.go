package simulated

import (
	"encoding/json"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

func TestReportIsKnownBeforeTheFirstCall(t *testing.T) {
	encoded, err := json.Marshal((&Provider{Tokens: []string{"secret"}}).Report())
	require.NoError(t, err)
	require.JSONEq(t, `{"limit":5000,"window_ns":3600000000000,"accepted":0,"refused":0,"injected":0,"max_in_window":0,
		"unauthorised":0,"not_found":0,"tokens":[{"index":0,"alias":"token 1","accepted":0,"refused":0,"injected":0,
		"max_in_window":0}]}`, string(encoded))
}

func TestReportSurvivesJSON(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &Provider{Limit: 2, Tokens: []string{"one", "two"}}
		call(p, firstPage, "two")
		time.Sleep(3 * time.Millisecond)
		for range 2 {
			call(p, firstPage, "two")
		}
		var got Report
		require.NoError(t, json.Unmarshal(call(p, "http://example.com"+ReportPath, "").Body.Bytes(), &got))
		start := time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)
		require.Equal(t, Report{
			Limit: 2, Window: time.Hour, Start: start, Accepted: 2, Refused: 1, MaxInWindow: 2,
			Tokens: []TokenReport{
				{Index: 0, Alias: "token 1"},
				{
					Index: 1, Alias: "token 2", Accepted: 2, Refused: 1, MaxInWindow: 2,
					First: start, Last: start.Add(3 * time.Millisecond),
				},
			},
		}, got)
	})
}

func TestReportIsASnapshot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := new(Provider)
		call(p, firstPage, "secret")
		before := p.Report()
		call(p, firstPage, "secret")
		call(p, firstPage, "other")
		require.Equal(t, 1, before.Tokens[0].MaxInWindow)
		require.Len(t, before.Tokens, 1)
		after := p.Report()
		require.Equal(t, 2, after.Tokens[0].MaxInWindow)
		require.Equal(t, 1, after.Tokens[1].MaxInWindow)
		require.Equal(t, 2, after.MaxInWindow, "the largest of the tokens'")
	})
}
