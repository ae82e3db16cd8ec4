-- describe.lua: tells what is kept of a budget's accounts, and who its workers are. It
-- writes nothing.
--
-- ARGV  1 where the list of accounts goes on, as the reply before has it; 0 for its beginning
-- returns numbers: where it goes on next, 0 if that was all; how many workers there are. Then
--         for each of them its name, when it was last heard of, and what its callers did then; then how many limits of
--         calls in flight are in use, and of each its name, its label, the shares of all workers, how many calls are in
--         flight, and the limit in force; and
--         for each account its ID, and its effective limits, its label and why they are as its hash
--         has them, empty if there is none. An account may be told twice.

-- So many accounts are looked for at once.
local SOME = 100

local at = whole(ARGV[1], 'where the list goes on', 0, 4503599627370496)
if bad then
  return redis.error_reply(bad)
end

local workers = at == 0 and call('ZRANGE', base .. ':workers', 0, -1, 'WITHSCORES') or {}
local found = call('ZSCAN', base .. ':fields', text(at), 'MATCH', 'a:*', 'COUNT', SOME)
local reply = {encode(found[1]), encode(#workers / 2)}
for i = 1, #workers, 2 do
  local load = call('HGET', base .. ':loads', workers[i]) or ''
  reply[#reply + 1] = named(workers[i]) .. encode(workers[i + 1]) .. named(load)
end
reply[#reply + 1] = at == 0 and tellPermits(clock('', readState().offset)) or encode(0)
for i = 1, #found[2], 2 do
  local accountID = string.sub(found[2][i], 3)
  local known = call('HMGET', base .. ':acct:' .. accountID, 'made', 'limits', 'label', 'why')
  if known[1] then -- otherwise it has ended, and so will the field
    reply[#reply + 1] = named(accountID) .. named(known[2]) .. named(known[3]) .. named(known[4])
  end
end
return table.concat(reply)
