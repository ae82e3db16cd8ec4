-- note.lua: keeps what workers know of why an account's limits are in force. An account that is not
-- kept any more stays so.
--
-- ARGV  1 the account
--       2 the revision of the limits that the note is about
--       3 the note, or '' to ask for the one that is kept
-- returns the revision of the note that is kept now, and the note; 0 and '' if none is

local MOST = 16384

local key = base .. ':acct:' .. ARGV[1]
local revision = whole(ARGV[2], 'the revision', 0, 4503599627370496)
if ARGV[1] == '' or #ARGV ~= 3 or #ARGV[3] > MOST then
  bad = bad or 'ERR ration: note takes an account, a revision and a note of at most 16384 bytes'
end
if bad then
  return redis.error_reply(bad)
end
local known = call('HMGET', key, 'made', 'note')
local kept, note = string.match(known[2] or '', '^(%d+) (.+)$')
kept = tonumber(kept or 0)
if known[1] and ARGV[3] ~= '' and revision >= kept then
  kept, note = revision, ARGV[3]
  call('HSET', key, 'note', text(revision) .. ' ' .. note)
end
return encode(kept) .. (note or '')
