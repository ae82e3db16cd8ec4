-- reconcile.lua: records the units that a provider has counted and the account's log lacks.
--
-- ARGV  1 now, in microseconds; '' for the server's clock
--       2 the account
--       3 the scopes of the request whose answer told, between commas
--       4 its slot: the provider counted at some instant between that and now
--       5 how many zones follow, then each: see readZones
--         its limits: see limitset
--         then for each of them: the units that the provider has counted; 0 if that
--         is not known
-- returns numbers: now, then for each limit: the units that the log may have counted
--         by then, those of them that had left by the slot, and what was recorded for it
--
-- What the log has between the two instants counts in full, and so does what has left
-- a window since the first: what is lacking then was surely spent by others. A limit
-- that is counted and not logged gets its own missing units. All that are logged share the
-- log, so what a longer window lacks is recorded for the shorter ones too, until they
-- have passed.

local now = clock(ARGV[1], readState().offset)
local accountID, scopes = ARGV[2], ARGV[3]
local slot = math.min(now, whole(ARGV[4], 'the slot', 1, 4503599627370496 + 400 * DAY))
local first = readZones(6, ARGV[5])
local set = limitset(ARGV[first])
local counted = {}
for i = 1, #set do
  counted[i] = whole(ARGV[first + i], 'the units', 0, COSTLIEST)
end
if accountID == '' or #ARGV ~= first + #set or not string.find(scopes, '^[%w%._,-]*$') then
  bad = bad or 'ERR ration: reconcile takes an account, a slot, its limits, and for each the units counted'
end
if bad then
  return redis.error_reply(bad)
end

-- leftBetween returns the units that a provider may have counted of a limit at any instant from
-- the slot to now, and those of them that had left by the slot.
local function leftBetween(m)
  local counter = counters[m.code]
  if not counter then
    local view = viewFor(m.account, m.scope)
    local atSlot = countIn(view, slot - m.window, slot)
    return atSlot + countIn(view, slot, now), atSlot
  end
  local atSlot = counter.left(m, slot)
  local units = math.max(atSlot, counter.left(m, now))
  return units + (counter.drained and counter.drained(m, slot, now) or 0), atSlot
end

local account = readAccount(accountID, set, now)
openAccount(account)
local reply, most, recorded = {encode(now)}, 0, false
for i, m in ipairs(account.limits) do
  local units, atSlot = leftBetween(m)
  local missing = math.max(0, counted[i] - units)
  if missing > 0 and covers(m.scope, scopes) then
    if counters[m.code] then
      counters[m.code].record(m, now, missing)
      recorded = true
    else
      most = math.max(most, missing)
    end
  end
  reply[#reply + 1] = encode(units) .. encode(atSlot) .. encode(missing)
end
if most > 0 then
  local queue = {name = scopes ~= '' and scopes .. '~0~' or '', scopes = scopes}
  addUnits(account, queue, now, most)
  recorded = true
end
if recorded then
  writeNow(account)
end
return table.concat(reply)
