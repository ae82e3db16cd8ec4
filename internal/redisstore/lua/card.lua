-- card.lua: changes the card of an account or of the budget, or tells it. The budget's is in the fields of KEYS[1]
-- card, 'REVISION VERSION SET', and why; newest has the version of the newest card of an account.
--
-- ARGV  1 now, in microseconds; '' for the server's clock
--       2 the account; '' for the budget's card
--       3 the latest edition that the caller has seen, its revision; if a later one is in force, nothing is changed
--       4 and its version
--       5 the version of the budget's card that the caller knows: if it has another, an account's is not changed
--       6 its limits; '' to ask for the card that is kept
--       7 why they are
--       8 how many zones, then each
-- returns the card that is kept then: 'REVISION VERSION SET', or ''; why; and a number: 1 if it was changed, 2 if the
--         caller does not know the budget's card, or 0

local MOST = 16384

local state = readState(call('HGET', base, 'state'))
local now, accountID = clock(ARGV[1], state.offset), ARGV[2]
local revision = whole(ARGV[3], 'the revision', 0, 4503599627370496)
local version = whole(ARGV[4], 'the version of a card', 0, 4503599627370496)
local knownCard = whole(ARGV[5], 'the version of a card', 0, 4503599627370496)
readZones(9, ARGV[8])
local set = ARGV[6] ~= '' and limitset(ARGV[6])
if #ARGV[7] > MOST then
  bad = bad or 'ERR ration: why limits are in force takes at most 16384 bytes'
end
if bad then
  return redis.error_reply(bad)
end

local key = accountID == '' and base or base .. ':acct:' .. accountID
local kept = call('HMGET', key, accountID == '' and 'card' or 'limits', 'why')
local keptRevision, keptVersion = splitEdition(kept[1])
local behind = accountID ~= '' and state.card ~= knownCard
if not set or behind or keptRevision and isLater(keptRevision, keptVersion, revision, version) then
  return named(kept[1]) .. named(kept[2]) .. encode(set and behind and 2 or 0)
end
-- A version that anybody has seen is not given again, though the clock may be behind after a loss.
state.version = math.max(state.version, version)
if accountID ~= '' then
  noteChange('card:' .. accountID, now, now, 0, '')
else
  renew(now)
  revision = math.max(revision, tonumber(call('HGET', base, 'revision') or 0))
end
local edition = text(revision) .. ' ' .. text(state.version) .. ' ' .. ARGV[6]
if accountID == '' then
  state.card = state.version
  call('HSET', base, 'card', edition, 'why', ARGV[7])
  outlast(text(DAY / 1000))
else
  local account = readAccount(accountID, nil, now)
  call('HSET', base, 'newest', text(state.version))
  openUnder(account, set, edition)
  account.fields.why, account.dirty.why = ARGV[7], true
  if isLost(account) then
    forgetLost(account, state, state.seen)
  end
  if account.replaced then
    lowerScores(account)
  end
  writeNow(account)
end
writeState()
return named(edition) .. named(ARGV[7]) .. encode(1)
