-- record.lua: records what was spent without a booking, or was booked and is no
-- longer in the log.
--
-- ARGV  1 now, in microseconds; '' for the server's clock
--       2 the request's ID, 32 hexadecimal digits
--       3 the account
--       4 the scopes of spendings without an entry, between commas
--       5 an instant at which the units spent by all are known; '' if none is
--       6 those units, in the longest window before it
--       7 how many zones follow, then each: see readZones
--         its limits: see limitset
--         then for each, in the order of slots: slot, cost, the entry that it
--         had, '' if it had none, and when it was booked
-- returns ''

local now = clock(ARGV[1], readState().offset)
local id, accountID = ARGV[2], ARGV[3]
local unnamed = ARGV[4]
local spendings = {}
local known = ARGV[5] ~= '' and whole(ARGV[5], 'an instant', 1, 4503599627370496)
local units = whole(ARGV[6], 'units', 0, COSTLIEST)
local first = readZones(8, ARGV[7])
local set = limitset(ARGV[first])
for i = first + 1, #ARGV, 4 do
  spendings[#spendings + 1] = {
    slot = whole(ARGV[i], 'a slot', 1, 4503599627370496 + 400 * DAY),
    cost = whole(ARGV[i + 1], 'a cost', 1, COSTLIEST),
    entry = ARGV[i + 2],
    booked = whole(ARGV[i + 3], 'when it was booked', 1, 4503599627370496),
  }
end
if #id ~= 32 or accountID == '' or (#ARGV - first) % 4 ~= 0 or
  not string.find(unnamed, '^[%w%._,-]*$') then
  bad = bad or 'ERR ration: record takes an ID, an account, its limits, and for each spending four arguments'
end
if bad then
  return redis.error_reply(bad)
end

local record = base .. ':id:' .. id
if call('EXISTS', record) == 1 then
  return ''
end
local account = readAccount(accountID, set, now)
openAccount(account)
-- What a worker tells of all units by some instant is recorded as far as the account lacks it: they
-- are those of workers that are gone, or have yet to enter theirs. They stand at that instant, as
-- none left later, and end as others enter what they had booked by then. The field known has these
-- instants in order, each with the part under which what is left of its units is counted.
local KNOWN, SINCE = '>I8c1I7I5', 21
local all, field = {}, account.fields.known or ''
for i = 1, #field, SINCE do
  local at, code, number, cost = struct.unpack(KNOWN, field, i)
  if at > now - set.window then
    all[#all + 1] = {at = at, part = {code = code, number = number, cost = cost, more = ''}}
  end
end
local newest = all[1] and all[#all].at or 0
if known and known > math.max(newest, now - set.window) then
  newest = known
  all[#all + 1] = {at = known, units = units}
end
local missing = {}
for _, spending in ipairs(spendings) do
  local queue, parts = parse(spending.entry)
  local part = queue and parts[partOf(queue, accountID)]
  if spending.slot > now - set.window and not (part and countedAs(account, queue, spending.slot, part)) then
    -- Also an entry of another store tells the scopes.
    queue = string.match(spending.entry, '^([^%z]*)%z')
    spending.scopes, spending.part = queue and scopesOf(queue) or unnamed, part
    missing[#missing + 1] = spending
  end
end
local function add(slot, cost, scopes)
  local queue = {name = scopes ~= '' and scopes .. '~0~' or '', scopes = scopes}
  return addUnits(account, queue, slot, cost, 'record')
end
-- addUpTo records those that were booked up to an instant.
local function addUpTo(instant)
  -- A bucket is known as it was: what it took before is not recorded again.
  account.known = newest
  for _, spending in ipairs(missing) do
    if spending.booked <= instant and not spending.recorded then
      local part = add(spending.slot, spending.cost, spending.scopes)
      spending.recorded = true
      if spending.part then
        noteAgain(account, spending.slot, spending.part, part)
      end
    end
  end
end
local kept = {}
for i, each in ipairs(all) do
  local before = leftIn(account, each.at)
  addUpTo(each.at)
  local more, part = leftIn(account, each.at) - before, each.part
  local lacking = (part and part.cost or each.units - before) - more
  if more > 0 or not part then
    if part and part.cost > 0 then
      takeBack(account, '', each.at, part)
    end
    account.known = part and newest or 0
    local _, parts = parse('\0' .. (lacking > 0 and add(each.at, lacking, '') or ''))
    part = parts and parts[1] or {code = 'N', number = 0, cost = 0}
  end
  kept[i] = struct.pack(KNOWN, each.at, part.code, part.number, part.cost)
end
addUpTo(math.huge)
if missing[1] or table.concat(kept) ~= field then
  account.fields.known, account.dirty.known = kept[1] and table.concat(kept), true
  lowerScores(account)
  writeNow(account)
end
-- Nothing is booked while workers still record what a loss has taken: a far one with many accounts takes longer than
-- GRACE.
-- These name the entries of what was booked before.
local state = readState()
local graceEnds = math.min(now + GRACE / 2, state.lost + 15 * GRACE)
if spendings[1] and spendings[1].entry ~= '' and now < state.graceEnds and graceEnds > state.graceEnds then
  state.graceEnds = graceEnds
  writeState()
end
call('SET', record, 'recorded', 'PX', REMEMBER)
return ''
