-- owe.lua: enters as debt what a provider has counted and the account's log lacks.
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
--         by then, those of them that had left by the slot, and what was entered for it
--
-- What the log has between the two instants counts in full, and so does what has left
-- a window since the first: what is lacking then was surely spent by others. A limit
-- that is counted and not logged is owed its own debt. All that are logged share the
-- log, so what a longer window lacks is entered for the shorter ones too, until they
-- have passed.

local now = clock(ARGV[1], readState().offset)
local account, scopes = ARGV[2], ARGV[3]
local slot = math.min(now, whole(ARGV[4], 'the slot', 1, 4503599627370496 + 400 * DAY))
local first = readZones(6, ARGV[5])
local set = limitset(ARGV[first])
local told = {}
for i = 1, #set do
  told[i] = whole(ARGV[first + i], 'the units', 0, COSTLIEST)
end
if account == '' or #ARGV ~= first + #set or not string.find(scopes, '^[%w%._,-]*$') then
  bad = bad or 'ERR ration: owe takes an account, a slot, its limits, and for each the units counted'
end
if bad then
  return redis.error_reply(bad)
end

local charge = readCharge(account, set, now)
openCharge(charge)
local reply, most, entered = {encode(now)}, 0, false
for i, m in ipairs(charge.limits) do
  local units, lacking, there
  if counters[m.letter] then
    there = counters[m.letter].left(m, slot)
    units = math.max(there, counters[m.letter].left(m, now))
    if m.letter == 'G' then
      -- What has run out of the bucket since.
      units = units + math.ceil((now - slot) * m.max / m.window)
    end
    lacking = math.max(0, told[i] - units)
    if lacking > 0 and covers(m.scope, scopes) then
      counters[m.letter].enter(m, now, lacking)
      entered = true
    end
  else
    local view = viewFor(charge, m.scope)
    there = countIn(view, slot - m.window, slot)
    units = there + countIn(view, slot, now)
    lacking = math.max(0, told[i] - units)
    if covers(m.scope, scopes) then
      most = math.max(most, lacking)
    end
  end
  reply[#reply + 1] = encode(units) .. encode(there) .. encode(lacking)
end
if most > 0 then
  local lane = {name = scopes ~= '' and scopes .. '~0~' or '', scopes = scopes}
  enterCharge(charge, lane, now, most)
  entered = true
end
if entered then
  keepNow(charge)
end
return table.concat(reply)
