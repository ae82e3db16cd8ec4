-- correct.lua: makes a booking count as what its call has really spent.
--
-- ARGV  1 now, in microseconds; '' for the server's clock
--       2 the booking's ID, 32 hexadecimal digits
--       3 the account that is charged
--       4 the entry
--       5 its slot
--       6 when the call left; '' for its slot
--       7 the units of the account, and of each shared one
--       then the units of each meter, in the order of the entry
-- returns the slot and the entry that the booking has now
--
-- What the booking has become is known by its ID: to correct it twice alike is to correct it once. Where all is counted as the
-- entry says, and at the same slot, only the difference is taken back or added. Otherwise the booking is taken back and
-- what was spent is recorded.

local now = forwardClock(ARGV[1])
local record, accountID = base .. ':id:' .. ARGV[2], ARGV[3]
local entry, at = ARGV[4], whole(ARGV[5], 'the slot', 1, 4503599627370496 + 400 * DAY)
local left = ARGV[6] ~= '' and whole(ARGV[6], 'when it left', 1, 4503599627370496 + 400 * DAY)
local cost, metered = whole(ARGV[7], 'the cost', 0, COSTLIEST), {}
for i = 8, #ARGV do
  metered[i - 7] = whole(ARGV[i], 'units', 0, COSTLIEST)
end
if #ARGV[2] ~= 32 or accountID == '' or not parse(entry) then
  bad = bad or 'ERR ration: correct takes an ID, an account and the entry of a booking'
end
if bad then
  return redis.error_reply(bad)
end

local CORRECTED = 'corrected '
local gone = call('GET', record) -- it was cancelled, or taken back from its holder
if gone and string.sub(gone, 1, #CORRECTED) == CORRECTED then
  at, entry, gone = struct.unpack('>I8', gone, #CORRECTED + 1), string.sub(gone, #CORRECTED + 9), nil
end
left = left or at

local queue, parts = parse(entry)
local ids, beside, meter = chargedBy(queue, accountID), besideIn(queue), 0
local opened, spent, again = {}, {}, gone or left ~= at
for i, id in ipairs(ids) do
  spent[i] = cost
  if i > 1 and unitOf(beside[i - 1]) then
    meter = meter + 1
    spent[i] = metered[meter] or 0
  end
  local part = parts[i]
  if spent[i] > 0 or part.cost > 0 then
    opened[id] = openOwn(id, now) or false
  end
  local counted = opened[id] and part.cost > 0 and countedAs(opened[id], queue, at, part)
  again = again or opened[id] and spent[i] > 0 and not counted
end

local entryNow = {queue .. '\0'}
for i, id in ipairs(ids) do
  local account, part, units = opened[id], parts[i], spent[i]
  local becomes = NOTHING
  local counted = account and not gone and part.cost > 0 and countedAs(account, queue, at, part)
  if counted and (not again or units == 0) then
    local freed
    becomes, freed = setUnits(account, queue, at, counted, units)
    account.ahead = account.ahead or freed
  else
    if counted then
      setUnits(account, queue, at, counted, 0)
      findEdge(account)
      account.ahead = account.ahead or at >= now or units < part.cost
    end
    if account and units > 0 and left > now - account.set.window then
      becomes = addUnits(account, {name = queue, scopes = scopesOf(queue)}, left, units, 'record')
    end
  end
  entryNow[i + 1] = becomes
end
entry = table.concat(entryNow)
call('SET', record, CORRECTED .. struct.pack('>I8', left) .. entry, 'PX', REMEMBER)
local freed = {} -- what is free of a meter is its account's
for i, id in ipairs(ids) do
  if opened[id] and opened[id].ahead then
    freed[i > 1 and unitOf(beside[i - 1]) and accountID or id] = opened[id]
  end
end
writeOpened(opened)
announceFreed(freed)
return encode(left) .. named(entry)
