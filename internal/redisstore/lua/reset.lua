-- reset.lua: notes when the window under way ends, of limits whose windows begin
-- with a call.
--
-- ARGV  1 now, in microseconds; '' for the server's clock
--       2 the account
--       3 when its window ends, as the provider says
--       4 how far from that the end may be, in microseconds
--       5 how many zones follow, then each: see readZones
--         its limits: see limitset
-- returns ''

local now = clock(ARGV[1], readState().offset)
local accountID = ARGV[2]
local instant = whole(ARGV[3], 'the end of the window', 1, 4503599627370496)
local within = whole(ARGV[4], 'how far from that', 0, 60000000)
local first = readZones(6, ARGV[5])
local set = limitset(ARGV[first])
if accountID == '' or #ARGV ~= first then
  bad = bad or 'ERR ration: reset takes an account, an instant and its limits'
end
if bad then
  return redis.error_reply(bad)
end

local account = readAccount(accountID, set, now)
openAccount(account)
local ends = 0
for _, m in ipairs(account.limits) do
  if counters[m.code] and counters[m.code].reset then
    ends = math.max(ends, counters[m.code].reset(m, now, instant, within))
  end
end
lowerScores(account)
if next(account.dirty) then
  writeNow(account)
end
extendPause(accountID, ends, now, 0, '')
return ''
